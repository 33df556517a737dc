"""Checks that the fields of a subject's description do not contradict each other, and makes the header of the trace
from the description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from purgatorio_conformance.protocol.conversation import Misbehaved
from purgatorio_conformance.protocol.message import CAPABILITIES, PROTOCOL, REPORTABLE, STEP, Description
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.trace.record import Header, Implementation, TimerConstants, TraceClock

Part = Literal["timer", "purgatory"]

_MUST_REPORT: Final[dict[Part, frozenset[str]]] = {
    "timer": frozenset({"timer_fire"}),
    "purgatory": frozenset({"on_complete", "force_complete"}),
}
_SINCE_1_2: Final = frozenset(name for name, meaning in CAPABILITIES.items() if meaning.startswith("1.2: "))
_SINCE_1_1: Final = frozenset({"add-again", "add-same", "failing"})
_PERIODIC: Final = {
    "fixed-rate": "timer_fixed_rate",
    "fixed-delay": "timer_fixed_delay",
    "reset": "timer_reset",
    "reset-periodic": "timer_reset",
}
_OF_TIMER: Final = frozenset({"timer_add", "timer_cancel", "timer_fire"})
_PLAIN_TIMER: Final = "timer"
_BARRIER_TIMER: Final = "timer-cancel-barrier"


def parts_of(description: Description) -> list[Part]:
    parts: list[Part] = ["timer", "purgatory"]
    return [part for part in parts if part in description.capabilities]


def profile_of(description: Description) -> str:
    """The name of the profile. Older adapters declare a capability instead of the profile of a timer."""
    if description.profile is not None:
        return description.profile
    return _BARRIER_TIMER if "cancel-barrier" in description.capabilities else _PLAIN_TIMER


def hands_over(description: Description) -> bool:
    """Whether each event of a key brings one unit, for one of the waiting operations (profile `hand-over`)."""
    return PROFILES[profile_of(description)].hands_over


def check_description(description: Description) -> None:
    """Raise Misbehaved if the description contradicts itself, or if it contains no promise to judge by."""
    for why in _contradictions(description):
        raise Misbehaved("rubbish", why)


def _contradictions(description: Description) -> Iterator[str]:
    """Yield the faults of the description, the most basic first."""
    parts = parts_of(description)
    if not parts:
        yield "it declares neither the capability timer nor purgatory"
    if not {"virtual-time", "real-time"} & set(description.capabilities):
        yield "it declares neither the capability virtual-time nor real-time"
    for part in parts:
        missing = _MUST_REPORT[part] - set(description.reports)
        if missing:
            yield f"a {part} must report {', '.join(sorted(missing))}"
    newer = [*description.gates, *_SINCE_1_1.intersection(description.capabilities)]
    if newer and description.protocol == PROTOCOL:
        yield f"{PROTOCOL} does not know {newer[0]}: it came with {PROTOCOL}.1"
    newest = [*_SINCE_1_2.intersection(description.capabilities)]
    newest += [name for name in ("catch_up", "turn") if getattr(description, name) is not None]
    if newest and description.protocol in (PROTOCOL, f"{PROTOCOL}.1"):
        yield f"{description.protocol} does not know {newest[0]}: it came with {PROTOCOL}.2"
    known = (*REPORTABLE, STEP)
    own = [place for place in description.gates if place not in known and not place.startswith("x_")]
    if own:
        yield (
            f"a gate at the unknown place {own[0]!r}: a place of your own needs a name that begins with x_"
        )
    if description.most_delay_ns < max(description.least_delay_ns, description.unit_ns):
        yield "no delay is possible: most_delay_ns is below least_delay_ns or unit_ns"
    profile = PROFILES.get(profile_of(description))
    if profile is None:
        yield f"no profile {description.profile!r}; there are: {', '.join(PROFILES)}"
    else:
        if "purgatory" in parts and "O1" not in profile.clauses:
            yield f"the profile {profile.name} has no promises for a purgatory"
        if profile.hands_over and "on_expiration" not in description.reports:
            yield f"with the profile {profile.name}, it must report on_expiration"


def reported(description: Description, part: Part) -> tuple[str, ...]:
    """The functions that events may report while this part is driven."""
    if part == "timer":
        return ("timer_fire",)
    return tuple(f for f in REPORTABLE if f in description.reports)


def header_of(
    description: Description,
    part: Part,
    *,
    run: str,
    virtual: bool,
    late_slack_ns: int,
    params: dict[str, object],
    periodic: bool = False,
    resets: bool = False,
) -> Header:
    """The header of a run's trace. `late_slack_ns` is added only to a late bound that the description declares. In
    virtual time the clock stops only at whole units, so the late bound has whole units.
    `periodic`: whether the run has periodic tasks, resets and turns. `resets`: whether it has resets only."""
    late_ns = None if description.late_ns is None else description.late_ns + late_slack_ns
    late_ns = description.rounded(late_ns) if late_ns and virtual else late_ns
    real_ns = None if virtual else description.early_real_ns
    return Header(
        run=run,
        implementation=Implementation(description.name, description.version, description.language),
        profile=profile_of(description),
        timer=TimerConstants(
            tick_ns=description.tick_ns,
            wheel_size=description.wheel_size,
            early_ns=description.early_ns if real_ns is None else real_ns,
            late_ns=late_ns,
            catch_up=description.catch_up if periodic else None,
            turn=description.turn if periodic and virtual else None,
        ),
        purge_interval=description.purge_interval,
        clock=TraceClock("manual" if virtual else "monotonic", "ns"),
        recorded=_recorded(description, part, virtual=virtual, periodic=periodic, resets=resets),
        params={
            "protocol": PROTOCOL,
            **({"late_slack_ns": late_slack_ns} if late_slack_ns else {}),
            **params,
        },
    )


def _recorded(
    description: Description, part: Part, *, virtual: bool, periodic: bool, resets: bool
) -> tuple[str, ...]:
    functions = {"quiesce", *reported(description, part)}
    if virtual:
        functions.add("advance_clock")
    if "gauge" in description.capabilities:
        functions.add("gauge")
    if "halts" in description.capabilities:
        functions.add("halted")
    if part == "timer":
        # If the subject cannot cancel, the run has no cancel calls, so none is left unrecorded.
        functions |= {"timer_add", "timer_cancel"}
    else:
        functions |= {"try_complete_else_watch", "check_and_complete", "cancel_for_key", "cancelled", "ready"}
        if hands_over(description):
            # An operation waits for a unit. It has no condition, so no evaluation is left unrecorded. Its time-out may
            # be inside code that reports no timer: then O3 asks for one thread.
            functions = (functions | {"try_complete"}) - _OF_TIMER
    if resets:
        functions.add("timer_reset")
    if periodic:
        functions.update(f for can, f in _PERIODIC.items() if can in description.capabilities)
    return tuple(sorted(functions))


def plays_periodic(description: Description, *, virtual: bool) -> bool:
    """Whether the subject has a feature of protocol 1.2 that a run in this time can use."""
    chains = virtual and description.turn is not None and "timer_fire" in description.gates
    return "timer" in description.capabilities and (
        chains or not _SINCE_1_2.isdisjoint(description.capabilities)
    )
