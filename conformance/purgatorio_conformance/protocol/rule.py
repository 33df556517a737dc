"""Rules for the values of message fields, and the decoder that applies these rules.

A message is a dataclass whose fields are `Annotated[type, rule, "what it means"]`. The decoder, the JSON Schema and the
documentation page are made from these annotations, so each field is described only once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, get_type_hints

from purgatorio_spec.trace.parse import Refusal, shown
from purgatorio_spec.trace.record import MAX_INT, MIN_INT

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Number:
    """An integer within these bounds, both included. A JSON `true` is no integer."""

    least: int = MIN_INT
    most: int = MAX_INT

    def taken(self, name: str, value: object) -> object:
        """Check the value and return it. Raises Refusal."""
        if type(value) is not int:
            raise Refusal(name, f"{shown(value)} is not an integer", "write an integer (booleans as 0 or 1)")
        if not self.least <= value <= self.most:
            raise Refusal(name, f"{value} is outside {self.least}..{self.most}", "keep it within")
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """A text of at most `longest` characters; if there are `words`, one of them."""

    longest: int = 200
    words: tuple[str, ...] = ()

    def taken(self, name: str, value: object) -> object:
        """Check the value and return it. Raises Refusal."""
        if not isinstance(value, str):
            raise Refusal(name, f"{shown(value)} is not a string", "write a JSON string")
        if self.words and value not in self.words:
            raise Refusal(name, f"{shown(value)} is not known here", f"use one of {', '.join(self.words)}")
        if len(value) > self.longest:
            raise Refusal(name, f"{len(value)} characters", f"use at most {self.longest}")
        return value


@dataclass(frozen=True, slots=True)
class Items:
    """A list of at most `most` texts or integers; it becomes a tuple."""

    item: Text | Number = Text()
    most: int = 100
    least: int = 0

    def taken(self, name: str, value: object) -> object:
        """Check the value and return it. Raises Refusal."""
        if not isinstance(value, list):
            raise Refusal(name, f"{shown(value)} is not a list", "write a JSON list")
        if not self.least <= len(value) <= self.most:
            raise Refusal(name, f"{len(value)} items", f"write {self.least} to {self.most}")
        return tuple(self.item.taken(name, one) for one in value)


Rule = Number | Text | Items


@dataclass(frozen=True, slots=True)
class FieldRule:
    """One field of a message. `needed`: it has no default. `default`: the value of an absent field."""

    name: str
    rule: Rule
    meaning: str
    needed: bool
    default: object = None


_FIELD_RULES: Final[dict[type[object], tuple[FieldRule, ...]]] = {}


def field_rules(record: type[object]) -> tuple[FieldRule, ...]:
    """The fields of a message class in their order."""
    known = _FIELD_RULES.get(record)
    if known is None:
        known = _FIELD_RULES[record] = _read_rules(record)
    return known


def _read_rules(record: type[object]) -> tuple[FieldRule, ...]:
    assert dataclasses.is_dataclass(record)
    hints = get_type_hints(record, include_extras=True)
    found: list[FieldRule] = []
    for field in dataclasses.fields(record):
        rule, meaning = hints[field.name].__metadata__
        needed = field.default is dataclasses.MISSING
        found.append(FieldRule(field.name, rule, meaning, needed, None if needed else field.default))
    return tuple(found)


def decoded(record: type[T], fields: Mapping[str, object]) -> T:
    """Decode a message of class `record` from JSON fields. Raises Refusal. Null is the same as absent.

    Fields named `x_...` belong to the subject and are ignored. `m`, which names the class, is ignored too.
    """
    takers, needed = _shape(record)
    values: dict[str, object] = {}
    for name, value in fields.items():
        taker = takers.get(name)
        if taker is not None:
            if value is not None:
                values[name] = taker(name, value)
        elif name != "m" and not name.startswith("x_"):
            remedy = f"this message has {', '.join(takers)}; remove it, or begin its name with x_ (then it is ignored)"
            raise Refusal(shown(name)[1:-1], "unknown field", remedy)
    for name in needed:
        if name not in values:
            raise Refusal(name, "missing", f"this message needs {name!r}")
    make: Callable[..., T] = record
    return make(**values)


_Taker = Callable[[str, object], object]
_SHAPES: Final[dict[type[object], tuple[dict[str, _Taker], tuple[str, ...]]]] = {}


def _shape(record: type[object]) -> tuple[dict[str, _Taker], tuple[str, ...]]:
    """The check of each field, and the names of the required fields. Cached, for thousands of lines a second."""
    known = _SHAPES.get(record)
    if known is None:
        rules = field_rules(record)
        known = _SHAPES[record] = (
            {rule.name: rule.rule.taken for rule in rules},
            tuple(rule.name for rule in rules if rule.needed),
        )
    return known


_ABSENT: Final = (None, ())


def written(message: object) -> dict[str, object]:
    """The fields of a message that are present, for its line."""
    fields: dict[str, object] = {}
    for rule in field_rules(type(message)):
        value: object = getattr(message, rule.name)
        if value not in _ABSENT:
            fields[rule.name] = list(value) if isinstance(value, tuple) else value
    return fields
