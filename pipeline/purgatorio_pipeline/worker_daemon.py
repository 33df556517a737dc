"""The daemon that forks Spark's Python workers, with all modules of a task imported before: otherwise each worker would
import them again. Spark starts it in place of `pyspark.daemon` where executors have this project installed."""

import pyspark.worker  # noqa: F401  # for the workers, which have then imported it
from pyspark.daemon import manager

import purgatorio_pipeline.incremental.spark_fold  # noqa: F401  # for the workers, too

if __name__ == "__main__":
    manager()
