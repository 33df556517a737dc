"""The conformance suite: other people's timers and purgatories, held to the clauses. See docs/conformance-suite.md.

`contract` is what a user writes, `plugin` what pytest loads; in between programs (`timer_program`,
`purgatory_program`) are carried out, recorded, and judged by `purgatorio_spec` alone.

Nothing is imported here, for pytest imports this package in every run: take the names from `contract` and `probe`.
"""
