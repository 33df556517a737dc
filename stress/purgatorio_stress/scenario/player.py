"""Executes a scenario of `scenarios.toml`.

An act is a verb with arguments: `register op` calls `do_register`. `under LOCK: ...` holds the lock during the acts
after the colon. The entry `reach` of a scenario has a condition for each branch that the exploration must reach. One
kind of condition compares the last result of a thread: `event = 1` means that the thread `event` returned 1. The other
kind is a question about an operation or a timer task: `fired task` calls `is_fired`. The entry `finally` has the checks
at the end of the run (`left` calls `see_left`), and may have acts between the checks."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any, cast

from purgatorio import ActionQueue, QueuedExecutor, ReaperTimer
from purgatorio.sync import Lock
from purgatorio_stress.explorer.program import Broken
from purgatorio_stress.recorded import RecordedPurgatory
from purgatorio_stress.scenario.contract import Final_
from purgatorio_stress.scenario.parts import CheckedTimer
from purgatorio_stress.scenario.world import FOREVER_MS, Operation, Own, PlainTask, World

_CALLBACKS = ("trying", "completing")


@cache
def _acts(text: str, between: str) -> tuple[tuple[str, list[str], str | None], ...]:
    """The method of each act, its arguments, and the acts inside it."""
    found = []
    for act in text.split(between) if text else ():
        head, inside, body = act.partition(":")
        verb, *about = head.split()
        found.append((f"do_{verb.replace('-', '_')}", about, body.strip() if inside else None))
    return tuple(found)


@cache
def _looks(text: str) -> tuple[tuple[str, str, list[str]], ...]:
    """Each act of `finally`: its text, the method that checks it, and its arguments."""
    looks = [(act, *act.split()) for act in text.split("; ") if act]
    return tuple((act, f"see_{verb.replace('-', '_')}", about) for act, verb, *about in looks)


@cache
def _condition(text: str) -> tuple[bool, str, list[str]]:
    """A condition of `reach`: whether it must be true, the method that evaluates it, and its arguments."""
    first, *rest = text.split()
    wanted = first != "not"
    if not wanted:
        first, *rest = rest
    if rest[0] == "=":
        return wanted, "is_answered", [f"{first} {rest[1]}"]
    return wanted, f"is_{first.replace('-', '_')}", rest


class ScenarioPlayer:
    """The objects of one run, and the acts on these objects. `said`: the entries of the scenario, from
    `scenarios.toml`."""

    timer: CheckedTimer
    purgatory: RecordedPurgatory
    executor: QueuedExecutor | None = None

    def __init__(self, said: Mapping[str, Any], world: World) -> None:
        self.world = world
        self.looks, self.reach = _looks(said.get("finally", "")), tuple(said["reach"].items())
        if "wheel_size" in said:
            self.executor = None if said.get("reaper") else QueuedExecutor(sync=world.sync)
            self.timer = world.timer(wheel_size=said["wheel_size"], executor=self.executor)
        if "operations" in said:
            timer = self.timer if "wheel_size" in said else None
            self.purgatory = world.purgatory(timer, purge_interval=said.get("purge_interval", 1000))
        self.put_off = ActionQueue(faults=world.faults, sync=world.sync)
        self.resource = world.sync.atomic_int(0, "resource")
        self.seen: list[int] = []
        self.expired: list[str] = []
        self.given_back: list[str] = []
        self.locks: dict[str, Lock] = {}
        for name in said.get("locks", "").split():
            self.locks[name] = world.sync.rlock(name)
        for name in said.get("read_write_locks", "").split():
            lock = world.sync.read_write_lock(name)
            self.locks |= {f"{name}.read": lock.read, f"{name}.write": lock.write}
        self.operations = {
            name: self._operation(name, own) for name, own in said.get("operations", {}).items()
        }
        self.tasks = {
            name: PlainTask(world, name, delay_ms) for name, delay_ms in said.get("timer_tasks", {}).items()
        }
        self.take(said.get("before", ""))
        if said.get("reaper"):
            ReaperTimer("reaper", self.timer, faults=world.faults, sync=world.sync)
        for name, acts in said["tasks"].items():
            world.task(name, partial(self.take, acts))

    def _operation(self, name: str, own: Mapping[str, Any]) -> Operation:
        given: dict[str, object] = {slot: partial(self.take, own[slot]) for slot in _CALLBACKS if slot in own}
        given["expiring"] = partial(self.expired.append, name)
        if "lock" in own:
            given["lock"] = self.locks[own["lock"]]
        delay_ms = own.get("delay_ms", FOREVER_MS)
        return self.world.operation(name, *own["keys"].split(), delay_ms=delay_ms, **cast(Own, given))

    def take(self, acts: str, between: str = "; ") -> object:
        """Execute the acts. Returns the result of the last act."""
        answer: object = None
        for method, about, inside in _acts(acts, between):
            if inside is None:
                answer = getattr(self, method)(*about)
            else:
                with self.locks[about[0]]:
                    self.take(inside, ", ")
        return answer

    def do_register(self, operation: str) -> bool:
        return self.purgatory.register(self.operations[operation])

    def do_event(self, operation: str) -> int:
        return self.world.event(self.purgatory, self.operations[operation])

    def do_ready(self, operation: str) -> None:
        self.operations[operation].become_ready(self.world.log.now_ns())

    def do_check(self, key: str) -> int:
        return self.purgatory.check(key)

    def do_try(self, operation: str) -> bool:
        return self.operations[operation].safe_try_complete()

    def do_force(self, operation: str) -> bool:
        return self.operations[operation].force_complete()

    def do_expire(self, operation: str) -> None:
        self.operations[operation].run()

    def do_cancel_key(self, key: str) -> int:
        self.given_back += [operation.id for operation in self.purgatory.cancel_for_key(key)]
        return len(self.given_back)

    def do_purge(self) -> int:
        return self.purgatory.inner.purge_if_needed()

    def do_watched(self) -> int:
        return self.purgatory.inner.watched()

    def do_close(self) -> None:
        self.purgatory.inner.close()

    def do_put_off(self, key: str) -> None:
        """Add the check of a key to the action queue. (Kafka's rule since KAFKA-8334: no thread checks a key under a
        lock.)"""
        self.put_off.add(partial(self.purgatory.check, key))

    def do_run_put_off(self) -> None:
        self.put_off.run_all()

    def do_count(self) -> None:
        self.resource.add(1)

    def do_use(self) -> None:
        """Acquire and release a resource."""
        self.resource.add(1)
        self.resource.add(-1)

    def do_look(self) -> None:
        self.seen.append(self.resource.get())

    def do_add(self, task: str) -> None:
        self.tasks[task].add_to(self.timer)

    def do_add_unrecorded(self, task: str) -> None:
        self.timer.add(self.tasks[task])

    def do_cancel(self, task: str) -> None:
        self.tasks[task].cancel_recorded()

    def do_drain(self) -> None:
        self.timer.advance_clock(0)

    def do_pass(self, by_ms: str) -> None:
        self.world.virtual.advance(int(by_ms))

    def do_walk(self, until_ms: str) -> None:
        """Let time pass by single milliseconds, with a drain after each. For the end of a run, when no other thread is
        active."""
        assert self.executor is not None
        self.executor.run_all()
        while self.world.run.now_ms < int(until_ms):
            self.world.virtual.advance(1)
            self.timer.advance_clock(0)
            self.executor.run_all()

    def holds(self, condition: str) -> bool:
        """Whether a condition of `reach` is true."""
        wanted, method, about = _condition(condition)
        return all(map(getattr(self, method), about)) is wanted

    def is_answered(self, answer: str) -> bool:
        """`TASK ANSWER`: whether this is the last result of the task."""
        task, wanted = answer.split()
        return repr(self.world.run.said.get(task)) == wanted

    def is_completed(self, operation: str) -> bool:
        return self.operations[operation].is_completed()

    def is_expired(self, operation: str) -> bool:
        return operation in self.expired

    def is_fired(self, task: str) -> bool:
        return bool(self.tasks[task].fired_at_ms)

    def is_once_watched(self, task: str) -> bool:
        """Whether the operation had at most one entry when the task counted its entries, and has one more now."""
        before = cast(int, self.world.run.said[task])
        return before <= 1 and self.do_watched() == before + 1

    def final(self) -> Iterator[Broken]:
        """The violations at the end of the run."""
        for act, method, about in self.looks:
            see = getattr(self, method, None)
            if see is None:
                self.take(act)
            else:
                yield from see(*about)
        for label, condition in self.reach:
            self.world.cover(label, self.holds(condition))

    def see_purgatory(self) -> Iterator[Broken]:
        """Raises an exception if a structure of the purgatory or its timer is broken."""
        self.purgatory.inner.check()
        return iter(())

    def see_timer(self) -> Iterator[Broken]:
        self.timer.check()
        return iter(())

    def see_left(self, *operations: str) -> Iterator[Broken]:
        yield from self.world.left_waiting(*map(self.operations.__getitem__, operations))

    def see_winner(self) -> Iterator[Broken]:
        won = [name for name, done in self.world.run.said.items() if done]
        if len(won) != 1:
            yield Broken("O1", "op", f"force_complete answered True to {len(won)} callers")

    def see_unused(self) -> Iterator[Broken]:
        if self.world.dialect.name == "locked" and any(self.seen):
            yield Broken("O6", "op", "on_complete saw the resource that a try_complete held")

    def see_unwatched(self) -> Iterator[Broken]:
        if left := self.do_watched():
            yield Broken("P1", "k", f"{left} entries are left")

    def see_watched_once(self, task: str) -> Iterator[Broken]:
        later = self.do_watched() - cast(int, self.world.run.said[task])
        if later > 1:
            yield Broken("P1", "op", f"it was put on {later} lists after it had been completed")

    def see_given_back(self, operation: str) -> Iterator[Broken]:
        if not self.given_back and not self.is_completed(operation):
            yield Broken("O4", operation, "neither completed nor returned by the cancel")

    def see_none_put_off(self) -> Iterator[Broken]:
        """Check that the action queue is empty, because every thread runs the queue after it has added an action."""
        if left := self.put_off.size():
            yield Broken("O4", "actions", f"{left} are left in the queue, and no thread will run them")

    def see_shut_down(self, operation: str) -> Iterator[Broken]:
        if not self.is_completed(operation):
            yield Broken("O5", operation, "not completed by the shutdown")

    def see_size(self, size: str) -> Iterator[Broken]:
        if self.timer.size() != int(size):
            yield Broken("T5", "timer", f"size() is {self.timer.size()}, and {size} tasks wait")

    def see_as_counted(self, task: str) -> Iterator[Broken]:
        """Check that `timer.size()` is 1 if the task was not cancelled, and 0 otherwise."""
        self.cancelled = self.tasks[task].is_cancelled()
        return self.see_size("0" if self.cancelled else "1")

    def see_as_cancelled(self, task: str) -> Iterator[Broken]:
        if len(self.tasks[task].fired_at_ms) != (0 if self.cancelled else 1):
            yield Broken(
                "T4", task, f"cancelled is {self.cancelled}, fired at {self.tasks[task].fired_at_ms}"
            )

    def see_cancelled(self, task: str) -> Iterator[Broken]:
        if self.is_fired(task):
            yield Broken("T4", task, f"fired at {self.tasks[task].fired_at_ms} ms although cancelled before")

    def see_once(self, *tasks: str) -> Iterator[Broken]:
        for task in map(self.tasks.__getitem__, tasks):
            if len(task.fired_at_ms) != 1:
                yield Broken("T3", task.id, f"fired {len(task.fired_at_ms)} times, at {task.fired_at_ms}")

    def see_on_time(self, *tasks: str) -> Iterator[Broken]:
        for task in map(self.tasks.__getitem__, tasks):
            if task.fired_at_ms != [task.delay_ms]:
                yield Broken("T2", task.id, f"due at {task.delay_ms} ms, fired at {task.fired_at_ms} ms")


def play(said: Mapping[str, Any], world: World) -> Final_:
    """Sets up the scenario: runs the acts of `before`, and creates the tasks."""
    return ScenarioPlayer(said, world).final
