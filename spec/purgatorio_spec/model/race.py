"""Models of races: the removal of a key's list, a cancel of a task while a flush moves its entry, two adds that need a
new level, and an add during a flush.

A model has a few shared variables, and threads of atomic actions. An action is a function that changes the variables,
reports that it is blocked, or ends its thread. The negative controls are known bugs:

- `orphan-watcher-list` and `remove-key-no-emptiness-recheck` (KAFKA-2160 removes empty lists, and KAFKA-2253 repairs
  this removal);
- `remove-wrong-list` and `reinsert-no-cancel-check` (KAFKA-2226);
- `overflow-wheel-twice` (KAFKA-2112);
- `flush-resets-expiration-late` (Go timingwheel PR 35).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from purgatorio_spec.known_bugs import bug_name
from purgatorio_spec.model.completion import NO_LOST
from purgatorio_spec.model.shape import Model, Move

Vars = dict[str, int]
BLOCKED: Final = "blocked"
ENDS: Final = "ends"
Action = Callable[[Vars], Literal["blocked", "ends"] | None]
Steps = tuple[tuple[str, Action], ...]
RaceState = tuple[tuple[int, ...], tuple[int, ...]]  # counters, variables
STAYS_SOUND = "T3-T5 no task is lost, none runs after its cancel, every count is exact"
NO_ORPHAN = "P1 no operation sits in a list that its key does not lead to"


@dataclass(frozen=True, slots=True)
class RaceModel:
    """Threads as (text, action) lists over named variables. `always` must hold in every state; its argument says
    whether all threads have ended. Each of `sometimes` must hold in some state."""

    name: str
    variables: Vars
    threads: Mapping[str, Steps]
    always: Mapping[str, Callable[[Vars, bool], bool]]
    sometimes: Mapping[str, Callable[[Vars], bool]] = field(default_factory=dict)
    about: str = "one entry or bucket"


def race_model(race: RaceModel) -> Model[RaceState]:
    names, columns, threads = tuple(race.variables), tuple(race.threads), tuple(race.threads.values())

    def named(state: RaceState) -> Vars:
        return dict(zip(names, state[1], strict=True))

    def steps(state: RaceState) -> list[tuple[int, RaceState]]:
        counters, found = state[0], []
        for thread, counter in enumerate(counters):
            if counter == len(threads[thread]):
                continue
            variables = named(state)
            outcome = threads[thread][counter][1](variables)
            if outcome != BLOCKED:
                to = len(threads[thread]) if outcome == ENDS else counter + 1
                moved = (*counters[:thread], to, *counters[thread + 1 :])
                found.append((thread, (moved, tuple(variables.values()))))
        return found

    def done(state: RaceState) -> bool:
        return all(c == len(t) for c, t in zip(state[0], threads, strict=True))

    def always(holds: Callable[[Vars, bool], bool]) -> Callable[[RaceState], bool]:
        return lambda state: holds(named(state), done(state))

    def sometimes(seen: Callable[[Vars], bool]) -> Callable[[RaceState], bool]:
        return lambda state: seen(named(state))

    return Model(
        name=race.name,
        bound=f"{len(columns)} threads, {race.about}",
        columns=columns,
        initial=((tuple(0 for _ in columns), tuple(race.variables.values())),),
        steps=steps,
        describe=lambda before, actor, after: Move(columns[actor], threads[actor][before[0][actor]][0]),
        done=done,
        always={name: always(holds) for name, holds in race.always.items()},
        sometimes={name: sometimes(seen) for name, seen in race.sometimes.items()},
    )


def _does(**changes: int) -> Action:
    def action(v: Vars) -> None:
        v.update(changes)

    return action


def _take(lock: str, waits: bool = True) -> Action:
    def action(v: Vars) -> Literal["blocked"] | None:
        if v[lock] and waits:
            return BLOCKED
        v[lock] = 1
        return None

    return action


def watch_list(checkers: int, append_locked: bool = True, tests_emptiness: bool = True) -> RaceModel:
    """One key's list, in which operation A (bit 1) is completed and still listed: operation B (bit 2) is registered,
    its own event comes, and `checkers` run concurrently. `current`: the number of the key's list, 0 for none."""

    def see(me: str) -> Action:
        def action(v: Vars) -> None:
            v[f"seen by {me}"] = v["current"]

        return action

    def find(v: Vars) -> None:
        v["current"] = v["current"] or 2
        v["seen by register"] = v["current"]

    def append(v: Vars) -> None:
        v[f"list {v['seen by register']}"] |= 2

    def try_b(v: Vars) -> None:
        v["completed"] |= v["published"]

    def checker(me: str) -> Steps:
        def stop_without_list(v: Vars) -> Literal["ends"] | None:
            return None if v[f"seen by {me}"] else ENDS

        def traverse(v: Vars) -> None:
            name = f"list {v[f'seen by {me}']}"
            if v[name] & 2:
                try_b(v)
            v[name] &= 0 if v["completed"] else 2  # A is completed: unlink it

        def stop_unless_empty(v: Vars) -> Literal["ends"] | None:
            return ENDS if v[f"list {v[f'seen by {me}']}"] else None

        def remove(v: Vars) -> None:
            number = v[f"seen by {me}"]
            if v["current"] == number and not (v[f"list {number}"] and tests_emptiness):
                v["current"] = 0

        return (
            ("lock the shard", _take("lock")),
            ("check_and_complete: read the key's list", see(me)),
            ("unlock the shard", _does(lock=0)),
            ("continue if there is a list", stop_without_list),
            ("try every operation, unlink completed ones", traverse),
            ("continue if the list is empty", stop_unless_empty),
            ("lock the shard", _take("lock")),
            ("remove the key if it still leads here and is empty", remove),
            ("unlock the shard", _does(lock=0)),
        )

    unlock, put = ("unlock the shard", _does(lock=0)), ("append B to it", append)
    register: Steps = (
        ("lock the shard", _take("lock")),
        ("find or make the key's list", find),
        *((put, unlock) if append_locked else (unlock, put)),
        ("try_complete B again", try_b),
    )
    publish = ("make B's condition true", _does(published=1))
    names = ["event", *(f"check-{index}" for index in range(checkers))]
    threads = {"register": register} | {name: checker(name) for name in names}
    threads["event"] = (publish, *threads["event"])

    def no_orphan(v: Vars, done: bool) -> bool:
        listed = [number for number in (1, 2) if v[f"list {number}"] & 2]
        return not done or bool(v["completed"]) or all(number == v["current"] for number in listed)

    flaw = None if append_locked and tests_emptiness else 4 if append_locked else 3
    return RaceModel(
        "watch list" if flaw is None else f"watch list ({bug_name(flaw)})",
        {"lock": 0, "current": 1, "list 1": 1, "list 2": 0, "published": 0, "completed": 0}
        | {f"seen by {name}": 0 for name in threads},
        threads,
        {NO_LOST: lambda v, done: not done or bool(v["completed"]), NO_ORPHAN: no_orphan},
        {
            "the key is removed": lambda v: v["current"] == 0,
            "the registration makes a new list": lambda v: v["current"] == 2,
            "B joins the old list": lambda v: bool(v["list 1"] & 2),
        },
        "1 key, 2 operations",
    )


def _sound(
    name: str,
    variables: Vars,
    threads: Mapping[str, Steps],
    sound: Callable[[Vars, bool], bool],
    odd: Callable[[Vars], bool],
) -> RaceModel:
    return RaceModel(name, variables, threads, {STAYS_SOUND: sound}, {"the odd branch is taken": odd})


def cancel_against_move(trusts_list: bool = False, checks_cancel: bool = True) -> RaceModel:
    """A drain moves the entry from bucket 1 to bucket 2 and fires it there, while another thread cancels it."""

    def unlink(bucket: int) -> Action:
        def action(v: Vars) -> None:
            if v["list"] == bucket:
                v["list"], v[f"count{bucket}"], v["moving"] = 0, v[f"count{bucket}"] - 1, 1

        return action

    def look(v: Vars) -> None:
        if v["moving"] and v["cancelled"] and checks_cancel:
            v["moving"] = 0

    def link(v: Vars) -> None:
        if v["moving"]:
            v["list"], v["count2"], v["moving"] = 2, v["count2"] + 1, 0

    def note_and_look(v: Vars) -> None:
        v["cancelled before the test"] = v["cancelled"]
        look(v)

    def submit(v: Vars) -> None:
        if v["moving"]:
            v["fired"], v["late"], v["moving"] = 1, v["cancelled before the test"], 0

    def read_list(v: Vars) -> None:
        v["seen"] = v["list"]

    def remove(v: Vars) -> None:
        if v["seen"] and (v["list"] == v["seen"] or (trusts_list and v["list"])):
            v["list"] = 0
            v[f"count{v['seen']}"] -= 1

    def sound(v: Vars, done: bool) -> bool:
        return v["count1"] == (v["list"] == 1) and v["count2"] == (v["list"] == 2) and not v["late"]

    zero = ("count2", "moving", "seen", "cancelled", "fired", "late", "cancelled before the test")
    flaw = "remove-wrong-list" if trusts_list else "entry moved and cancelled"
    return _sound(
        flaw if checks_cancel else "reinsert-no-cancel-check",
        {"list": 1, "count1": 1} | dict.fromkeys(zero, 0),
        {
            "drain": (
                ("unlink the entry from bucket 1", unlink(1)),
                ("cancelled? then drop it", look),
                ("append it to bucket 2", link),
                ("unlink the entry from bucket 2", unlink(2)),
                ("cancelled? then drop it", note_and_look),
                ("submit the task", submit),
            ),
            "cancel": (
                ("read the entry's bucket", read_list),
                ("unlink it from that bucket", remove),
                ("the task has no entry any more", _does(cancelled=1)),
            ),
        },
        sound,
        lambda v: bool(v["cancelled"] and v["moving"]),
    )


def two_far_adds(locked: bool = True) -> RaceModel:
    """Two threads add a task beyond the lowest level. The level above must be created only once."""

    def adder(me: int) -> Steps:
        def look(v: Vars) -> None:
            v[f"missing{me}"] = int(v["overflow"] == 0)

        def make(v: Vars) -> None:
            if v[f"missing{me}"]:
                v["overflow"] = me

        def put(v: Vars) -> None:
            v[f"in{me}"] = v["overflow"]

        return (
            ("enter the monitor" if locked else "no monitor", _take("monitor", waits=locked)),
            ("is there an overflow wheel?", look),
            ("make one if there was none", make),
            ("leave", _does(monitor=0)),
            ("add the task to the overflow wheel", put),
        )

    return _sound(
        "overflow wheel made on demand" if locked else "overflow-wheel-twice",
        dict.fromkeys(("monitor", "overflow", "missing1", "missing2", "in1", "in2"), 0),
        {"add-1": adder(1), "add-2": adder(2)},
        lambda v, done: not done or v["in1"] == v["in2"] == v["overflow"],
        lambda v: v["in1"] == 2,
    )


def add_during_flush(excluded: bool = True) -> RaceModel:
    """A thread flushes a bucket while another thread adds to it. The read-write lock excludes this."""

    def offer(v: Vars) -> None:
        if v["expiration"] != 1:
            v["expiration"], v["queued"] = 1, 1

    word, take, leave = "lock" if excluded else "(no lock)", _take("lock", waits=excluded), _does(lock=0)
    return _sound(
        "bucket flushed under the lock" if excluded else "flush-resets-expiration-late",
        {"lock": 0, "expiration": 1, "queued": 0, "tasks": 1, "added": 0},
        {
            "drain": (
                (f"{word} for writing", take),
                ("empty the bucket", _does(tasks=0)),
                ("reset its expiration", _does(expiration=-1)),
                ("leave", leave),
            ),
            "add": (
                (f"{word} for reading", take),
                ("append to the bucket", _does(tasks=1, added=1)),
                ("set its expiration, queue it if that changed", offer),
                ("leave", leave),
            ),
        },
        lambda v, done: not done or not v["tasks"] or bool(v["queued"]),
        lambda v: bool(v["queued"]),
    )
