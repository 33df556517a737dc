"""The notation of programs. A request is one function with the decorator `request`, which defines its text, its random
values, its documentation and its effect.

The text of a request is the name of the function, then the parameters without a default, in order, and the others as
`name=value`, or the name alone if it is a `bool`: `fetch 0e min_bytes=300`. The type of each parameter is `Annotated`
with the regular expression of its text, and with its random values.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, get_args, get_type_hints

_T = TypeVar("_T")
_Run = TypeVar("_Run", bound=Callable[..., Awaitable[None]])


class ProgramBroken(ValueError):
    """The text is not a valid program. The message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Draw:
    """What the random requests of a program are made of. `kind`: the kind of the program, in which requests have their
    weights."""

    rng: random.Random
    kind: str
    partitions: Sequence[int] = (0,)
    bytes: int = 20
    """The size of most records."""
    records: Sequence[int] = (1, 1, 1, 2, 5)
    acks: Sequence[int] = (1, 1, -1, -1, 0)
    isolations: Sequence[str] = ("",)

    def pick(self, *values: _T) -> _T:
        return self.rng.choice(values)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def some(self, positions: str, *counts: int) -> str:
        """Some partitions, each with one of these positions (a space: without a position)."""
        places = {self.pick(*self.partitions): self.pick(*positions) for _ in range(self.pick(*counts))}
        return "+".join(f"{number}{position.strip()}" for number, position in places.items())

    def requests(self, least: int, most: int) -> tuple[str, ...]:
        kinds = [one for one in REQUESTS.values() if self.kind in one.weights]
        weights = [one.weights[self.kind] for one in kinds]
        return tuple(
            one.drawn(self) for one in self.rng.choices(kinds, weights, k=self.rng.randint(least, most))
        )


@dataclass(frozen=True, slots=True)
class Parameter:
    form: Callable[[str], object]
    pattern: str
    values: Callable[[Draw], object] | Sequence[object]
    """A function that makes a random value, or the values to choose from; empty: `more` makes it."""
    default: object


@dataclass(frozen=True, slots=True)
class Request:
    """A kind of request. `needs`: what a program with it has (`topics`, a `group`, `sharers`, `quotas`)."""

    word: str
    run: Callable[..., Awaitable[None]]
    needs: frozenset[str]
    weights: Mapping[str, float]
    parameters: Mapping[str, Parameter]
    more: Callable[[Draw], dict[str, object]]
    """Makes the random values that the types do not make."""

    @property
    def example(self) -> str:
        return (self.run.__doc__ or "").split("`")[1]

    def drawn(self, draw: Draw) -> str:
        values = {
            name: one.values(draw) if callable(one.values) else draw.pick(*one.values)
            for name, one in self.parameters.items() if one.values
        }  # fmt: skip
        values |= self.more(draw)
        words = [self.word]
        for name, one in self.parameters.items():
            if one.default is inspect.Parameter.empty:
                words.append(str(values[name]))
            elif values[name] != one.default:
                words.append(name if values[name] is True else f"{name}={values[name]}")
        return " ".join(words)


REQUESTS: Final[dict[str, Request]] = {}
"""The requests of programs, by the first word of their texts."""


def request(
    needs: str = "", drawn: Callable[[Draw], dict[str, object]] = lambda draw: {}, **weights: float
) -> Callable[[_Run], _Run]:
    """Makes a function a request. `drawn`: makes the random values of parameters that depend on each other. `weights`:
    its weights in the kinds of random programs."""

    def made(run: _Run) -> _Run:
        hints = get_type_hints(run, include_extras=True)
        parameters = {}
        for name, one in [*inspect.signature(run).parameters.items()][1:]:
            form, pattern, values = get_args(hints[name])
            parameters[name] = Parameter(form, pattern, values, one.default)
        REQUESTS[run.__name__] = Request(
            run.__name__, run, frozenset(needs.split()), weights, parameters, drawn
        )
        return run

    return made


def request_of(text: str) -> tuple[Request, dict[str, object]]:
    """Parses a request, and returns its arguments. Raises ProgramBroken if the text is not a request."""
    word, *parts = text.split() or [""]
    if word not in REQUESTS:
        raise ProgramBroken(f"{word!r} is not a request: write one of {', '.join(REQUESTS)}")
    known = REQUESTS[word].parameters
    due = [name for name, one in known.items() if one.default is inspect.Parameter.empty]
    values: dict[str, object] = {}
    for part in parts:
        name, equals, value = (due.pop(0), "=", part) if due else part.partition("=")
        if name not in known or name in values or bool(equals) == (known[name].form is bool):
            break
        if re.fullmatch(known[name].pattern, value) is None:
            break
        values[name] = known[name].form(value) if equals else True
    else:
        if not due:
            return REQUESTS[word], values
    raise ProgramBroken(f"{text!r} is not a request: write it like {REQUESTS[word].example!r}")
