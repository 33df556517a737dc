"""The parts of a model: an initial state, a function that lists the transitions of a state, and properties.

The kinds of properties:

- `always` must be true in every reachable state.
- `always_step` must be true in every transition.
- `sometimes` must be true in at least one state. It shows that the other properties are not vacuous.
- `possible` must stay reachable from every state.
- `eventually` must become true on every weakly fair run (see `fairness`).

A state without transitions that is not `done` is a deadlock.

The search is breadth-first and complete, so counterexamples are shortest. If it reaches a limit, every property without
a counterexample is UNKNOWN, never PASS. Not supported: partial-order reduction, real time, probabilities, and state
spaces larger than the memory (about 150 bytes a state).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from purgatorio_spec.verdict import Verdict, worst

S = TypeVar("S", bound=Hashable)

Predicate = Callable[[S], bool]
DEADLOCK = "no deadlock"


@dataclass(frozen=True, slots=True)
class Move:
    """One line of a counterexample: the column that acts, and its action."""

    column: str
    text: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A path from an initial state; `loop` is the part that repeats forever (empty for a finite path)."""

    steps: tuple[Move, ...]
    loop: tuple[Move, ...] = ()


@dataclass(frozen=True)
class Model(Generic[S]):
    """A model to search. `steps` lists (actor, next state); an actor is an index into `columns`."""

    name: str
    bound: str
    columns: tuple[str, ...]
    initial: tuple[S, ...]
    steps: Callable[[S], list[tuple[int, S]]]
    describe: Callable[[S, int, S], Move]
    done: Predicate[S]
    always: Mapping[str, Predicate[S]] = field(default_factory=dict)
    always_step: Mapping[str, Callable[[S, int, S], bool]] = field(default_factory=dict)
    sometimes: Mapping[str, Predicate[S]] = field(default_factory=dict)
    possible: Mapping[str, Predicate[S]] = field(default_factory=dict)
    eventually: Mapping[str, Predicate[S]] = field(default_factory=dict)
    canonical: Callable[[S], S] | None = None
    fair: bool = True


@dataclass(frozen=True, slots=True)
class ModelFinding:
    """The verdict on one property, and the shortest path that breaks it (None if none was found)."""

    property: str
    verdict: Verdict
    trace: Trace | None = None


@dataclass(frozen=True, slots=True)
class ModelResult:
    """`story`: the shortest path that breaks a property, as a table; empty if none is asked for, or all hold."""

    model: str
    bound: str
    findings: tuple[ModelFinding, ...]
    states: int
    seconds: float
    story: str = ""

    @property
    def verdict(self) -> Verdict:
        """VIOLATED if any property is VIOLATED, else UNKNOWN if any is UNKNOWN, else PASS."""
        return worst(finding.verdict for finding in self.findings)

    def finding(self, name: str) -> ModelFinding:
        for finding in self.findings:
            if finding.property == name:
                return finding
        raise KeyError(f"{self.model} has no property {name!r}")


def render(trace: Trace, columns: Sequence[str]) -> str:
    """The path as a table. An actor that does not move has no column, so a short path stays narrow."""
    acting = {step.column for step in (*trace.steps, *trace.loop)}
    shown = [column for column in columns if column in acting]
    widths = [_width(column, trace) for column in shown]
    lines = [_row("", shown, widths), _row("", ["-" * width for width in widths], widths)]
    lines += [_step_row(number, step, shown, widths) for number, step in enumerate(trace.steps, 1)]
    if trace.loop:
        lines.append("    and then for ever:")
        first = len(trace.steps) + 1
        lines += [_step_row(number, step, shown, widths) for number, step in enumerate(trace.loop, first)]
    return "\n".join(lines)


def _width(column: str, trace: Trace) -> int:
    texts = [step.text for step in (*trace.steps, *trace.loop) if step.column == column]
    return max(len(text) for text in (column, *texts))


def _step_row(number: int, step: Move, shown: Sequence[str], widths: Sequence[int]) -> str:
    return _row(str(number), [step.text if column == step.column else "" for column in shown], widths)


def _row(number: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"{number:>3} {padded}".rstrip()
