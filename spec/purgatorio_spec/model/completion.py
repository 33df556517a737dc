"""A model of the completion of one operation: events race with its registration and its expiry.

Bound: one operation, at most 5 events, each event once. The removal of a key's empty list is in `watch_list`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from purgatorio_spec.model.memory import ARMED, CANCELLED, Memory
from purgatorio_spec.model.packed import END, Bits, ThreadProgram, interleave, sorted_records
from purgatorio_spec.model.shape import Model, Move
from purgatorio_spec.model.threads import Threads
from purgatorio_spec.model.variant import ForceRule, Variant

ONCE = "O1 on_complete starts at most once, one winner"
NO_LOST = "O4 ready at the end means completed"
AT_RETURN = "O4 a check that started after ready returns: completed (locked)"
EXPIRES_AFTER_WIN = "O3 on_expiration only after the expiry's own win, at most once"
NO_OVERLAP = "O6 try_complete and on_complete never overlap (locked)"
NO_RETAINED_TASK = "T4 a completed operation leaves no armed timer task"
ENDS = "P3 every call returns under weak fairness"
CAN_END = "P3 every call can still return, from every state"


@dataclass(frozen=True, slots=True)
class Setup:
    """The threads of a model. Without a registration, the operation is watched from the start."""

    events: int
    register: bool = False
    timed: bool = False
    holder: bool = False
    keys: int = 1
    never_ready: bool = False
    symmetric: bool = False
    progress: bool = False
    fair: bool = True

    @property
    def bound(self) -> str:
        threads = self.events + self.register + self.timed + self.holder
        parts = [f"{threads} threads", f"{self.events} events, {self.keys} key{'s' * (self.keys > 1)}"]
        parts += ["registration"] * self.register + ["time-out"] * self.timed
        parts += ["a foreign lock holder"] * self.holder + ["one event never comes"] * self.never_ready
        parts += ["up to symmetry"] * self.symmetric
        return ", ".join(parts) + ("" if self.fair else ", no fairness")


class Cast:
    def __init__(self, variant: Variant, scene: Setup) -> None:
        memory = Memory(scene.events, scene.keys, scene.never_ready)
        threads = Threads(memory, variant)
        self.memory = memory
        self.events = [
            ThreadProgram(record.counter, threads.event(record, index % scene.keys))
            for index, record in enumerate(memory.records)
        ]
        self.programs = list(self.events)
        self.columns = [f"event-{index}" for index in range(scene.events)]
        self.registrar: ThreadProgram | None = None
        self.timer: ThreadProgram | None = None
        if scene.register:
            self.registrar = ThreadProgram(self._counter("register"), threads.registration(scene.timed))
            self._join("register", self.registrar)
        if scene.timed:
            self.timer = ThreadProgram(self._counter("timer"), threads.expiry())
            self._join("timer", self.timer)
        if scene.holder:
            self._join("holder", ThreadProgram(self._counter("holder"), threads.holder()))
        for program in self.programs:
            if len(program.labels) > 1 << program.counter.width:
                raise ValueError("a program is longer than its program counter can count")

    def _counter(self, name: str) -> Bits:
        return self.memory.layout.add(f"pc {name}", 6)

    def _join(self, column: str, program: ThreadProgram) -> None:
        self.columns.append(column)
        self.programs.append(program)

    def at_end(self, programs: list[ThreadProgram]) -> Callable[[int], bool]:
        mask = sum(program.counter.mask for program in programs)
        ends = sum(program.labels[END] << program.counter.shift for program in programs)
        return lambda state: state & mask == ends

    def anyone_at(self, suffixes: tuple[str, ...]) -> Callable[[int], int]:
        tests = [
            program.is_at([name for name in program.names if name.endswith(suffixes)])
            for program in self.programs
        ]
        return lambda state: sum(test(state) for test in tests)


def completion(variant: Variant, scene: Setup) -> Model[int]:
    """The model of `variant` on `scene`, with every property that the variant's dialect promises there."""
    cast = Cast(variant, scene)
    memory = cast.memory
    others = [program for program in cast.programs if program is not cast.timer]
    quiet = cast.at_end(others)
    waits = cast.timer.is_at(["take"]) if cast.timer is not None else None
    over = cast.at_end(cast.programs)

    def done(state: int) -> bool:
        return quiet(state) and (over(state) or (waits is not None and waits(state)))

    initial = 0
    if not scene.register:
        initial = memory.all_watched(0)
    promises = _promises(cast, variant, scene, done)
    canonical = None
    if scene.symmetric:
        if scene.keys != 1:
            raise ValueError("event threads are interchangeable only if they share a key")
        canonical = sorted_records(0, memory.record_width, scene.events)
    steps = interleave(cast.programs)
    return Model(
        name=variant.name,
        bound=scene.bound,
        columns=tuple(cast.columns),
        initial=(initial,),
        steps=steps,
        describe=lambda before, actor, after: Move(
            cast.columns[actor], cast.programs[actor].text(before, after)
        ),
        done=done,
        always=promises,
        sometimes=_witnesses(cast, scene),
        possible={CAN_END: done} if scene.progress and scene.never_ready else {},
        eventually={ENDS: done} if scene.progress and not scene.never_ready else {},
        canonical=canonical,
        fair=scene.fair,
    )


def _promises(
    cast: Cast, variant: Variant, scene: Setup, done: Callable[[int], bool]
) -> dict[str, Callable[[int], bool]]:
    memory = cast.memory
    two_calls, two_wins = 2 << memory.calls.shift, 2 << memory.wins.shift
    completed = memory.completed.mask
    promises: dict[str, Callable[[int], bool]] = {ONCE: lambda state: not state & (two_calls | two_wins)}
    if not scene.never_ready:
        promises[NO_LOST] = lambda state: bool(state & completed) or not done(state)
    if variant.register_locked:
        promises[AT_RETURN] = _completed_at_return(cast)
    if variant.force is ForceRule.UNDER_LOCK or variant.register_locked:
        in_callback, trying = cast.anyone_at(("finish",)), cast.anyone_at(("evaluate", "force"))
        timer_forces = cast.timer.is_at(["force"]) if cast.timer is not None else None

        def apart(state: int) -> bool:
            evaluating = trying(state) - (timer_forces is not None and timer_forces(state))
            return not (in_callback(state) and evaluating)

        promises[NO_OVERLAP] = apart
    if scene.timed:
        promises |= _timer_promises(cast)
    return promises


def _completed_at_return(cast: Cast) -> Callable[[int], bool]:
    memory = cast.memory
    obligations = [
        (record.obliged.mask, cast.at_end([program]))
        for record, program in zip(memory.records, cast.events, strict=True)
    ]
    registered = cast.at_end([cast.registrar] if cast.registrar is not None else [])
    completed = memory.completed.mask

    def holds(state: int) -> bool:
        if state & completed or not registered(state):
            return True
        return not any(state & obliged and returned(state) for obliged, returned in obligations)

    return holds


def _timer_promises(cast: Cast) -> dict[str, Callable[[int], bool]]:
    memory = cast.memory
    expirations, won, completed = memory.expirations, memory.expiry_won.mask, memory.completed.mask
    two = 2 << expirations.shift
    armed, timer_mask = ARMED << memory.timer.shift, memory.timer.mask
    cancelling = cast.anyone_at(("cancel",))
    registered = cast.at_end([cast.registrar] if cast.registrar is not None else [])

    def expires_after_win(state: int) -> bool:
        return not state & expirations.mask or bool(state & won and not state & two)

    def no_retained_task(state: int) -> bool:
        if not state & completed or state & timer_mask != armed:
            return True
        return not registered(state) or cancelling(state) > 0

    return {EXPIRES_AFTER_WIN: expires_after_win, NO_RETAINED_TASK: no_retained_task}


def _witnesses(cast: Cast, scene: Setup) -> dict[str, Callable[[int], bool]]:
    """States that must be reached at least once. Otherwise a promise would be kept only because nothing happened."""
    memory = cast.memory
    seen: dict[str, Callable[[int], bool]] = {}
    if not scene.never_ready:
        seen["on_complete runs"] = lambda state: bool(state & memory.calls.mask)
        seen["a check starts after ready"] = lambda state: any(
            state & record.obliged.mask for record in memory.records
        )
    lock_mask = memory.lock.mask
    waiting = cast.anyone_at(("lock", "set-flag"))
    if scene.events > 1 or scene.register:
        seen["a thread meets the lock held"] = lambda state: bool(state & lock_mask) and waiting(state) > 0
    if scene.register and not scene.never_ready:
        last_watch = memory.watched[-1].mask
        seen["the operation is completed after it was watched"] = lambda state: bool(
            state & memory.completed.mask and state & last_watch
        )
    if scene.timed:
        seen["the expiry wins"] = lambda state: bool(state & memory.expirations.mask)
        seen["the expiry is cancelled"] = lambda state: memory.timer.get(state) == CANCELLED
    return seen
