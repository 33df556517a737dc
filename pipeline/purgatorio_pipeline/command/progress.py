"""The progress of a command on standard error: the completed share, the elapsed time, and an estimate of the remaining
time.

In a terminal, the progress is a bar that disappears at the end. In a log, the progress is a line at the start, and a
line every `LOG_SECONDS`. The estimate comes from the completed share. If parts run concurrently, there is no estimate,
and a log names the slowest part: a tenth of a run may take most of its time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn
from rich.progress import Progress as Bars
from rich.progress import Task as Bar
from rich.table import Column
from rich.text import Text

Poll = Callable[[], tuple[float, float | None]]
"""Called at each display: returns the done amount, and the total amount."""

LOG_SECONDS: Final = 10.0
_MEGABYTE: Final = 1_000_000
_BAR: Final = 16
_TOLD_FROM: Final = 0.05
"""Below this share, there is no estimate."""


@dataclass
class Progress:
    """The progress of one piece of work. Any thread may call `tell`."""

    doing: str
    total: float | None
    unit: str
    poll: Poll | None = None
    then: str = ""
    clock_s: Callable[[], float] = time.monotonic
    _done: float = 0.0
    _shares: dict[str, float] = field(default_factory=dict)
    _bars: Bars | None = None
    _console: Console | None = None

    def __post_init__(self) -> None:
        self._start_s = self.clock_s()

    def so_far(self) -> tuple[float, float | None]:
        """The done amount and the total amount. The first never exceeds the second."""
        done, total = (self._done, self.total) if self.poll is None else self.poll()
        return (done if total is None else min(done, total)), total

    def tell(self, done: float, doing: str = "") -> None:
        """Reports the amount that is done. `doing`: the next step."""
        self._done = done
        self.doing = doing or self.doing

    def share(self, part: str, done: int, planned: int) -> None:
        """Reports the progress of one of several concurrent parts: `done` of `planned`."""
        self._shares[part] = done / planned if planned else 1.0
        self._done = sum(self._shares.copy().values())  # another thread may report another part meanwhile

    def say(self, text: str) -> None:
        """Print a line that stays. No effect in a log with `quiet`."""
        if self._console is not None:
            self._console.print(Text(text), highlight=False, soft_wrap=True)

    def counted(self) -> str:
        """`12 of 25 runs, 0:40, about 0:43 left`."""
        (done, total), now_s = self.so_far(), self.clock_s()
        said = [self._amount(done, total), _minutes(now_s - self._start_s)]
        if total and done >= total and self.then:
            said.insert(1, self.then)
        if total and _TOLD_FROM * total <= done < total and not self._shares:
            said.append(f"about {_minutes((now_s - self._start_s) * (total - done) / done)} left")
        return ", ".join(filter(None, said))

    def slowest(self) -> str:
        """The slowest part: `; my-timer-real 40%`. Empty without parts."""
        share, part = min(((share, part) for part, share in self._shares.copy().items()), default=(1.0, ""))
        return f"; {part} {int(share * 100)}%" if share < 1 else ""

    def _amount(self, done: float, total: float | None) -> str:
        if total is None:
            return f"{done:,.0f} {self.unit}" if done and self.unit else ""
        if self.unit == "bytes":
            return f"{done / _MEGABYTE:,.1f} of {total / _MEGABYTE:,.1f} MB"
        if not self.unit:
            return f"{done / total:.0%}" if total else ""
        return f"{int(done):,} of {total:,.0f} {self.unit}"

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Inside `with`, the bar is hidden, because the block prints to standard output."""
        if self._bars is None:
            yield
            return
        self._bars.stop()
        try:
            yield
        finally:
            self._bars.start()

    @contextmanager
    def _as_bar(self, console: Console) -> Iterator[None]:
        columns = (
            TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True)),
            BarColumn(_BAR),
            _Counted(self),
        )
        # Not redirected, because standard output of a command must not go to standard error.
        bars = Bars(
            *columns,
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            expand=True,
            refresh_per_second=4,
        )
        bars.add_task(self.doing, total=None)
        with bars:
            self._bars, self._console = bars, console
            try:
                yield
            finally:
                self._bars = None

    @contextmanager
    def _as_log(self, console: Console, wait: Callable[[threading.Event], bool]) -> Iterator[None]:
        def lines() -> None:
            while not wait(over):
                self.say(f"{self.doing}: {self.counted()}{self.slowest()}")

        self._console = console
        over = threading.Event()
        self.say(self.doing)
        teller = threading.Thread(target=lines, name="progress", daemon=True)
        teller.start()
        try:
            yield
        finally:
            over.set()
            teller.join()


class _Counted(ProgressColumn):
    """The figures next to the bar. At every refresh, this column also updates the bar."""

    def __init__(self, shown: Progress) -> None:
        super().__init__(Column(no_wrap=True))
        self._shown = shown

    def render(self, task: Bar) -> Text:
        task.description = self._shown.doing
        task.completed, task.total = self._shown.so_far()
        return Text(self._shown.counted())


def _waited(over: threading.Event) -> bool:
    return over.wait(LOG_SECONDS)


@contextmanager
def progress(
    doing: str,
    total: float | None = None,
    unit: str = "",
    *,
    quiet: bool = False,
    poll: Poll | None = None,
    then: str = "",
    console: Console | None = None,
    wait: Callable[[threading.Event], bool] = _waited,
) -> Iterator[Progress]:
    """Show progress during the block.

    `total`: the total amount in `unit` (which may be "bytes"). None: unknown. Without a unit, the share is shown in per
    cent. `poll`: called for the done amount, instead of `tell`. `then`: the name of the work that follows. `quiet`: no
    lines in a log. (A terminal still has its bar.)
    """
    console = Console(stderr=True) if console is None else console
    shown = Progress(doing, total, unit, poll=poll, then=then)
    if console.is_terminal:
        with shown._as_bar(console):
            yield shown
    elif quiet:
        yield shown
    else:
        with shown._as_log(console, wait):
            yield shown


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
