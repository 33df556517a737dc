"""Known limits of the protocols, kept as tests: missing promises, and the programs that show them."""

from __future__ import annotations

from dataclasses import replace

from purgatorio_spec.model import completion as protocol
from purgatorio_spec.model import variant
from purgatorio_spec.model.checker import check
from purgatorio_spec.model.completion import Setup, completion
from purgatorio_spec.verdict import Verdict


def test_two_checkers_can_spin_in_lockstep_while_the_condition_stays_false() -> None:
    """The pending-flag loop is unbounded even under weak fairness: its end needs the condition or luck.

    One thread holds the lock; the other fails to take it and sets the flag, so the first goes round again, takes
    the lock, and so on. Every thread moves in the loop, so fairness does not forbid it.
    """
    model = completion(variant.PENDING_FLAG, Setup(2, progress=True, never_ready=True))
    spinning = replace(model, possible={}, eventually={"every call returns": model.done})
    finding = check(spinning).finding("every call returns")
    assert finding.verdict is Verdict.VIOLATED
    assert finding.trace is not None
    assert {step.column for step in finding.trace.loop} == {"event-0", "event-1"}
    assert any("set the pending flag" in step.text for step in finding.trace.loop)


def test_the_locked_dialect_has_no_such_loop() -> None:
    """Blocking instead of retrying: every call returns whether or not the condition comes."""
    model = completion(variant.LOCKED, Setup(3, progress=True, never_ready=True))
    ending = replace(model, possible={}, eventually={"every call returns": model.done})
    assert check(ending).finding("every call returns").verdict is Verdict.PASS


def test_the_pending_flag_dialect_does_not_promise_completion_at_return() -> None:
    """A check may return while another thread still has to evaluate for it (the locked form of O4 fails there)."""
    claims_more = replace(variant.PENDING_FLAG, name="pending-flag, asked too much", register_locked=True)
    answer = check(completion(claims_more, Setup(2)))
    assert answer.finding(protocol.AT_RETURN).verdict is Verdict.VIOLATED
    assert answer.finding(protocol.NO_LOST).verdict is Verdict.PASS


def test_try_complete_and_on_complete_may_overlap_before_4_1() -> None:
    """The 2.7 to 4.0 form keeps every promise except O6 (KAFKA-19312)."""
    answer = check(completion(variant.UNLOCKED_FORCE, Setup(2, register=True, timed=True)))
    broken = {finding.property for finding in answer.findings if finding.verdict is Verdict.VIOLATED}
    assert broken == {protocol.NO_OVERLAP}
