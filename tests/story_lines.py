"""Histories as data, for traces (`spec.stories`) and the wire (`wire.stories`): a story a paragraph, an event a line.

A line is a verb and its arguments, as Python writes them. `a / b` differs between the variants of a story, most of
which have two: the legal one, and one that is broken. A line behind `legal:` or `broken:`, or behind numbers of
variants, is in those alone. `x = ...` names what the line gives, `... {` has inside what comes up to its `}`, and
`each 40: ...` tells a line 40 times, with the number in place of `{}`. A line that begins far in continues the one
before. `->` says what is expected.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

SIDES = {"legal": "0", "broken": "1"}
_LINE = re.compile(r"(?:(legal|broken|[\d ]+): )?(?:each (\d+): )?(?:(\w+) = )?(\w+) ?(.*?)( \{)?", re.DOTALL)


@dataclass(slots=True)
class Line:
    """A line of a story: its variants (None: all), the number of times, the name, the verb, its arguments, and the
    inner lines."""

    sides: set[int] | None
    times: int
    name: str
    verb: str
    call: ast.Call
    body: list[Line] = field(default_factory=list)
    _codes: dict[tuple[int, int], CodeType] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Line:
        found = _LINE.fullmatch(text)
        assert found is not None, text
        side, times, name, verb, given, _ = found.groups()
        call = ast.parse(f"verb({given})", mode="eval").body
        assert isinstance(call, ast.Call), text
        sides = None if side is None else set(map(int, SIDES.get(side, side).split()))
        return cls(sides, int(times or 1), name or "_", verb, call)

    def tell(self, verb: object, variant: int, names: Mapping[str, Any]) -> Iterator[Any]:
        """What each telling of it gives, in this variant."""
        if self.sides is not None and variant not in self.sides:
            return
        for number in range(self.times):
            code = self._codes.get((variant, number))
            if code is None:
                chosen = _Chosen(variant, number if self.times > 1 else None)
                tree = chosen.visit(ast.parse(ast.unparse(self.call), mode="eval"))
                code = self._codes[variant, number] = compile(tree, self.verb, "eval")
            yield eval(code, {"verb": verb, "__builtins__": {"range": range, "str": str}}, names)

    @property
    def variants(self) -> int:
        sided = [max(2, *(side + 1 for side in self.sides))] if self.sides else []
        found = [len(_sides(node)) for node in ast.walk(self.call)] + sided
        return max([1, *found, *(one.variants for one in self.body)])


def _sides(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return [*(_sides(node.left) or [node.left]), node.right]
    return []


class _Chosen(ast.NodeTransformer):
    def __init__(self, variant: int, number: int | None) -> None:
        self._variant, self._number = variant, number

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and self._number is not None:
            return ast.copy_location(ast.Constant(node.value.replace("{}", str(self._number))), node)
        sides = _sides(node)
        return self.generic_visit(sides[self._variant % len(sides)] if sides else node)


def paragraphs(paths: Iterable[Path], continued: int) -> Iterator[tuple[str, list[Line], list[str]]]:
    """The title, the lines and the expected results of each story in these files. A line that begins with
    `continued` blanks continues the previous line."""
    for path in sorted(paths):
        for paragraph in path.read_text(encoding="utf-8").split("\n\n"):
            if paragraph.startswith("#"):
                continue
            text = re.sub(rf"\n {{{continued},}}", " ", paragraph.strip("\n"))
            title, *rest = map(str.strip, text.split("\n"))
            lines, expected = list[Line](), list[str]()
            inside = [lines]
            for one in filter(None, rest):
                if one.startswith("-> "):
                    expected.append(one)
                elif one == "}":
                    inside.pop()
                else:
                    inside[-1].append(Line.read(one))
                    if one.endswith(" {"):
                        inside.append(inside[-1][-1].body)
            yield title, lines, expected
