"""A random program as a value, and as a text. The text is also the name of the program.

For example, `drawn:system:1.2.0.0:3,5:add.0,pass.2:drain.0+cancel.0:run.1=size` tests the class `system` with the
settings 1.2.0.0. It has two tasks (in a purgatory: operations). 3 and 5 describe these tasks (`Vocabulary.thing`).
`add.0,pass.2` are the calls before the threads. `drain.0` and `cancel.0` are the calls of two threads. `run.1=size`
means that task 1 calls `size` when it runs. Such a text is also the name of a scenario, so a replay token contains the
whole program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "drawn:"
"""The first characters of the name of each random program."""

_ACT: Final = re.compile(r"[a-z_]{1,24}(\.-?[0-9]{1,20}){0,4}")
_MOST: Final = 100
"""The maximum number of acts, of things and of callbacks in a parsed program."""


class BadProgram(ValueError):
    """The text is not a random program."""


@dataclass(frozen=True, slots=True)
class Act:
    """A call: a verb of the vocabulary, and numbers for its arguments (things, keys, delays) in their order."""

    do: str
    args: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.do, *map(str, self.args)))

    @classmethod
    def parse(cls, text: str) -> Act:
        """The act that `text` describes. Raises BadProgram if it is not an act."""
        if not _ACT.fullmatch(text):
            raise BadProgram(f"{text[:40]!r} is not an act")
        do, *args = text.split(".")
        return cls(do, tuple(map(int, args)))


@dataclass(frozen=True, slots=True)
class Callback:
    """The act of thing `thing` in its callback `slot`, such as `run`."""

    slot: str
    thing: int
    act: Act

    def __str__(self) -> str:
        return f"{self.slot}.{self.thing}={self.act}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A program. `things`: the numbers that describe each thing. Without `threads`, the set-up makes all calls."""

    subject: str
    settings: tuple[int, ...]
    things: tuple[tuple[int, ...], ...]
    before: tuple[Act, ...]
    threads: tuple[tuple[Act, ...], ...]
    callbacks: tuple[Callback, ...] = ()

    def __str__(self) -> str:
        parts = (
            self.subject,
            ".".join(map(str, self.settings)),
            ",".join(".".join(map(str, thing)) for thing in self.things),
            ",".join(map(str, self.before)),
            "+".join(",".join(map(str, acts)) for acts in self.threads),
            ",".join(map(str, self.callbacks)),
        )
        return PREFIX + ":".join(parts)

    @classmethod
    def parse(cls, name: str) -> Drawn:
        """The program with this name. Raises BadProgram for an invalid name. Acts are not compared with the subject."""
        parts = name.removeprefix(PREFIX).split(":")
        if not name.startswith(PREFIX) or len(parts) != 6:
            raise BadProgram(
                f"a random program is {PREFIX}SUBJECT:SETTINGS:THINGS:BEFORE:THREADS:CALLBACKS, not {name[:80]!r}"
            )
        subject, settings, things, before, threads, callbacks = parts
        try:
            drawn = cls(
                subject,
                tuple(int(one) for one in settings.split(".") if one),
                tuple(tuple(map(int, thing.split("."))) for thing in things.split(",") if thing),
                acts_of(before),
                tuple(acts_of(thread) for thread in threads.split("+") if thread),
                tuple(_callback(one) for one in callbacks.split(",") if one),
            )
        except ValueError as error:
            raise BadProgram(str(error)) from None
        if max(len(drawn.things), len(drawn.callbacks), drawn.size()) > _MOST:
            raise BadProgram(f"more than {_MOST} acts or things")
        return drawn

    def size(self) -> int:
        """The number of acts."""
        return len(self.before) + sum(map(len, self.threads)) + len(self.callbacks)

    def acts(self) -> Iterator[Act]:
        yield from self.before
        for thread in self.threads:
            yield from thread
        for callback in self.callbacks:
            yield callback.act

    def lines(self) -> Iterator[str]:
        """The program as lines of text, one for each thread."""
        things = ", ".join(".".join(map(str, thing)) for thing in self.things)
        yield f"{self.subject} {'.'.join(map(str, self.settings))}, things {things}"
        if self.before:
            yield f"before: {'; '.join(map(str, self.before))}"
        for number, acts in enumerate(self.threads, 1):
            yield f"thread-{number}: {'; '.join(map(str, acts))}"
        for callback in self.callbacks:
            yield f"{callback.slot} of {callback.thing}: {callback.act}"


def acts_of(text: str) -> tuple[Act, ...]:
    """The acts in a text, separated by commas. Raises BadProgram if a part is not an act."""
    return tuple(Act.parse(one) for one in text.split(",") if one)


def _callback(text: str) -> Callback:
    where, _, act = text.partition("=")
    slot, _, thing = where.partition(".")
    if not slot.isalpha() or not thing.isdigit():
        raise BadProgram(f"{text[:40]!r} is not a callback")
    return Callback(slot, int(thing), Act.parse(act))
