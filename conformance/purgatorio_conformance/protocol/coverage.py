"""Reports the coverage of a run: the classes of bugs that the run targeted, the classes that it left out (with the
reason), and signs of a mistake in the adapter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from purgatorio_conformance.protocol.describe import Part
from purgatorio_conformance.protocol.driver import CommandSubject
from purgatorio_conformance.protocol.free_play import free_programs
from purgatorio_conformance.protocol.message import STEP, Description
from purgatorio_conformance.protocol.played_order import BROKEN, NO_LINE, NO_LINE_OF_ITS_OWN
from purgatorio_conformance.protocol.small_program import (
    ANY,
    CALLBACK,
    CLASSES,
    ERRORS,
    INTERVAL_ABOVE,
    LEVEL,
    MOVED,
    NO_RE_ENTRY,
    OTHER_WAYS,
    SEQUENCE,
)
from purgatorio_spec.durations import exact


def _parts(subjects: Sequence[CommandSubject]) -> Iterator[tuple[str, Part, list[CommandSubject]]]:
    """Yield each part of each program: its name, the part, and its subjects (one for each mode)."""
    for label, part in dict.fromkeys((subject.label, subject.part) for subject in subjects):
        yield (
            f"{label} {part}",
            part,
            [subject for subject in subjects if (subject.label, subject.part) == (label, part)],
        )


def _looked(ways: Sequence[CommandSubject]) -> dict[str, int]:
    """Count the executions of small programs for each class of bugs that was tested for."""
    plays: dict[str, int] = {}
    for orders in (orders for way in ways for orders in way.account.orders if not orders.skipped):
        plays[orders.program.targets] = plays.get(orders.program.targets, 0) + orders.plays
    return plays


def looked_for(subjects: Sequence[CommandSubject]) -> list[tuple[str, str]]:
    """For each program and part, by name: the classes of bugs that were tested for, with the number of executions."""
    found: list[tuple[str, str]] = []
    for name, _, ways in _parts(subjects):
        found += [(name, f"{way.mode}: {way.account.reached}") for way in ways if way.account.reached]
        if looked := _looked(ways):
            plays = "; ".join(f"{one} {plays:,}" for one, plays in looked.items())
            found.append((name, f"tested for, in number of executions: {plays}"))
    return found


def _unstopped(way: CommandSubject) -> Iterator[str]:
    """Yield the small programs that did not run with pauses at lines, for each reason."""
    for why in (NO_LINE, NO_LINE_OF_ITS_OWN):
        names = [orders.program.name for orders in way.account.orders if orders.skipped == why]
        if names:
            yield f"not run with pauses at lines ({why}): {', '.join(names)}"


_OF_ONE: Final = {CALLBACK, ERRORS, SEQUENCE}
"""Classes of bugs that need no second caller."""

_ASLEEP: Final = "not tested (no late_real_ns): in real time, a thread that sleeps past a deadline"


def _not_asked(way: CommandSubject) -> str:
    """Describe the missing test of negative delays, and the reason; empty if the subject accepts negative delays."""
    least_ns, unit_ns = way.description.least_delay_ns, way.description.unit_ns
    # Delays are rounded up to whole units.
    if least_ns <= -unit_ns:
        return ""
    takes = f"least_delay_ns is {least_ns:,}" + (f", and unit_ns {unit_ns:,}" if least_ns < 0 else "")
    return f"not tested ({takes}): a negative delay that is treated as zero, or as a long delay"


def _not_late(ways: Sequence[CommandSubject]) -> str:
    """Describe the lateness that runs in real time allow; empty if a run had virtual time, or without a bound."""
    first, of = ways[0], ways[0].description
    if any(way.virtual for way in ways) or (of.late_ns is None and of.late_real_ns is None):
        return ""
    if of.late_ns is None:
        return (
            "not tested (no late_ns, no run in virtual time): a late task, unless all threads sleep meanwhile"
        )
    turn = exact(of.tick_ns * of.wheel_size) if of.tick_ns and of.wheel_size else ""
    allowed = exact(of.late_ns + first.late_slack_ns)
    return f"not tested (no run in virtual time): a task that runs late by up to {allowed}" + (
        f", for example by a turn of a wheel ({turn})" if turn else ""
    )


def _not_repeated(of: Description) -> str:
    """Describe the missing test of periods below a tick, which a sound timer may round up; empty without ticks."""
    if (
        not of.tick_ns
        or of.tick_ns <= of.unit_ns
        or {"fixed-rate", "fixed-delay"}.isdisjoint(of.capabilities)
    ):
        return ""
    return f"not tested (tick_ns is {of.tick_ns:,}): periods below a tick, which a timer may round up"


def _not_declared(description: Description, targets: str, gated: bool) -> str:
    """What a description lacks for programs of this class, if no run had such a program."""
    if not gated:
        return "no gates: see docs/subject-protocol.md#gates-races-by-control"
    if targets == CALLBACK and "no-re-entry" in description.capabilities:
        return NO_RE_ENTRY
    if targets == ERRORS and "failing" not in description.capabilities:
        return "no capability failing"
    return "no program for these gates"


def not_looked_for(subjects: Sequence[CommandSubject]) -> list[tuple[str, str]]:
    """For each program and part, by name: the classes of bugs that were not tested, or only by chance in free runs,
    with the reason. Then: whether negative delays, and delays that a thread may sleep past, were not used, the
    lateness that real time allows, and periods below a tick. For each mode: the parts that were left out, and the small
    programs that did not run with pauses at lines."""
    found: list[tuple[str, str]] = []
    for name, part, ways in _parts(subjects):
        units, looked = any(way.of_units for way in ways), _looked(ways)
        said = [] if units else _untested(part, ways)
        rare = {
            orders.program.name: orders.skipped
            for way in ways if way.held for orders in way.account.orders
            if orders.skipped.startswith(INTERVAL_ABOVE) and orders.program.targets in looked
        }  # fmt: skip
        said += [f"not run ({next(iter(rare.values()))}): {', '.join(rare)}"] if rare else []
        if not units:
            periods = _not_repeated(ways[0].description) if part == "timer" else ""
            said += filter(None, (_not_asked(ways[0]), _not_late(ways), periods))
        if any(way.mode == "real" and way.description.late_real_ns is None for way in ways):
            said.append(_ASLEEP)
        lost = dict.fromkeys(way.account.lost for way in ways if way.account.lost)
        said += [f"races between two lines were not tested: {why}" for why in lost]
        found += [(name, one) for one in said]
        found += [(way.name, f"left out: {way.account.left_out}") for way in ways if way.account.left_out]
        found += [(way.name, one) for way in ways for one in _unstopped(way)]
    return found


def _untested(part: Part, ways: Sequence[CommandSubject]) -> list[str]:
    """The classes of bugs that were not tested, or only by chance, with the reasons."""
    looked, gated = _looked(ways), [way for way in ways if way.held]
    lacks: dict[str, list[str]] = {}
    for orders in (orders for way in gated for orders in way.account.orders):
        lacks.setdefault(orders.program.targets, []).append(orders.skipped)
    by_chance = set[str]()
    if any(way.kind == "free" for way in ways):
        by_chance = {SEQUENCE, ANY, *(one.targets for one in free_programs(ways[0].description, part))}
    none = ""
    if any(way.account.broke_off or not way.account.orders for way in gated):
        none = "the gated run ended early"
    elif gated and not any(way.virtual for way in gated):
        none = "no run in virtual time"
    missing: dict[tuple[str, str], dict[str, None]] = {}
    # Without a declared wheel, the classes of bugs of a wheel do not apply.
    apply = [one for one in CLASSES[part] if ways[0].description.wheel_size or one not in (LEVEL, MOVED)]
    for targets in (one for one in apply if one not in looked):
        due = none or _not_declared(ways[0].description, targets, bool(gated))
        # If a broken promise prevented the programs, that is the reason: the subject lacks nothing. A reason of one
        # mode comes last, because another mode may run the program.
        why = min(lacks.get(targets, [due]), key=lambda one: (one != BROKEN, one in OTHER_WAYS))
        if ways[0].description.lanes == 1 and targets not in _OF_ONE and why not in (none, BROKEN):
            why, targets = "one caller; if several threads may call, declare lanes", "races"
        left = "tested only by chance" if targets in by_chance else "not tested"
        missing.setdefault((left, why), {})[targets] = None
    if (
        ways[0].description.lanes > 1
        and gated
        and not any(STEP in way.description.gates or way.account.lost for way in gated)
    ):
        left = "tested only by chance" if by_chance else "not tested"
        missing.setdefault((left, f"no gate at {STEP}"), {})["races between two lines of the program"] = None
    return [f"{left} ({why}): {'; '.join(these)}" for (left, why), these in missing.items()]


def doubted(subjects: Sequence[CommandSubject]) -> list[tuple[str, str]]:
    """For each program and part, by name: signs of a mistake in its adapter, each with the mode of the first such run.
    Only the author of the adapter can distinguish such a mistake from a bug of the subject."""
    found: list[tuple[str, str]] = []
    for name, _, ways in _parts(subjects):
        first: dict[str, str] = {}
        for way in ways:
            for doubt in way.account.doubted:
                said = f"perhaps a mistake of the adapter ({way.mode}): {doubt}"
                first.setdefault(doubt.partition("'")[0], said)
        found += [(name, told) for told in first.values()]
    return found
