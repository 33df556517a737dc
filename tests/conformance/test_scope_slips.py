"""Slips that were thought up without the scope in hand: a purgatory on one thread, each found by a program of it."""

from dataclasses import replace
from functools import partial
from itertools import islice

import pytest

from conformance.driven import broken
from conformance.small_purgatory import SLIPS, small
from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.protocol.scope import crossed, crossing_named, drawn_program, scope_delays
from purgatorio_conformance.subject.plan import MS
from purgatorio_conformance.suite import gated as gated_conformance
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import _STEPPED, SCOPE, of_purgatory, play


@pytest.mark.parametrize(
    ("slip", "purges", "programs"),
    [
        ("", False, 450),
        ("", True, 450),
        *((name, one.purges, one.programs) for name, one in SLIPS.items() if one.programs),
    ],
)
def test_a_slip_on_one_thread_is_found(
    slip: str, purges: bool, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By calls from inside callbacks, by callbacks that raise, and by time that comes before any event."""
    monkeypatch.setattr(gated_conformance, "_SCOPE", programs)
    promise = Promise("locked", MS, early_ns=0, late_ns=0, purge_interval=10 * purges, threads=False)
    judged = play(SCOPE, of_purgatory(promise, partial(small, slip)))
    assert not judged.broken_off
    found = broken(judged.result)
    assert SLIPS[slip].clause in found if slip else not found


TIMER = Description(
    0, "", "x", ("timer", "cancel", "gauge", "add-again", "failing"), (), tick_ns=MS, wheel_size=8, lanes=2,
    gates=("timer_fire", "step"),
)  # fmt: skip
PURGATORY = Description(
    0, "", "x", ("purgatory", "cancel-key", "force", "gauge", "failing"), (), tick_ns=MS, lanes=2,
    gates=("try_complete", "force_complete", "on_complete", "on_expiration", "timer_fire"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("part", "description", "counts"),
    [("timer", TIMER, [492, 7_435]), ("purgatory", PURGATORY, [1_877, 24_975])],
)
def test_the_programs_of_two_callers_are_enumerated(
    part: Part, description: Description, counts: list[int]
) -> None:
    """Each once, first those in which calls of new kinds meet; each is found again by its name."""
    sizes = [
        (count, [*islice(some, 60)]) for count, some in crossed(part, scope_delays(description), description)
    ]
    assert [count for count, _ in sizes] == counts
    for _, programs in sizes:
        assert len({one.name for one in programs}) == len(programs)
        again = crossing_named(programs[-1].name, part, scope_delays(description), description)
        assert again == programs[-1]
    pairs = [frozenset(type(call) for lane in one.lanes for call in lane) for one in sizes[0][1]]
    assert len({*pairs[:20]}) > 5


def test_the_first_programs_find_work() -> None:
    """A check finds a ready operation and empties the list of its key, beside a registration that waits under this key:
    known bug 4 (KAFKA-2253)."""
    _, programs = next(crossed("purgatory", scope_delays(PURGATORY), PURGATORY))
    able = (one for one in programs if one.cannot_step(PURGATORY, virtual=True) is None)
    names = [one.name for one in islice(able, _STEPPED)]
    assert any(name.startswith("op a ready, alone | check a beside register next a") for name in names)


@pytest.mark.parametrize(
    ("part", "description"),
    [
        ("timer", TIMER),
        ("timer", replace(TIMER, capabilities=("timer",), lanes=3)),
        ("purgatory", PURGATORY),
    ],
)
def test_a_random_program_can_be_played(part: Part, description: Description) -> None:
    """What it adds has a name of its own, where the subject takes none twice; and the same name is the same program."""
    able = replace(
        description, capabilities=tuple(one for one in description.capabilities if one != "add-again")
    )
    for number in range(200):
        drawn = [
            drawn_program(f"drawn-1-{number}", part, scope_delays(able), able, virtual=True) for _ in range(2)
        ]
        assert drawn[0] == drawn[1]
        assert drawn[0].ruled_out(able, virtual=True) is None
        assert len(drawn[0].lanes) > 1
