"""Replay tokens, and runs that follow a token.

A token names a program and the whole schedule. For example, the token `two-events/locked/0/1x9-2x14-1x3` has four
parts: the scenario, the dialect, how many waits of each thread may time out early (0 without `--package`), and the
schedule. The schedule has 9 scheduling points of task 1, then 14 of task 2, then 3 of task 1. `T` means that time
passes. A token does not name the mutant, so the replay needs the option `--mutant` too. A token is valid only for the
version of the code that printed it. The replay reports a token that does not fit the code.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from purgatorio_stress.explorer.endless import NO_END_S, bounded_cpu
from purgatorio_stress.explorer.program import Broken, Program, carry_out
from purgatorio_stress.explorer.run import CUT, Execution
from purgatorio_stress.explorer.schedule import Choices
from purgatorio_stress.explorer.step import KIND_NAMES, READ, RELEASE, TIME
from purgatorio_stress.explorer.task import ReplayStep


class BadToken(ValueError):
    """The text is not a token, or the token does not fit the code."""


@dataclass(frozen=True, slots=True)
class Token:
    scenario: str
    dialect: str
    early: int
    schedule: tuple[int, ...]

    def __str__(self) -> str:
        runs = [(task, len(list(steps))) for task, steps in groupby(self.schedule)]
        text = "-".join(
            "T" if task == TIME else f"{task}x{count}" for task, count in runs for _ in _times(task, count)
        )
        return f"{self.scenario}/{self.dialect}/{self.early}/{text}"

    @classmethod
    def parse(cls, text: str) -> "Token":
        """The token that `text` contains. Raises BadToken if the text is not a token."""
        parts = text.strip().split("/")
        if len(parts) != 4 or not parts[2].isdigit():
            raise BadToken(f"{text!r} is not a token: copy the token of a counterexample")
        schedule: list[int] = []
        for part in parts[3].split("-"):
            task, _, count = part.partition("x")
            if part == "T":
                schedule.append(TIME)
            elif task.isdigit() and count.isdigit() and int(count) <= 100_000:
                schedule += [int(task)] * int(count)
            else:
                raise BadToken(f"{part!r} is not a part of a schedule")
        return cls(parts[0], parts[1], int(parts[2]), tuple(schedule))


def _times(task: int, count: int) -> range:
    """The number of entries in the text of a schedule: one for each `T`, one for all consecutive points of a task."""
    return range(count if task == TIME else 1)


class _Follower(Choices):
    """Follows a schedule. At a step that is not possible, it cuts the run and sets `diverged_at`."""

    def __init__(self, schedule: Sequence[int]) -> None:
        super().__init__()
        self._schedule = schedule
        self.diverged_at = -1

    def pick(self, run: Execution, able: list[int]) -> int:
        if run.depth >= len(self._schedule):
            if not able:
                return TIME
            return run.current.index if run.current.index in able else able[0]
        index = self._schedule[run.depth]
        if index not in able and not (index == TIME and not able):
            self.diverged_at = run.depth
            return CUT
        return index


@dataclass(frozen=True, slots=True)
class Replay:
    """A repeated run: the place of each scheduling point, the names of objects and tasks, the violations, and the
    number of preemptions."""

    places: tuple[ReplayStep, ...]
    names: dict[int, str]
    tasks: tuple[str, ...]
    broken: tuple[Broken, ...]
    preemptions: int

    def words(self, place: ReplayStep) -> str:
        """The kind and the object of a scheduling point, such as `try operation`."""
        if not place.task:
            return place.function
        if place.obj < 0:
            return {READ: "start", RELEASE: "end"}.get(place.kind, "join")
        return f"{KIND_NAMES[place.kind]} {self.names.get(place.obj, '?')}"


def replay(program: Program, schedule: Sequence[int]) -> Replay:
    """Repeat a run. Raises BadToken if the schedule does not fit the code, and NoEnd if the run has no end."""
    follower = _Follower(schedule)

    def note_all(run: Execution) -> None:
        run.places = []
        run.names = {}

    with bounded_cpu(NO_END_S):
        run, broken = carry_out(program, follower, [], prepare=note_all)
    if follower.diverged_at >= 0:
        raise BadToken(
            f"the token does not fit the code: its step {follower.diverged_at} is not possible. The code has changed "
            "since the token was printed, or its bug is mended: run the search again, without --replay"
        )
    tasks = tuple(task.name for task in run.tasks[1:])
    return Replay(
        tuple(run.places or ()), dict(run.names or {}), tasks, tuple(broken), follower.preemptions()
    )
