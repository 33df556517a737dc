"""Stateful tests: Hypothesis generates programs for one thread, and a small model computes the correct result of each
call.

`registry.SEARCHES` has all tests by name. `search.Search.hunt` runs one test. The result is the violation, or None:

    from reference.stateful.registry import SEARCHES, searches_for
    with MUTANTS[64].applied():                      # the reference, patched in memory
        found = SEARCHES["system-timer"].hunt(300)   # found.clause == "T1"; found.examples: programs tried
    assert SEARCHES["system-timer"].hunt(300) is None  # without the bug, there is no violation

`hunt` returns the same result each time, and does not shrink the program. `searches_for(patches, dialect)` names the
tests that can reach the patched code.

For another timer, use `timer_machine.machine_for((name, factory))`. The timer must implement `CheckedTimer`.
"""
