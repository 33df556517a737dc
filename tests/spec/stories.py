"""Histories as data: `twins/*.txt`, a story a paragraph, an event a line, in the notation of `wire/stories.py`.

    o4_unclaimed_on_return [locked, timer]  What it is about.
        register "a"
        force = start "force_complete", "a"
        legal: check "k", "a"
        broken: check "k"
        end force, 0 / 1
        -> O4 kept / unclaimed-on-return

A line is a method of `Trace`; behind it are its arguments, as Python writes them. `x = start ...` names the call that
`end x` ends, `call ... {` is open until its `}`, and `each 40: ...` tells a line 40 times, with the number in place of
`{}`. `a / b` differs between the variants of a story, most of which have two: the legal one, and one that is broken. A
line behind `legal:` or `broken:`, or behind numbers of variants, is in those alone. In brackets are the profiles, each
of which is told; without them it is `locked`. A line that begins
far in continues the one before.

`->` says what is expected of a clause: `kept` (PASS with an occasion), `idle` (no occasion, and not broken), a verdict,
or the causes. Where a story of no clause expects none to be broken, none is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from purgatorio_spec.judge.result import ClauseResult
from purgatorio_spec.trace.record import FUNCTIONS, State
from purgatorio_spec.verdict import Verdict
from spec.trace_builder import MS, Trace

SIDES = {"legal": "0", "broken": "1"}
_LINE = re.compile(r"(?:(legal|broken|[\d ]+): )?(?:each (\d+): )?(?:(\w+) = )?(\w+) ?(.*?)( \{)?", re.DOTALL)
_TITLE = re.compile(r"(\w+)(?: \[([^]]+)\])?(?:  .*)?", re.DOTALL)


@dataclass(slots=True)
class Line:
    """In which variants (all: None), how often, under which name, which method, its arguments, and what is inside."""

    sides: set[int] | None
    times: int
    name: str
    verb: str
    call: ast.Call
    body: list[Line] = field(default_factory=list)

    def tell(self, made: Trace, variant: int, names: dict[str, Any]) -> None:
        if self.sides is not None and variant not in self.sides:
            return
        for number in range(self.times):
            chosen = _Chosen(variant, number).visit(ast.parse(ast.unparse(self.call), mode="eval"))
            code = compile(chosen, self.verb, "eval")
            told = eval(
                code, {"verb": getattr(made, self.verb), "__builtins__": {"range": range, "str": str}}, names
            )
            names[self.name] = told
            if self.body:
                with told:
                    for line in self.body:
                        line.tell(made, variant, names)


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
        nodes = [node for line in _all(self.lines) for node in ast.walk(line.call)]
        sided = [max(line.sides) + 1 for line in _all(self.lines) if line.sides]
        return max([len(_sides(node)) for node in nodes] + sided + [1, *map(len, self.expected.values())])

    def made(self, variant: int) -> Trace:
        made, names = Trace(self.profile), {"MS": MS, "State": State, "FUNCTIONS": FUNCTIONS}
        for line in self.lines:
            line.tell(made, variant, names)
        made.events = [event for event in made.events if event.f not in made.hidden]
        return made

    def expects(self, clause: str, variant: int) -> str:
        said = self.expected[clause]
        return said[variant % len(said)]

    def wrong(self, variant: int) -> list[str]:
        """What is not as it is expected."""
        results = self.made(variant).judge().clauses
        said = {clause: self.expects(clause, variant) for clause in self.expected}
        found = [
            f"{name}: {_said(results[name])}, not {one}"
            for name, one in said.items()
            if not _is(results[name], one)
        ]
        if not self.clause and all(_is_legal(one) for one in said.values()):
            found += [f"{name}: {list(one.causes)}" for name, one in results.items() if one.causes]
        return found


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


def _all(lines: list[Line]) -> Iterator[Line]:
    for line in lines:
        yield line
        yield from _all(line.body)


def _sides(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [*(_sides(node.left) or [node.left]), node.right]
    return []


class _Chosen(ast.NodeTransformer):
    def __init__(self, variant: int, number: int) -> None:
        self._variant, self._number = variant, str(number)

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return ast.copy_location(ast.Constant(node.value.replace("{}", self._number)), node)
        sides = _sides(node)
        return self.generic_visit(sides[self._variant % len(sides)] if sides else node)


def _read(path: Path) -> Iterator[Told]:
    for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
        if paragraph.startswith("#"):
            continue
        head, *rest = re.sub(r"\n {12,}", " ", paragraph.strip("\n")).split("\n")
        title = _TITLE.fullmatch(head)
        assert title is not None, f"{path.name}: {head}"
        lines, expected = list[Line](), dict[str, list[str]]()
        inside = [lines]
        for text in map(str.strip, rest):
            if text.startswith("-> "):
                clause, said = text[3:].split(" ", 1)
                expected[clause] = said.split(" / ")
            elif text == "}":
                inside.pop()
            else:
                found = _LINE.fullmatch(text)
                assert found is not None, f"{path.name}: {text}"
                side, times, name, verb, given, opens = found.groups()
                call = ast.parse(f"verb({given})", mode="eval").body
                assert isinstance(call, ast.Call), text
                sides = None if side is None else set(map(int, SIDES.get(side, side).split()))
                inside[-1].append(Line(sides, int(times or 1), name or "_", verb, call))
                if opens:
                    inside.append(inside[-1][-1].body)
        for profile in (title[2] or "locked").split(", "):
            yield Told(title[1], profile, lines, expected)


def stories() -> list[Told]:
    return [one for path in sorted((Path(__file__).parent / "twins").glob("*.txt")) for one in _read(path)]
