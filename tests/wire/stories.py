"""Wire histories as data: `twins/*.txt`, a story a paragraph, an event a line.

    f1_too_little  What it is about.
        topic
        produce 100, 105, 0
        fetch 10, 511 / 106, [("t", 0, 0, [0])], least=200
        -> F1 PASS / VIOLATED

A line is a method of `Story`, a function of `verbs`, or another story, told as it is when it is legal; behind it are
its arguments, as Python writes them. `a / b` differs between the variants of a story, most of which have two: the legal
one, and one that is broken. A line behind `legal:` or `broken:` is in that one alone. `range(...)` as the time tells a
line at each of these, and its answer as long after it. `twice` tells all that follows in two scenes. A line that begins
further in continues the one before.

`->` says what is expected: clauses (`R` is all of that letter), a verdict or `innocent` (all but VIOLATED), and perhaps
words that its reason or its causes have. A story of a clause, whose id its name begins with, expects PASS of the legal
one and VIOLATED of the broken one, which is repeated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.verdict import Verdict
from purgatorio_wire.clause.registry import WIRE_CLAUSES
from wire import verbs
from wire.story import Story

FOLDER = Path(__file__).parent / "twins"
SIDES = {"legal": 0, "broken": 1}
_EVENT = re.compile(r"(?:(legal|broken): )?(\w+) ?(.*)", re.DOTALL)
_EXPECTED = re.compile(r"-> ([A-Z0-9 ]+?) ((?:[A-Z]{4,}|innocent)(?: / [A-Z]{4,})*)(?: (.+))?")


@dataclass(frozen=True, slots=True)
class Event:
    """One line: in which variants (all: None), what, and its arguments."""

    side: int | None
    verb: str
    call: ast.Call

    @property
    def variants(self) -> int:
        return max([2 if self.side is not None else 1, *(len(_sides(x)) for x in ast.walk(self.call))])


@dataclass(frozen=True, slots=True)
class Expected:
    """Of these clauses, in each variant, and what is said of them."""

    clauses: tuple[str, ...]
    verdicts: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(slots=True)
class Told:
    name: str
    events: list[Event] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)

    @property
    def clause(self) -> str:
        """The clause that it is a story of; "" of one that others tell, or that says itself what is expected."""
        said = self.name.partition("_")[0].upper()
        return said if said in WIRE_CLAUSES and not self.expected else ""

    @property
    def variants(self) -> int:
        return max(one.variants for one in self.events)

    def tell(self, story: Story, variant: int = 0) -> Story:
        if self.events[0].verb == "twice":
            for number in range(2):
                story.scene = f"told#{number}"
                self._tell(story, variant, self.events[1:])
        else:
            self._tell(story, variant, self.events)
        return story

    def _tell(self, story: Story, variant: int, events: list[Event]) -> None:
        for one in events:
            if one.side not in (None, variant):
                continue
            chosen = _Chosen(variant).visit(ast.parse(ast.unparse(one.call), mode="eval"))
            code = compile(chosen, self.name, "eval")
            verb = _verb(story, one.verb)
            eval(code, {one.verb: _over_time(verb), "range": range, "__builtins__": {}})

    def judged(self, variant: int = 0) -> dict[str, ClauseResult]:
        """What comes of it; of the broken one of a clause, told twice."""
        story = self.tell(Story(), variant)
        if self.clause and variant:
            story.repeat()
        return story.results()

    def wrong(self, variant: int) -> list[str]:
        results, found = self.judged(variant), list[str]()
        if self.clause:
            right, one = (Verdict.PASS, Verdict.VIOLATED)[variant], results[self.clause]
            if one.verdict is not right or not one.occasions:
                found.append(f"{self.clause} {one.verdict.name}, {one.occasions} occasions: {_said(one)}")
        for expected in self.expected:
            verdict = expected.verdicts[variant % len(expected.verdicts)]
            for name, one in results.items():
                if name not in expected.clauses and name.rstrip("0123456789") not in expected.clauses:
                    continue
                right_one = one.verdict.name == verdict
                innocent = verdict == "innocent" and one.verdict is not Verdict.VIOLATED
                words = expected.words[variant % len(expected.words)]
                if not (right_one or innocent) or words not in _said(one):
                    found.append(f"{name} {one.verdict.name}: {_said(one)}")
        return found


def _said(one: ClauseResult) -> str:
    return f"{one.reason} {' '.join(one.causes)}"


def _verb(story: Story, name: str) -> Callable[..., object]:
    if name in stories():
        return lambda: stories()[name].tell(story)
    if hasattr(verbs, name):
        return lambda *given, **more: getattr(verbs, name)(story, *given, **more)
    told: Callable[..., object] = getattr(story, name)
    return told


def _over_time(verb: Callable[..., object]) -> Callable[..., None]:
    def tell(*given: object, **more: object) -> None:
        times = given[0] if given else None
        if not isinstance(times, range):
            verb(*given, **more)
            return
        for t in times:
            answers = [x + t - times[0] for x in given[1:2] if isinstance(x, int | float)]
            verb(t, *answers, *given[1 + len(answers) :], **more)

    return tell


def _sides(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [*(_sides(node.left) or [node.left]), node.right]
    return []


class _Chosen(ast.NodeTransformer):
    def __init__(self, variant: int) -> None:
        self._variant = variant

    def visit(self, node: ast.AST) -> Any:
        sides = _sides(node)
        return self.generic_visit(sides[self._variant % len(sides)] if sides else node)


@cache
def stories() -> dict[str, Told]:
    return {one.name: one for path in sorted(FOLDER.glob("*.txt")) for one in _read(path)}


def of_clause(clause: str) -> list[Told]:
    return [one for one in stories().values() if one.clause == clause]


def _read(path: Path) -> Iterator[Told]:
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        if paragraph.startswith("#"):
            continue
        name, _, rest = re.sub(r"\n {5,}", " ", paragraph.strip("\n")).partition("\n")
        told = Told(name.partition("  ")[0])
        for line in filter(None, rest.split("\n")):
            if said := _EXPECTED.fullmatch(line.strip()):
                told.expected.append(
                    Expected((*said[1].split(),), (*said[2].split(" / "),), (*(said[3] or "").split(" / "),))
                )
                continue
            event = _EVENT.fullmatch(line.strip())
            assert event is not None, f"{path.name}: {line}"
            call = ast.parse(f"{event[2]}({event[3]})", mode="eval").body
            assert isinstance(call, ast.Call), line
            told.events.append(Event(SIDES.get(event[1]), event[2], call))
        yield told
