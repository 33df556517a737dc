"""The shared memory of the completion model."""

from dataclasses import dataclass

from purgatorio_spec.model.packed import Bits, Instruction, JumpOrigin, Layout, StepFunction

IDLE, ARMED, TAKEN, CANCELLED = range(4)  # of the operation's timer task


@dataclass(frozen=True, slots=True)
class EventVariables:
    """The variables of one event's thread. The records are equal and adjacent, so they can be sorted."""

    counter: Bits
    published: Bits
    obliged: Bits  # for the properties only: its check started when the operation was ready


class Memory:
    """One operation, its lock and flags, its timer task, and `events` conditions that make it ready.

    The condition is a conjunction of events that never become false again. In the model, one action reads the whole
    condition. This loses no behavior. A thread that reads the events one by one gets false only if one event was false
    at its read. It gets true only if all events were true at the last read. So the result is that of an atomic read at
    some moment.
    """

    def __init__(self, events: int, keys: int, never_ready: bool) -> None:
        layout = Layout()
        self.layout = layout
        self.records = tuple(
            EventVariables(
                layout.add(f"pc{index}", 5), layout.add(f"published{index}"), layout.add(f"obliged{index}")
            )
            for index in range(events)
        )
        self.record_width = layout.width // events
        self.completed = layout.add("completed")
        self.lock = layout.add("lock")
        self.pending = layout.add("pending")
        self.watched = tuple(layout.add(f"watched{key}") for key in range(keys))
        self.timer = layout.add("timer", 2)
        self.calls = layout.add("on_complete calls", 2)
        self.wins = layout.add("force_complete wins", 2)
        self.expirations = layout.add("on_expiration calls", 2)
        self.expiry_won = layout.add("expiry won")
        self.ready_mask = sum(record.published.mask for record in self.records)
        if never_ready:
            self.ready_mask |= layout.add("an event that never comes").mask

    def all_watched(self, state: int) -> int:
        """`state` with the operation watched under every key."""
        for bit in self.watched:
            state |= bit.mask
        return state


def look_up(
    label: str, text: str, memory: Memory, record: EventVariables, key: int, if_watched: str, if_not: str
) -> Instruction:
    """Read a key's list. If the operation is ready at this moment, this check must complete it."""
    watched, obliged, ready = memory.watched[key].mask, record.obliged.mask, memory.ready_mask

    def make(at: JumpOrigin) -> StepFunction:
        yes, no = at.to(if_watched), at.to(if_not)

        def step(state: int) -> int:
            move = yes if state & watched else no
            return (state | obliged if state & ready == ready else state) + move

        return step

    return Instruction(label, text, make)
