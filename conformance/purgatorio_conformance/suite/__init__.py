"""The conformance suite: a pytest plugin that judges a user's timer or purgatory by the clauses. See
docs/conformance-suite.md.

The user writes an adapter: a class with the methods that the module `contract` describes. The suite calls these
methods, and records the calls. `purgatorio_spec` judges the record. This module imports nothing, because pytest imports
it in every run. Import names from `contract` and `probe`.
"""
