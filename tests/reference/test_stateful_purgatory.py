"""The purgatory in both dialects against a model in dictionaries; callbacks re-enter and raise."""

from purgatorio import Purgatory, VirtualTime
from reference.stateful.purgatory_machine import LockedMachine, PendingFlagMachine
from reference.waiting import Never

TestLocked = LockedMachine.TestCase
TestPendingFlag = PendingFlagMachine.TestCase


def test_handed_over_while_purging_is_not_counted() -> None:
    """A known limit of the purge, found by the machine above: what the timer has handed over and has
    not run yet is no longer delayed and not yet completed. A purge at that moment does not count it, so its entry
    stays, beyond the bound of P1, until the estimate has grown by others."""
    world = VirtualTime()
    purgatory: Purgatory[Never] = Purgatory("p", world.timer, purge_interval=0, reaper=False)
    purgatory.try_complete_else_watch(Never(1), ["k"])
    world.clock.advance(1)
    purgatory.pass_time()
    world.executor.run_all()
    assert purgatory.num_delayed() == 0
    assert purgatory.purge_if_needed() == 0
    assert purgatory.watched() == 1
    purgatory.try_complete_else_watch(Never(1), ["other"])
    purgatory.check_and_complete("k")
    assert purgatory.watched() == 1, "an event on its key takes it away"
