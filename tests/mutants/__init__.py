"""Bugs that are put in on purpose, and who finds them.

`reference`: known bugs of timers and purgatories. `broker`: bugs of our own broker that a client can see.
`kill_matrix`: every known bug of the reference against every layer; `python -m mutants` runs it. What they are made of
(patches, and `--mutant FILE[:NAME]`, which puts one in) is installed: `purgatorio_stress.mutant`.
"""
