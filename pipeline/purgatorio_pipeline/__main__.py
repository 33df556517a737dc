"""`python -m purgatorio_pipeline`: the command line where its script is not on the path, as on an executor."""

from purgatorio_pipeline.cli import main

main()
