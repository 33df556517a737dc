"""Starts Spark: local by default, or on a cluster by `--master` or spark-submit.

The Spark session has no web interface, starts SQL only if needed, shuffles into few partitions, and logs only errors. A
local session listens only on the loopback interface. On a cluster, the executors must be able to connect to the driver,
and the driver sends them the code of this project. Settings of spark-submit are not changed.

Never set here: `spark.sql.files.ignoreCorruptFiles`, which silently returns half of a damaged file.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from purgatorio_conformance.java_home import find_java, home_for_spark
from purgatorio_pipeline.shipping import ARCHIVE, is_shipped, write_archive
from purgatorio_pipeline.stopping import DRIVER, ORDERLY_S, guarded_group, loading

DRIVER_MEMORY: Final = "2g"
SHUFFLE_PARTITIONS: Final = 8
WORKER_MEMORY: Final[Mapping[str, str | int]] = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": 1 << 30,
    "MALLOC_TRIM_THRESHOLD_": 256 << 20,
    "MALLOC_TOP_PAD_": 64 << 20,
}
"""One memory pool for Arrow and numpy, which keeps memory for the next batch. Otherwise, mapping and unmapping columns
of a megabyte would take a tenth of a task's time."""
_started: SparkContext | None = None
_LOG4J: Final = Path(__file__).with_name("log4j2.properties")


def start_session(
    master: str | None = None,
    *,
    quick: bool = False,
    memory: str | None = None,
    brought: Mapping[str, str] | None = None,
) -> SparkSession:
    start_context(master, quick=quick, memory=memory, brought=brought)
    return SparkSession.Builder().getOrCreate()


def start_context(
    master: str | None = None,
    *,
    quick: bool = False,
    memory: str | None = None,
    brought: Mapping[str, str] | None = None,
) -> SparkContext:
    """Start Spark once, without SQL, which is faster to start. `quick` trades top speed for a start of a few seconds
    (tests, small traces). `memory`: the heap of the driver in Spark's notation (`3g`). `brought`: settings with
    libraries of the user (`spark.jars`), which only a JVM that is started here can load.

    Raises `purgatorio_conformance.java_home.JavaNotFound` (with the package to install) without a usable Java, and
    ConnectionError if no cluster answers at `master`.
    """
    java = find_java()
    os.environ["JAVA_HOME"] = str(home_for_spark(java))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = under_submit()
    local = not submitted and (master is None or master.startswith("local"))
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ[DRIVER] = str(os.getpid())
    settings = _settings(quick, memory) | (_local_settings() if local else {}) | dict(brought or {})
    if submitted:
        settings = _not_given(settings)
    conf = (
        SparkConf().setAppName("purgatorio").setAll([(name, str(value)) for name, value in settings.items()])
    )
    if master is not None or not submitted:
        conf.setMaster(master or "local[*]")
    if SparkContext._gateway is None and not submitted:
        # Without this group, the JVM would outlive a killed driver by many seconds. If the driver was interrupted while
        # the JVM starts, the JVM would never end, because the folder for its address is gone.
        gateway = launch_gateway(conf, {"process_group": guarded_group()})  # type: ignore[no-untyped-call]  # in PySpark
        atexit.register(_end_machine)
        SparkContext._ensure_initialized(gateway=gateway)
    with loading():
        # PySpark's own handler of Ctrl-C, which this removes in Purgatorio's programs, would use the interrupted
        # connection and print two tracebacks.
        context = SparkContext.getOrCreate(conf)
    logging.getLogger().addFilter(_is_news)
    # It logs each loss of a connection, also of the one that Ctrl-C interrupts.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    context.setLogLevel("ERROR")
    if not local and not is_shipped():
        try:
            _ship(context)
        except Py4JError as stopped:
            if master is None:
                raise
            # Spark retries for a minute and stops its context. The next use of the context raises the error.
            raise ConnectionError(f"--master {master}: no Spark cluster answers there") from stopped
    global _started
    _started = context
    return context


def _is_news(record: logging.LogRecord) -> bool:
    """False for the tracebacks that py4j logs when Ctrl-C interrupts a call: it raises the exceptions too."""
    return record.module != "java_gateway"


def tasks_so_far() -> tuple[int, int | None]:
    """Spark's finished tasks and all tasks of the current job, for the progress display, from any thread. (0, None)
    while Spark starts and after it has stopped."""
    context = _started
    if context is None:
        return 0, None
    try:
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    except (Py4JError, OSError, AttributeError):
        return 0, None
    found = [stage for stage in stages if stage is not None]
    tasks = sum(stage.numTasks for stage in found)
    return sum(stage.numCompletedTasks for stage in found), tasks or None


def _started_machine() -> subprocess.Popen[bytes] | None:
    return getattr(SparkContext._gateway, "proc", None)


def _end_machine() -> None:
    """End the JVM that this process started and remove its scratch folders, while this process still exists."""
    accumulators = getattr(_started, "_accumulatorServer", None)
    if accumulators is not None:
        # The JVM closes its connection to this server of PySpark when it ends. The server would print a traceback.
        accumulators.handle_error = lambda *_: None
    machine = _started_machine()
    if machine is not None and machine.stdin is not None:
        with suppress(OSError, KeyboardInterrupt, subprocess.TimeoutExpired):
            machine.stdin.close()
            machine.wait(ORDERLY_S)


def kill_machine() -> bool:
    """Kill the JVM that this process started, as kill -9 does. False if it started none (under spark-submit)."""
    machine = _started_machine()
    if machine is None:
        return False
    machine.kill()
    machine.wait()
    return True


def under_submit() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _settings(quick: bool, memory: str | None) -> dict[str, str | int]:
    machine = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" if quick else ""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory or DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOG4J.as_uri()} {machine}",
        "spark.executor.extraJavaOptions": machine,
        "spark.sql.shuffle.partitions": SHUFFLE_PARTITIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": 20_000,
        "spark.sql.parquet.compression.codec": "zstd",
        # Traces are highly compressed: 4 MiB are a million events. One run must not be one task.
        "spark.sql.files.maxPartitionBytes": 4 << 20,
        "spark.sql.files.openCostInBytes": 256 << 10,
        # Several tasks must be able to read the output of one task. A row group is never divided, so it must be small.
        "spark.hadoop.parquet.block.size": 4 << 20,
        # Tables are partitioned by a column of two or three values, so a writer for each value avoids a sort.
        "spark.sql.maxConcurrentOutputFileWriters": 8,
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
        **{f"spark.executorEnv.{name}": value for name, value in WORKER_MEMORY.items()},
    }


def _local_settings() -> dict[str, str | int]:
    scratch = tempfile.gettempdir()
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": scratch,
        "spark.local.dir": scratch,
        "spark.python.daemon.module": "purgatorio_pipeline.worker_daemon",
        # The driver lists the files of this machine, because a task for each file would cost more.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": 100_000,
    }


def _not_given(settings: dict[str, str | int]) -> dict[str, str | int]:
    SparkContext._ensure_initialized()  # before this a SparkConf does not see the options of spark-submit
    given = SparkConf()
    return {name: value for name, value in settings.items() if not given.contains(name)}


def _ship(context: SparkContext) -> None:
    """Give the executors the code that this process runs."""
    folder = Path(tempfile.mkdtemp(prefix="purgatorio-code-"))
    # Removed only at the end, because executors may start and fetch the archive at any time.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addPyFile(str(write_archive(folder / ARCHIVE)))
