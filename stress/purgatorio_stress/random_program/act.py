"""A random program as a value, and as a text. The text is also the name of the program.

In `drawn:system:1.2.0.0:3,5:add.0,pass.2:drain.0+cancel.0:run.1=size`, the class under test is `system`, with the
settings 1.2.0.0. There are two tasks (or operations), with the numbers 3 and 5. `add.0,pass.2` are the calls before
the threads. `drain.0` and `cancel.0` are the calls of two threads. `run.1=size` means that task 1 calls `size` when it
runs. A scenario may have such a name, so a replay token contains the whole program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "drawn:"
"""What the name of a random program begins with."""

_ACT: Final = re.compile(r"[a-z_]{1,24}(\.-?[0-9]{1,20}){0,4}")
_MOST: Final = 100
"""Acts, things and callbacks of a program that is read from a text."""


class BadProgram(ValueError):
    """A text that is no random program."""


@dataclass(frozen=True, slots=True)
class Act:
    """A verb of the vocabulary with small numbers: things, keys, delays, by the vocabulary's order."""

    do: str
    args: tuple[int, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.do, *map(str, self.args)))

    @classmethod
    def parse(cls, text: str) -> Act:
        """The act of a text; BadProgram where it is none."""
        if not _ACT.fullmatch(text):
            raise BadProgram(f"{text[:40]!r} is no act")
        do, *args = text.split(".")
        return cls(do, tuple(map(int, args)))


@dataclass(frozen=True, slots=True)
class Callback:
    """What a thing does when it is called back: `slot` says where, `thing` which."""

    slot: str
    thing: int
    act: Act

    def __str__(self) -> str:
        return f"{self.slot}.{self.thing}={self.act}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A program. `things`: the numbers of each. No thread: all is done before, by one."""

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
        """The program of a name; BadProgram where it is none. Whether its subject knows the acts is not checked."""
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
        """How many acts."""
        return len(self.before) + sum(map(len, self.threads)) + len(self.callbacks)

    def acts(self) -> Iterator[Act]:
        yield from self.before
        for thread in self.threads:
            yield from thread
        for callback in self.callbacks:
            yield callback.act

    def lines(self) -> Iterator[str]:
        """The program, a line a thread."""
        things = ", ".join(".".join(map(str, thing)) for thing in self.things)
        yield f"{self.subject} {'.'.join(map(str, self.settings))}, things {things}"
        if self.before:
            yield f"before: {'; '.join(map(str, self.before))}"
        for number, acts in enumerate(self.threads, 1):
            yield f"thread-{number}: {'; '.join(map(str, acts))}"
        for callback in self.callbacks:
            yield f"{callback.slot} of {callback.thing}: {callback.act}"


def acts_of(text: str) -> tuple[Act, ...]:
    """Those of a text, with commas between; BadProgram where one is none."""
    return tuple(Act.parse(one) for one in text.split(",") if one)


def _callback(text: str) -> Callback:
    where, _, act = text.partition("=")
    slot, _, thing = where.partition(".")
    if not slot.isalpha() or not thing.isdigit():
        raise BadProgram(f"{text[:40]!r} is no callback")
    return Callback(slot, int(thing), Act.parse(act))
