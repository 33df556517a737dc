"""The fork count of this process. `purgatorio.owned` uses it to detect a fork."""

import os
from typing import Final, NoReturn

from purgatorio.compiling import mypyc_attr


@mypyc_attr(native_class=False)
class MadeBeforeFork(RuntimeError):
    """The object belongs to the parent of this process: make a new one after the fork."""


class Process:
    """Counts the forks from the process that imported this module to the current process. The count changes only in a
    child that has one thread, so it needs no value of `purgatorio.sync`."""

    __slots__ = ("forks",)

    def __init__(self) -> None:
        self.forks = 0

    def in_child(self) -> None:
        self.forks += 1


PROCESS: Final = Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.in_child)


def made_before_fork(what: object) -> NoReturn:
    name = getattr(what, "name", "")
    raise MadeBeforeFork(
        f"{type(what).__name__}{(f' {name!r}' if name else '')} was created before this process "
        "was forked, and its threads are in the parent: create a new one after the fork"
    )
