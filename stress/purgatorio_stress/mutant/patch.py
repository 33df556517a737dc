"""A mutant: a patch of one function or class of the reference, applied in memory, for as long as a `with` lasts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import dedent
from types import FunctionType

from purgatorio.sync import Lock
from purgatorio.timer.bucket import TimerTaskList
from purgatorio_spec.known_bugs import KNOWN_BUGS


@dataclass(frozen=True)
class Patch:
    """`owner.attribute` becomes `replacement`; the owner is a class or a module. `source`: of what `edited` made."""

    owner: object
    attribute: str
    replacement: object
    source: str = ""

    @property
    def target(self) -> str:
        """What it changes, as `Class.method` or `module.function`."""
        return f"{getattr(self.owner, '__name__', self.owner)}.{self.attribute}"


@dataclass(frozen=True)
class Mutant:
    """A known bug. `number`, `name`, `source`, `what` and `clauses` are those of `purgatorio_spec.known_bugs`.

    `scenario` and `dialect`: where the explorer searches for it. `clauses`: any of them may be the one that reports it.
    `interleaving`: it takes two threads. `memory`: where patched functions remember things, empty at first.
    """

    number: int
    name: str
    source: str
    what: str
    scenario: str
    clauses: tuple[str, ...]
    patches: tuple[Patch, ...]
    dialect: str = "pending-flag"
    interleaving: bool = False
    memory: tuple[dict[int, Lock] | dict[int, int] | list[TimerTaskList], ...] = ()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The reference has the bug inside."""
        with patched(self.patches):
            for container in self.memory:
                container.clear()
            yield


def known(
    number: int,
    scenario: str,
    *patches: Patch,
    dialect: str = "pending-flag",
    interleaving: bool = False,
    memory: tuple[dict[int, Lock] | dict[int, int] | list[TimerTaskList], ...] = (),
) -> Mutant:
    """The mutant of a known bug."""
    bug = KNOWN_BUGS[number]
    return Mutant(
        number,
        bug.name,
        bug.source,
        bug.sentence,
        scenario,
        bug.clauses,
        patches,
        dialect,
        interleaving,
        memory,
    )


def edited(owner: object, attribute: str, *words: str) -> Patch:
    """The function as it is written, but for words that it has once, each followed by what stands there instead. Its
    lines have the numbers that they have in the file."""
    function = getattr(owner, attribute)
    if not isinstance(function, FunctionType):
        raise TypeError(f"{attribute} of {owner} is no function")
    source = dedent(inspect.getsource(function))
    for old, new in zip(words[::2], words[1::2], strict=True):
        if source.count(old) != 1:
            raise ValueError(f"{attribute} has {old!r} {source.count(old)} times")
        source = source.replace(old, new)
    made: dict[str, object] = {}
    code = function.__code__
    # Compiled under this module's `annotations`, too: what a function names there need not be at hand.
    exec(
        compile("\n" * (code.co_firstlineno - 1) + source, code.co_filename, "exec"),
        function.__globals__,
        made,
    )
    return Patch(owner, attribute, made[function.__name__], source)


def wrapped(owner: object, attribute: str, around: Callable[..., object]) -> Patch:
    """The function inside another, which is given it, and then what is given to it."""
    function = getattr(owner, attribute)

    def replacement(*given: object, **more: object) -> object:
        return around(function, *given, **more)

    return Patch(owner, attribute, replacement)


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """All of them are in, for as long as the `with` lasts."""
    kept = [(patch, _own(patch.owner, patch.attribute)) for patch in patches]
    try:
        for patch in patches:
            setattr(patch.owner, patch.attribute, patch.replacement)
        yield
    finally:
        for patch, before in reversed(kept):
            if before is _ABSENT:
                delattr(patch.owner, patch.attribute)
            else:
                setattr(patch.owner, patch.attribute, before)


_ABSENT = object()


def _own(owner: object, attribute: str) -> object:
    """As it stands in the owner itself: a `staticmethod` stays one, what is inherited is absent."""
    return vars(owner).get(attribute, _ABSENT)
