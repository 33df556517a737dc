"""One quiet Spark session: local by default, on a cluster by `--master` or under spark-submit.

The session has no web interface, listens on the loopback only, shuffles into few partitions and logs errors only.
Never set here: `spark.sql.files.ignoreCorruptFiles`, which returns half of a damaged file without a word.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from purgatorio_stress.java_home import find_java

DRIVER_MEMORY: Final = "2g"
SHUFFLE_PARTITIONS: Final = 8
_LOG4J: Final = Path(__file__).with_name("log4j2.properties")


def start_session(
    master: str | None = None, *, quick: bool = False, memory: str | None = None
) -> SparkSession:
    """The session of this process, started once. `quick` trades top speed for a start of a few seconds (tests, small
    traces). `memory` is the driver's heap, as Spark writes it (`3g`).

    Raises `purgatorio_stress.java_home.NoJava` (with what to install) where there is no usable Java.
    """
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.path)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"]
    if quick:
        options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    scratch = tempfile.gettempdir()
    builder = SparkSession.Builder().appName("purgatorio")
    if master is not None or "spark.master" not in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        builder = builder.master(master or "local[*]")
    settings: dict[str, str | int] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": memory or DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.sql.shuffle.partitions": SHUFFLE_PARTITIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": scratch,
        "spark.local.dir": scratch,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 20_000,
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
