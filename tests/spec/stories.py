"""Histories as data: `twins/*.txt`, in the notation of `story_lines`.

    o4_unclaimed_on_return [locked, timer]  What it is about.
        register "a"
        force = start "force_complete", "a"
        legal: check "k", "a"
        broken: check "k"
        end force, 0 / 1
        -> O4 kept / unclaimed-on-return

A verb is a method of `Trace`. `x = start ...` names the call that `end x` ends, and `call ... {` is open until its `}`.
In brackets are the profiles, each of which is told; without them it is `locked`.

`->` says what is expected of a clause: `kept` (PASS with an occasion), `idle` (no occasion, and not broken), a verdict,
or the causes. Where a story of no clause expects none to be broken, none is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.trace.record import FUNCTIONS, State
from purgatorio_spec.verdict import Verdict
from spec.trace_builder import MS, Trace
from story_lines import Line, paragraphs

_TITLE = re.compile(r"(\w+)(?: \[([^]]+)\])?(?:  .*)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Told:
    """One story under one profile. `expected`: by clause, for each variant."""

    name: str
    profile: str
    lines: list[Line]
    expected: dict[str, list[str]]

    def __str__(self) -> str:
        return self.name if self.profile == "locked" else f"{self.name}-{self.profile}"

    @property
    def clause(self) -> str:
        """The clause that it is a story of, by its name; "" of one that is about something else."""
        said = self.name.partition("_")[0].upper()
        return said if said in self.expected else ""

    @property
    def variants(self) -> int:
        return max([one.variants for one in self.lines] + [len(said) for said in self.expected.values()])

    def made(self, variant: int) -> Trace:
        made = Trace(self.profile)
        _tell(self.lines, made, variant, {"MS": MS, "State": State, "FUNCTIONS": FUNCTIONS})
        made.events = [event for event in made.events if event.f not in made.hidden]
        return made

    def expects(self, clause: str, variant: int) -> str:
        said = self.expected[clause]
        return said[variant % len(said)]

    def wrong(self, variant: int, results: Mapping[str, ClauseResult]) -> list[str]:
        said = {clause: self.expects(clause, variant) for clause in self.expected}
        found = [
            f"{name}: {_said(results[name])}, not {one}"
            for name, one in said.items()
            if not _is(results[name], one)
        ]
        if not self.clause and all(_is_legal(one) for one in said.values()):
            found += [f"{name}: {list(one.causes)}" for name, one in results.items() if one.causes]
        return found


def _tell(lines: Iterable[Line], made: Trace, variant: int, names: dict[str, Any]) -> None:
    for line in lines:
        for told in line.tell(getattr(made, line.verb), variant, names):
            names[line.name] = told
            if line.body:
                with told:
                    _tell(line.body, made, variant, names)


def _is_legal(expected: str) -> bool:
    return expected in ("kept", "idle") or expected in Verdict.__members__


def _is(result: ClauseResult, expected: str) -> bool:
    if expected == "kept":
        return result.verdict is Verdict.PASS and result.occasions > 0
    if expected == "idle":
        return not result.occasions and not result.causes
    return result.verdict.name == expected or list(result.causes) == expected.split(", ")


def _said(result: ClauseResult) -> str:
    return f"{result.verdict.name}, {result.occasions} occasions, {list(result.causes)}"


def stories(folder: str = "twins") -> Iterator[Told]:
    for head, lines, expected in paragraphs((Path(__file__).parent / folder).glob("*.txt"), 12):
        title = _TITLE.fullmatch(head)
        assert title is not None, head
        said = {clause: rest.split(" / ") for clause, rest in (one[3:].split(" ", 1) for one in expected)}
        for profile in (title[2] or "locked").split(", "):
            yield Told(title[1], profile, lines, said)
