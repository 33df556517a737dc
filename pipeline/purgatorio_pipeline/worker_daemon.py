"""What forks Spark's Python workers, with everything that a task needs imported before: each worker would otherwise
import it again. Spark starts this in place of its own `pyspark.daemon`, where executors have this project installed."""

import pyspark.worker  # noqa: F401  # for the workers, which have then imported it
from pyspark.daemon import manager

import purgatorio_pipeline.incremental.spark_fold  # noqa: F401  # for the workers, too

if __name__ == "__main__":
    manager()
