"""The content of a scenario: its long runs, and the conditions under which a run cannot be made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from purgatorio_conformance.subject.plan import HUGE_NS
from purgatorio_conformance.suite.contract import Promise
from purgatorio_spec.durations import exact


@dataclass(frozen=True, slots=True)
class LongRun:
    """A long run of the protocol's driver, by its name; see `gated`."""

    name: str

    def lines(self) -> Iterable[str]:
        """The name of the run: its calls are too many to print."""
        yield f"the whole run {self.name!r} of purgatorio_conformance.suite.gated"


@dataclass(frozen=True, slots=True)
class PlanProgram:
    """The plan of this seed in real time, with `timers` timers or operations."""

    name: str
    seed: int
    timers: int

    def lines(self) -> Iterable[str]:
        """The call that makes the plan: its steps are too many to print."""
        yield f"make_plan(seed={self.seed}, timers={self.timers}) of purgatorio_conformance.subject.plan"


Program = LongRun | PlanProgram


_NOT_TOLD: Final = frozenset({"m", "n", "lane", "hold", "step", "again"})


def call_in_words(call: Mapping[str, object]) -> str:
    """The text of a call, from the fields of its line."""
    told: list[str] = []
    for name, value in call.items():
        if isinstance(value, int) and name.endswith("_ns"):
            told.append("never" if value >= HUGE_NS and "keys" in call else exact(value))
        elif name not in _NOT_TOLD:
            told.append("+".join(map(str, value)) if isinstance(value, list) else str(value))
    return f"{call['m']}({', '.join(told)})"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Named programs, always the same, and the clauses that can fail in them. `needs`: lacks that rule the scenario
    out. `threads`: it needs calls from several threads."""

    name: str
    clauses: tuple[str, ...]
    programs: tuple[Program, ...]
    needs: tuple[str, ...] = ()
    threads: bool = False
    also: Callable[[Promise], str | None] | None = None
    """A further test that may rule it out; returns the reason."""

    def ruled_out(self, promise: Promise) -> str | None:
        """Why it cannot be executed, in the subject's own words; or None."""
        if self.threads and not promise.has_threads:
            return "its calls come from one thread: the promise does not offer `threads`"
        lacking = [lack for lack in self.needs if lack in promise.lacks]
        if lacking:
            return f"the subject lacks {lacking[0]}: {promise.lacks[lacking[0]]}"
        return None if self.also is None else self.also(promise)
