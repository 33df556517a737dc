"""The daemon that forks Spark's Python workers. It imports all modules of a task before it forks, so that no worker
must import them. If Purgatorio is installed on the executors, Spark starts this daemon instead of `pyspark.daemon`."""

import os

from purgatorio_pipeline.stopping import DRIVER, end_group_with

if __name__ == "__main__" and (driver := os.environ.get(DRIVER, "")).isdigit():
    # After a kill of the driver, the JVM ends seconds later, and a worker would run until then. This comes before the
    # imports below, because the driver may end during the imports.
    os.setpgid(0, 0)
    end_group_with(int(driver))

import pyspark.worker  # noqa: F401  # for the workers, which have then imported it
from pyspark.daemon import manager

import purgatorio_pipeline.incremental.spark_fold  # noqa: F401  # for the workers, too

if __name__ == "__main__":
    manager()
