"""Hints that the user's adapter may be wrong, and not the timer or purgatory that it connects. A hint never changes a
verdict."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_spec.durations import exact

_DOES: Final = {"timer_add": "adds", "timer_cancel": "cancels", "timer_fire": "runs"}
_ENOUGH: Final = 3
"""A missing report is a sign only after this many occasions for it."""


@dataclass(slots=True)
class AdapterHints:
    """Counts of a subject's messages. Hints are derived from these counts. Numbers: `told` (events, by function),
    `waited` (registrations after which the operation waited), `completed` (operations that checks completed), `checked`
    (checks of a key under which an operation waited), and `tried` (calls of `try_complete` reported during a check).
    `blind`: the first ready operation that its `try_complete` did not complete. `outside`: the first operation whose
    completion was reported outside any `force_complete`. `beside`: the number of calls while a thread was paused.
    `met`: whether another thread sent a message during a pause. `units`: whether operations wait for units, and no
    check evaluates them. `early`: the number of runs of tasks before their deadlines. `rounded_ns`: the units of
    which an adapter may have cut off parts, each time."""

    told: Counter[str] = field(default_factory=Counter)
    waited: int = 0
    completed: int = 0
    checked: int = 0
    tried: int = 0
    blind: str = ""
    outside: str = ""
    beside: int = 0
    met: bool = False
    units: bool = False
    early: int = 0
    rounded_ns: Sequence[int] = (1_000, 1_000_000)

    def fires(self, now_t: int, begun_t: int, delay_ns: int) -> None:
        """A task fires now. It may be early because the adapter rounds the time of the add, and the delay."""
        before_ns = begun_t + delay_ns - now_t
        if before_ns > 0:
            self.early += 1
            self.rounded_ns = [
                one for one in self.rounded_ns if before_ns < 2 * one and (begun_t % one or delay_ns % one)
            ]

    def found(self, reports: Collection[str]) -> list[str]:
        """List the probable mistakes of an adapter that declares these reports."""
        occasions = {
            "timer_add": self.waited,
            "timer_cancel": self.completed,
            "timer_fire": self.told["on_expiration"],
        }
        # The profile `hand-over` needs no event of a timer.
        occasions = {} if self.units else occasions
        mute = [f for f, times in occasions.items() if f in reports and times >= _ENOUGH and not self.told[f]]
        found = [
            f"the subject never reported {f}, which its description lists. Either your code never {_DOES[f]} a"
            f" time-out, or the adapter does not call the hook {f}: call it, with an empty action if the time-out is"
            " inside your code, or declare that it is not reported (in a kit: `lacks`)"
            for f in mute
        ]
        if self.blind:
            found.append(
                f"try_complete of {self.blind!r} began after the answer to its `ready`, but did not "
                "complete it: does try_complete read the flag that `ready` sets, even if `ready` came "
                "before `register`?"
            )
        if self.checked >= _ENOUGH and not (self.tried or self.units) and "try_complete" in reports:
            found.append(
                "no `check` evaluated an operation, although operations waited under its key: are two keys with one"
                " name equal?"
            )
        if self.beside >= _ENOUGH and not self.met:
            found.append(
                "no call took effect while a thread was paused: does the adapter take a lock around its calls?"
            )
        if self.outside and self.told["force_complete"]:
            found.append(
                f"on_complete of {self.outside!r} was reported outside every reported force_complete: report it inside"
                " the callback"
            )
        if self.early >= _ENOUGH and self.rounded_ns:
            unit_ns = self.rounded_ns[0]
            found.append(
                f"each early task has a time that is no multiple of {exact(unit_ns)}, and fires less than"
                f" {exact(2 * unit_ns)} early: does the adapter round times? If so, declare unit_ns = {unit_ns}"
            )
        return found
