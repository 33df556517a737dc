"""Subjects of the harness: the reference, its production wheel, and third-party parts."""

from __future__ import annotations

import pytest

from purgatorio import SystemTimer
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.harness.campaign import StressPlan, chosen, run_stress
from purgatorio_stress.harness.subject import REFERENCE_SUBJECT, subject_named
from purgatorio_stress.scenario.parts import Parts


class Miscounting(SystemTimer):
    """Counts one task more than there is."""

    def size(self) -> int:
        return super().size() + 1


MISCOUNTING = Parts(timer=Miscounting)
HERE = "stress.test_stress_subjects"


def test_the_production_wheel_breaks_nothing() -> None:
    """Every scenario with a timer, under the clauses of the wheel that it stands in for."""
    subject = subject_named("intrusive-timer")
    pairs = chosen(subject=subject)
    result = run_stress(StressPlan(pairs, rounds=64, record_every=1, subject=subject))
    assert not result.problem
    assert [table.name for table in result.tables if table.forbidden] == []
    assert {name for name, _ in pairs} >= {"cancel-against-flush", "overflow-twice", "completed-before-timer"}


def test_only_scenarios_about_the_subject_are_raced() -> None:
    """The rest would race the reference, and call it the subject."""
    pairs = {name for name, _ in chosen(subject=subject_named("intrusive-timer"))}
    assert not pairs & {"two-events", "remove-against-move", "offer-against-poll"}
    assert pairs < {name for name, _ in chosen(subject=REFERENCE_SUBJECT)}


def test_a_third_party_timer_is_raced_and_judged() -> None:
    """By module and attribute. Its violation is found, and the command names it."""
    subject = subject_named(f"{HERE}:MISCOUNTING")
    plan = StressPlan([("cancel-against-flush", "pending-flag")], rounds=32, subject=subject)
    result = run_stress(plan)
    assert result.verdict is Verdict.VIOLATED
    assert result.printed().subject == f"{HERE}:MISCOUNTING"
    assert plan.command("cancel-against-flush/pending-flag", 0).startswith(
        f"purgatorio stress {HERE}:MISCOUNTING "
    )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("netty", "module:attribute"),
        ("no.such.module:PARTS", "no"),
        (f"{HERE}:NOTHING", "NOTHING"),
        (f"{HERE}:HERE", "is no"),
    ],
)
def test_what_is_no_subject_is_refused_with_its_reason(name: str, why: str) -> None:
    """Before anything is run."""
    with pytest.raises(KeyError, match=why):
        subject_named(name)
