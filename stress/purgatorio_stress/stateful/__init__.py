"""Stateful tests: Hypothesis generates programs for one thread, and a small model says what each call must return.

`registry.SEARCHES` holds them by name; `search.Search.hunt` runs one and says what it found, or None:

    from purgatorio_stress.stateful.registry import SEARCHES, searches_for
    with MUTANTS[64].applied():                      # the reference, patched in memory
        found = SEARCHES["system-timer"].hunt(300)   # found.clause == "T1", found.examples: after so many
    assert SEARCHES["system-timer"].hunt(300) is None  # and without the bug nothing

A hunt gives the same result each time, and does not shrink. `searches_for(patches, dialect)` names the searches that
can reach the patched code.

Another timer: `timer_machine.machine_for((name, factory))`; it must implement `CheckedTimer`.
"""
