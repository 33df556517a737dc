"""The command line `purgatorio`: reads, judges and reports recorded runs, in one process or on Spark."""
