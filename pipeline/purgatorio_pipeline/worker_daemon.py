"""The daemon that forks Spark's Python workers, with all modules of a task imported before: otherwise each worker would
import them again. Spark starts it in place of `pyspark.daemon` where executors have this project installed."""

import os

from purgatorio_pipeline.stopping import DRIVER, end_group_with

if __name__ == "__main__" and (driver := os.environ.get(DRIVER, "")).isdigit():
    # The JVM takes seconds to end after a driver that was killed, and a worker would go on as long. First of all: the
    # driver may end while the modules below are imported.
    os.setpgid(0, 0)
    end_group_with(int(driver))

import pyspark.worker  # noqa: F401  # for the workers, which have then imported it
from pyspark.daemon import manager

import purgatorio_pipeline.incremental.spark_fold  # noqa: F401  # for the workers, too

if __name__ == "__main__":
    manager()
