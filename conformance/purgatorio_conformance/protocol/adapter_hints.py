"""Hints that the user's adapter may be wrong, and not the timer or purgatory that it connects. A hint never changes a
verdict."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

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
    check evaluates them."""

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
            f"the description says that the subject reports {f}, but the subject never reported it: call the hook"
            f" {f}, with an empty action if the time-out is inside your code, or declare that it is not reported"
            " (in a kit: `lacks`)"
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
        return found
