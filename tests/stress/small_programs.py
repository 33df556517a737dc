"""Small programs for the explorer, with known numbers of interleavings and classes, and the classic bugs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from purgatorio.sync import Sync
from purgatorio_stress.explorer.controlled import ControlledSync
from purgatorio_stress.explorer.program import Broken, carry_out
from purgatorio_stress.explorer.run import Execution
from purgatorio_stress.explorer.step import TIME

Body = Callable[[], object]
Build = Callable[[Sync], tuple[Sequence[Body], Callable[[], bool]]]


@dataclass
class Small:
    """A program of some threads; the look at the end says whether all is well."""

    build: Build
    name: str = "small"
    turns: int = 4
    horizon_ms: int = 0

    def set_up(self, run: Execution, /) -> None:
        bodies, self._well = self.build(ControlledSync(run))
        for number, body in enumerate(bodies, 1):
            run.spawn(f"T{number}", body)

    def judge(self, run: Execution, /) -> Sequence[Broken]:
        errors = [
            Broken("ERROR", task.name, repr(task.error)) for task in run.tasks if task.error is not None
        ]
        well = run.stop.kind != "end" or self._well()
        return errors if well else [*errors, Broken("WRONG", "end", "not as it must be")]


def writers(threads: int, variables: int) -> Build:
    """Each thread writes each variable once, in the same order."""

    def build(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
        shared = [sync.atomic_int(0, f"x{n}") for n in range(variables)]

        def body(number: int) -> Body:
            def write() -> None:
                for one in shared:
                    one.set(number)

            return write

        return [body(number) for number in range(threads)], lambda: True

    return build


def lost_update(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
    """Two threads add one by reading and writing."""
    count = sync.atomic_int(0, "count")

    def add() -> None:
        count.set(count.get() + 1)

    return [add, add], lambda: count.get() == 2


def counted(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
    """The same in one step."""
    count = sync.atomic_int(0, "count")
    return [lambda: count.add(1)] * 2, lambda: count.get() == 2


def abba(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
    """Two locks in two orders."""
    a, b = sync.lock("a"), sync.lock("b")

    def one() -> None:
        with a, b:
            pass

    def two() -> None:
        with b, a:
            pass

    return [one, two], lambda: True


def missed_signal(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
    """The waiter looks, lets go, and sleeps: the notice comes between."""
    lock = sync.lock("lock")
    changed = sync.condition(lock, "changed")
    ready = sync.atomic_flag(False, "ready")

    def wait() -> None:
        if not ready.get():
            with lock:
                changed.wait()

    def signal() -> None:
        ready.set(True)
        with lock:
            changed.notify_all()

    return [wait, signal], lambda: True


def kept_signal(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
    """The waiter looks under the lock."""
    lock = sync.lock("lock")
    changed = sync.condition(lock, "changed")
    ready = sync.atomic_flag(False, "ready")

    def wait() -> None:
        with lock:
            while not ready.get():
                sync.loop_head()
                changed.wait()

    def signal() -> None:
        with lock:
            ready.set(True)
            changed.notify_all()

    return [wait, signal], lambda: True


def peterson(flag_first: bool) -> Build:
    """Mutual exclusion by Peterson. If a thread gives the turn away before it raises its flag, there is no
    exclusion."""

    def build(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
        wants = [sync.atomic_flag(False, f"wants{n}") for n in (0, 1)]
        turn = sync.atomic_int(0, "turn")
        inside = sync.atomic_int(0, "inside")
        together: list[int] = []

        def body(me: int) -> Body:
            def enter() -> None:
                if flag_first:
                    wants[me].set(True)
                    turn.set(1 - me)
                else:
                    turn.set(1 - me)
                    wants[me].set(True)
                while wants[1 - me].get() and turn.get() == 1 - me:
                    sync.loop_head()
                if inside.add(1) > 1:
                    together.append(me)
                inside.add(-1)
                wants[me].set(False)

            return enter

        return [body(0), body(1)], lambda: not together

    return build


def bounded_buffer(conditions: int) -> Build:
    """One place, two producers, two consumers. `notify_all` wakes all, so one condition would do; an `if` in place of
    the `while` (`conditions` = 0) takes from an empty buffer."""

    def build(sync: Sync) -> tuple[Sequence[Body], Callable[[], bool]]:
        lock = sync.lock("lock")
        changed = sync.condition(lock, "changed")
        nothing: list[int] = []
        places = sync.cell(nothing, "places")
        taken: list[int] = []

        def put() -> None:
            with lock:
                while places.get():
                    sync.loop_head()
                    changed.wait()
                places.mutate().append(1)
                changed.notify_all()

        def take_in_loop() -> None:
            with lock:
                while not places.get():
                    sync.loop_head()
                    changed.wait()
                taken.append(places.mutate().pop())
                changed.notify_all()

        def take_after_if() -> None:
            with lock:
                if not places.get():
                    changed.wait()
                taken.append(places.mutate().pop())
                changed.notify_all()

        take = take_in_loop if conditions else take_after_if
        return [put, take, take, put], lambda: len(taken) == 2

    return build


@dataclass
class _InOrder:
    """Follows a schedule, then runs the first thread that can continue. Keeps the other threads that could continue
    at each point."""

    schedule: list[int]
    able: list[list[int]] = field(default_factory=list)

    def choose(self, run: Execution, /) -> int:
        at = len(self.able)
        self.able.append([task.index for task in run.tasks if run.is_enabled(task)] or [TIME])
        return self.schedule[at] if at < len(self.schedule) else self.able[-1][0]


def every_interleaving(program: Small) -> Iterator[Sequence[Broken]]:
    """What each interleaving of steps broke, by trying all of them; for programs that never wait."""
    todo: list[list[int]] = [[]]
    while todo:
        chooser = _InOrder(todo.pop())
        _, broken = carry_out(program, chooser, [])
        taken = list(chooser.schedule)
        for able in chooser.able[len(taken) :]:
            todo += [[*taken, other] for other in able[1:]]
            taken.append(able[0])
        yield broken
