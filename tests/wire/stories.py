"""Wire histories as data: `twins/*.txt`, in the notation of `story_lines`.

    f1_too_little  What it is about.
        topic
        produce 100, 105, 0
        fetch 10, 511 / 106, [("t", 0, 0, [0])], least=200
        -> F1 PASS / VIOLATED

A verb is a method of `Story`, a function of `verbs`, or another story, told as it is when it is legal. `range(...)` as
the time tells a line at each of these, and its answer as long after it. `twice` tells all that follows in two scenes.

`->` says what is expected: clauses (`R` is all of that letter), a verdict or `innocent` (all but VIOLATED), and perhaps
words that its reason or its causes have. A story of a clause, whose id its name begins with, expects PASS of the legal
one and VIOLATED of the broken one, which is repeated.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.verdict import Verdict
from purgatorio_wire import judge
from purgatorio_wire.clause.registry import WIRE_CLAUSES
from purgatorio_wire.history.bound import RowStatus
from purgatorio_wire.history.finding import Row
from purgatorio_wire.judge import JUDGES
from story_lines import Line, paragraphs
from wire import verbs
from wire.story import Story

_EXPECTED = re.compile(r"-> ([A-Z0-9 ]+?) ((?:[A-Z]{4,}|innocent)(?: / [A-Z]{4,})*)(?: (.+))?")


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected verdicts of these clauses, in each variant, and parts of their reasons."""

    clauses: tuple[str, ...]
    verdicts: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    name: str
    lines: list[Line]
    expected: list[Expected]

    @property
    def clause(self) -> str:
        """The clause of the story; "" for a story that others use, or that names its expected verdicts."""
        said = self.name.partition("_")[0].upper()
        return said if said in WIRE_CLAUSES and not self.expected else ""

    @property
    def variants(self) -> int:
        return max(one.variants for one in self.lines)

    def tell(self, story: Story, variant: int = 0) -> Story:
        if self.lines[0].verb == "twice":
            for number in range(2):
                story.scene = f"told#{number}"
                self._tell(story, variant, self.lines[1:])
        else:
            self._tell(story, variant, self.lines)
        return story

    def _tell(self, story: Story, variant: int, lines: Iterable[Line]) -> None:
        for one in lines:
            for _ in one.tell(_over_time(_verb(story, one.verb)), variant, {}):
                pass

    def wrong(self, variant: int) -> list[str]:
        results, found = judged(self.name, variant)[0], list[str]()
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


@cache
def judged(name: str, variant: int) -> tuple[dict[str, ClauseResult], set[tuple[int, str, str, RowStatus]]]:
    """The results of a story, and of the broken variant of a clause, told twice. Also the judge, the clause, the
    cause and the text of each row."""
    told, rows = stories()[name], set[tuple[int, str, str, RowStatus]]()
    story = told.tell(Story(), variant)
    if told.clause and variant:
        story.repeat()

    def watched(at: int) -> judge.Judge:
        def judged_rows(*given: Any) -> Iterable[Row]:
            for row in JUDGES[at][1](*given):
                rows.add((at, row.clause, row.cause, row.status))
                yield row

        return judged_rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judge, "JUDGES", tuple((who, watched(at)) for at, (who, _) in enumerate(JUDGES)))
        return story.results(), rows


@cache
def stories() -> dict[str, Told]:
    return {name: Told(name, lines, expected) for name, lines, expected in _read()}


def of_clause(clause: str) -> list[Told]:
    return [one for one in stories().values() if one.clause == clause]


def _read() -> Iterable[tuple[str, list[Line], list[Expected]]]:
    for title, lines, texts in paragraphs((Path(__file__).parent / "twins").glob("*.txt"), 5):
        expected = []
        for text in texts:
            said = _EXPECTED.fullmatch(text)
            assert said is not None, text
            words = (*(said[3] or "").split(" / "),)
            expected.append(Expected((*said[1].split(),), (*said[2].split(" / "),), words))
        yield title.partition("  ")[0], lines, expected
