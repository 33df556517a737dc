"""The stateful test of `ActionQueue`: actions wait, run once and in order. If an action raises, no other action is
lost."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from purgatorio import ActionQueue
from reference.stateful.one_thread import KeptFaults, Meter, OneThreadSync
from reference.stateful.timer_set import Disagreement


class ActionQueueMachine(RuleBasedStateMachine):
    """The queue against a list of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = KeptFaults()
        self.queue = ActionQueue(faults=self.faults, sync=OneThreadSync(Meter()))
        self.waiting: list[int] = []
        self.ran: list[int] = []
        self.added = 0

    @rule(kind=st.sampled_from(("plain", "raises", "adds another")))
    def add(self, kind: str) -> None:
        """Adds an action like code that holds locks: the action must not run here."""
        self._add(kind)
        if self.ran:
            raise Disagreement(
                f"O8: action {self.ran[0]} ran inside add, under whatever locks its caller holds"
            )

    def _add(self, kind: str) -> None:
        number = self.added
        self.added += 1
        self.waiting.append(number)

        def action() -> None:
            self.ran.append(number)
            if kind == "adds another":
                self._add("plain")
            if kind == "raises":
                raise ValueError(f"action {number}")

        self.queue.add(action)

    @rule()
    def run_all(self) -> None:
        """Runs exactly the actions that wait at its begin, even if one raises, or one adds another."""
        due = list(self.waiting)
        count = self.queue.run_all()
        self.waiting = self.waiting[len(due) :]
        ran, self.ran = self.ran, []
        if ran != due or count != len(due):
            raise Disagreement(f"O8: ran {ran} and returned {count}, waiting were {due}")

    @invariant()
    def agrees(self) -> None:
        """The count of what waits."""
        if self.queue.size() != len(self.waiting):
            raise Disagreement(f"O8: {self.queue.size()} actions wait, not {len(self.waiting)}")
