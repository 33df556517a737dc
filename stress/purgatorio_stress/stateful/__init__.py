"""Stateful tests: Hypothesis draws programs for one thread, a model of a few lines says what must come of them.

`registry.SEARCHES` holds them by name; `search.Search.hunt` runs one and says what it found, or None:

    from purgatorio_stress.stateful.registry import SEARCHES, searches_for
    with MUTANTS[64].applied():                      # the reference, patched in memory
        found = SEARCHES["system-timer"].hunt(300)   # found.clause == "T1", found.examples: after so many
    assert SEARCHES["system-timer"].hunt(300) is None  # and without the bug nothing

A hunt repeats exactly (no database, derandomised) and does not shrink; `searches_for(patches, dialect)` names the hunts
that can see the patched place at all. The tests run the same machines under the profiles of `profiles`, and shrink.

Another timer: `timer_machine.machine_for((name, factory))`; it must implement `CheckedTimer`.
"""
