"""A crew: one thread for each task of a scenario. All threads start each round together.

The barrier before a round uses only atomic reads and writes, so that no lock wakes a thread late. Each thread sets its
flag, and then reads the flags of the other threads until all are set. Between two reads it releases the GIL. Then each
thread runs an empty loop for a random time, so that the relative starts vary. (The read or write of a list item is
atomic, also without the GIL.)
"""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_stress.harness.noise import Noise, YieldPlan
from purgatorio_stress.harness.round import Round
from purgatorio_stress.harness.seam import RoundStopped, StopFlag

_LOOKS: Final = 4
"""The first checks only yield the interpreter; later checks sleep."""
_NAP_S: Final = 0.000_02


@dataclass(slots=True)
class Crew:
    """The threads of a crew and their rounds.

    `arrived[k]`: the number of the round that thread k has reached. `overlapped`: the rounds in which two threads ran
    at the same time. `yield_plans`: one for each thread, or empty.
    """

    number: int
    rounds: Sequence[Round]
    seed: str
    spin: int
    stop: StopFlag
    noise: Noise | None = None
    most_yields: int = 0
    arrived: list[int] = field(default_factory=list)
    overlapped: set[int] = field(default_factory=set)
    yield_plans: list[YieldPlan] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start the threads. Their names are those of the tasks."""
        names = self.rounds[0].names
        self.arrived = [-1] * len(names)
        working = [-1] * len(names)
        for k, name in enumerate(names):
            if self.noise is not None:
                self.yield_plans.append(YieldPlan(f"{self.seed}/{self.number}/{k}/yield", self.most_yields))
            thread = threading.Thread(
                target=self._work,
                args=(k, working),
                name=name if self.number == 0 else f"{name}-{self.number}",
                daemon=True,
            )
            self.threads.append(thread)
        for thread in self.threads:
            thread.start()

    @property
    def ended(self) -> int:
        """The number of rounds that have ended: the first round that a thread has not passed."""
        return max(0, min(self.arrived, default=0))

    def progress(self) -> int:
        """A number that grows as long as the crew makes progress."""
        return sum(self.arrived)

    def _work(self, k: int, working: list[int]) -> None:
        """Run all rounds as thread k. `working[j]` is the round that thread j executes, or -1."""
        rng = random.Random(f"{self.seed}/{self.number}/{k}/spin")
        others = [j for j in range(len(working)) if j != k]
        plan = self.yield_plans[k] if self.yield_plans else None
        if plan is not None and self.noise is not None:
            self.noise.enter(plan)
        for n, one in enumerate(self.rounds):
            if plan is not None:
                plan.begin()
            self.arrived[k] = n
            if not self._met(n, others):
                return
            for _ in range(int(rng.random() * self.spin)):
                pass
            working[k] = n
            self._run(one, k)
            for j in others:
                if working[j] == n:
                    self.overlapped.add(n)
            working[k] = -1
            if self.stop.asked:
                return
        self.arrived[k] = len(self.rounds)

    def _met(self, n: int, others: Sequence[int]) -> bool:
        """Wait until the other threads have reached round `n`. False if the run is aborted."""
        arrived = self.arrived
        looks = 0
        for j in others:
            while arrived[j] < n:
                if self.stop.asked:
                    return False
                looks += 1
                time.sleep(0.0 if looks <= _LOOKS else _NAP_S)
        return True

    def _run(self, one: Round, k: int) -> None:
        body: Callable[[], object] = one.bodies[k]
        try:
            one.said[one.names[k]] = body()
        except RoundStopped:
            return
        except BaseException as error:
            one.errors.append((one.names[k], error))
