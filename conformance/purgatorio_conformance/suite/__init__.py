"""The conformance suite: judges timers and purgatories of users by the clauses. See docs/conformance-suite.md.

A user writes an adapter, a class with the methods that `contract` describes. Pytest loads `plugin`. The suite executes
test programs (`timer_program`, `purgatory_program`) and records the calls. `purgatorio_spec` alone judges the records.

This module imports nothing, because pytest imports this package in every run. Import names from `contract` and `probe`.
"""
