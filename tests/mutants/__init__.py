"""Mutants: versions of the project's own code with one bug, and the layers of tests that find each bug.

`reference` has the known bugs of timers and purgatories, `broker` the mutants of the project's own broker.
`kill_matrix` runs every layer on every known bug of the reference (`python -m mutants`). The installed package
`purgatorio_stress.mutant` has the patches and the option `--mutant FILE[:NAME]`.
"""
