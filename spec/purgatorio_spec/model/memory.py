"""The shared memory of the completion model, and its atomic actions. Each action is a function of the packed state."""

from dataclasses import dataclass

from purgatorio_spec.model.packed import Bits, Layout, Place, StepFunction, instruction

IDLE, ARMED, TAKEN, CANCELLED = range(4)  # of the operation's timer task


@dataclass(frozen=True, slots=True)
class Record:
    """What one event's thread owns; the records are equal and adjacent, so they can be sorted."""

    counter: Bits
    published: Bits
    obliged: Bits  # ghost: its check started when the operation was ready


class Memory:
    """One operation, its lock and flags, its timer task, and `events` conditions that make it ready.

    The condition is a conjunction of events that never become false again. Reading it is atomic here. Events are
    monotone. So a thread that reads them one by one returns false only if one was false when read, and true only if
    all were true at its last read. Every such evaluation therefore equals an atomic one at some moment during it.
    """

    def __init__(self, events: int, keys: int, never_ready: bool) -> None:
        layout = Layout()
        self.layout = layout
        self.records = tuple(
            Record(
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


@instruction
def evaluate(at: Place, memory: Memory, if_ready: str, if_not: str) -> StepFunction:
    mask, yes, no = memory.ready_mask, at.to(if_ready), at.to(if_not)
    return lambda state: state + (yes if state & mask == mask else no)


@instruction
def win(at: Place, memory: Memory, if_lost: str, if_won: str) -> StepFunction:
    """Set `completed` atomically if it is not set; the winner is counted."""
    mask, one = memory.completed.mask, 1 << memory.wins.shift
    lost, won = at.to(if_lost), at.to(if_won)
    return lambda state: state + lost if state & mask else (state | mask) + one + won


@instruction
def claim(at: Place, memory: Memory, target: str) -> StepFunction:
    """Set `completed` without looking again (the second half of a check-then-set)."""
    mask, one, two = memory.completed.mask, 1 << memory.wins.shift, 2 << memory.wins.shift
    move = at.to(target)
    return lambda state: ((state | mask) if state & two else (state | mask) + one) + move


@instruction
def cancel_timer(at: Place, timer: Bits, target: str) -> StepFunction:
    """Cancel the timer task; nothing happens to one that is not armed or already taken."""
    armed, mask, cancelled = ARMED << timer.shift, timer.mask, CANCELLED << timer.shift
    keep, move = ~mask, at.to(target)
    return lambda state: ((state & keep) | cancelled if state & mask == armed else state) + move


@instruction
def arm_timer(at: Place, timer: Bits, target: str) -> StepFunction:
    keep, armed, move = ~timer.mask, ARMED << timer.shift, at.to(target)
    return lambda state: ((state & keep) | armed) + move


@instruction
def take_timer(at: Place, timer: Bits, target: str) -> StepFunction:
    """The timer hands the task to its executor; blocked while the task is not armed."""
    mask, armed, taken = timer.mask, ARMED << timer.shift, TAKEN << timer.shift
    keep, move = ~mask, at.to(target)
    return lambda state: ((state & keep) | taken) + move if state & mask == armed else None


@instruction
def look_up(
    at: Place, memory: Memory, record: Record, key: int, if_watched: str, if_not: str
) -> StepFunction:
    watched, obliged, ready = memory.watched[key].mask, record.obliged.mask, memory.ready_mask
    yes, no = at.to(if_watched), at.to(if_not)

    def step(state: int) -> int:
        move = yes if state & watched else no
        return (state | obliged if state & ready == ready else state) + move

    return step
