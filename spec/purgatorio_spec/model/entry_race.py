"""What is smaller than a flush: one task's entry between two buckets, a cancel, and two adders.

Each story is a handful of shared variables and threads of atomic steps, written as functions of a tuple. The
faults: `remove-wrong-list` and `reinsert-no-cancel-check` (KAFKA-2226), `overflow-wheel-twice` (KAFKA-2112),
`flush-resets-expiration-late` (Go timingwheel PR 35).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from purgatorio_spec.model.shape import Model, Step

Vars = dict[str, int]
Action = Callable[[Vars], bool | None]  # changes the variables; False: blocked
RaceState = tuple[tuple[int, ...], tuple[int, ...]]  # counters, variables
STAYS_SOUND = "T3-T5 no task is lost, none runs after its cancel, every count is exact"


@dataclass(frozen=True, slots=True)
class Race:
    """Threads as (text, action) lists over named variables; `sound` must hold in every state."""

    name: str
    variables: Vars
    threads: Mapping[str, tuple[tuple[str, Action], ...]]
    sound: Callable[[Vars, bool], bool]
    seen: Callable[[Vars], bool]


def race_model(race: Race) -> Model[RaceState]:
    """Every interleaving of the race's threads; `sound` is told whether all are at their end."""
    names = tuple(race.variables)
    columns = tuple(race.threads)
    threads = tuple(race.threads.values())

    def steps(state: RaceState) -> list[tuple[int, RaceState]]:
        counters, values = state
        found = []
        for thread, counter in enumerate(counters):
            if counter == len(threads[thread]):
                continue
            variables = dict(zip(names, values, strict=True))
            if threads[thread][counter][1](variables) is not False:
                moved = (*counters[:thread], counter + 1, *counters[thread + 1 :])
                found.append((thread, (moved, tuple(variables.values()))))
        return found

    def done(state: RaceState) -> bool:
        return all(c == len(t) for c, t in zip(state[0], threads, strict=True))

    return Model(
        name=race.name,
        bound=f"{len(columns)} threads, one entry or bucket",
        columns=columns,
        initial=((tuple(0 for _ in columns), tuple(race.variables.values())),),
        steps=steps,
        describe=lambda before, actor, after: Step(columns[actor], threads[actor][before[0][actor]][0]),
        done=done,
        always={STAYS_SOUND: lambda state: race.sound(dict(zip(names, state[1], strict=True)), done(state))},
        sometimes={
            "the odd branch is taken": lambda state: race.seen(dict(zip(names, state[1], strict=True)))
        },
    )


def _does(**changes: int) -> Action:
    def action(v: Vars) -> None:
        v.update(changes)

    return action


def cancel_against_move(trusts_list: bool = False, checks_cancel: bool = True) -> Race:
    """A drain moves the entry from bucket 1 to bucket 2 and fires it there, while another thread cancels it."""

    def unlink(bucket: int) -> Action:
        def action(v: Vars) -> None:
            if v["list"] == bucket:
                v["list"], v[f"count{bucket}"] = 0, v[f"count{bucket}"] - 1
                v["moving"] = 1

        return action

    def look(v: Vars) -> None:
        if v["moving"] and v["cancelled"] and checks_cancel:
            v["moving"] = 0

    def link(v: Vars) -> None:
        if v["moving"]:
            v["list"], v["count2"], v["moving"] = 2, v["count2"] + 1, 0

    def submit(v: Vars) -> None:
        if v["moving"]:
            v["fired"], v["late"] = 1, v["cancelled before the look"]
            v["moving"] = 0

    def note_and_look(v: Vars) -> None:
        v["cancelled before the look"] = v["cancelled"]
        look(v)

    def read_list(v: Vars) -> None:
        v["seen"] = v["list"]

    def remove(v: Vars) -> None:
        if v["seen"] and (v["list"] == v["seen"] or (trusts_list and v["list"])):
            v["list"] = 0
            v[f"count{v['seen']}"] -= 1

    def sound(v: Vars, done: bool) -> bool:
        counts = v["count1"] == (v["list"] == 1) and v["count2"] == (v["list"] == 2)
        return counts and not v["late"]

    variables = {
        "list": 1,
        "count1": 1,
        "count2": 0,
        "moving": 0,
        "seen": 0,
        "cancelled": 0,
        "fired": 0,
        "late": 0,
    }
    variables["cancelled before the look"] = 0
    flaw = "remove-wrong-list" if trusts_list else "entry moved and cancelled"
    return Race(
        flaw if checks_cancel else "reinsert-no-cancel-check",
        variables,
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


def two_far_adds(locked: bool = True) -> Race:
    """Two threads add a task beyond the level; the overflow wheel must be made once."""

    def adder(me: int) -> tuple[tuple[str, Action], ...]:
        def enter(v: Vars) -> bool:
            free = not (v["monitor"] and locked)
            v["monitor"] = 1
            return free

        def look(v: Vars) -> None:
            v[f"missing{me}"] = int(v["overflow"] == 0)

        def make(v: Vars) -> None:
            if v[f"missing{me}"]:
                v["overflow"] = me

        def put(v: Vars) -> None:
            v[f"in{me}"] = v["overflow"]

        return (
            ("enter the monitor" if locked else "no monitor", enter),
            ("is there an overflow wheel?", look),
            ("make one if there was none", make),
            ("leave", _does(monitor=0)),
            ("add the task to the overflow wheel", put),
        )

    def sound(v: Vars, done: bool) -> bool:
        return not done or v["in1"] == v["in2"] == v["overflow"]

    variables = {"monitor": 0, "overflow": 0, "missing1": 0, "missing2": 0, "in1": 0, "in2": 0}
    name = "overflow wheel made on demand" if locked else "overflow-wheel-twice"
    return Race(name, variables, {"add-1": adder(1), "add-2": adder(2)}, sound, lambda v: v["in1"] == 2)


def add_during_flush(excluded: bool = True) -> Race:
    """A bucket is flushed while another thread adds to it; the read-write lock keeps the two apart."""

    def acquire(v: Vars) -> bool:
        free = not (excluded and v["lock"])
        v["lock"] = 1
        return free

    def empty(v: Vars) -> None:
        v["tasks"] = 0

    def add(v: Vars) -> None:
        v["tasks"], v["added"] = 1, 1

    def offer(v: Vars) -> None:
        if v["expiration"] != 1:
            v["expiration"], v["queued"] = 1, 1

    def sound(v: Vars, done: bool) -> bool:
        return not done or not v["tasks"] or bool(v["queued"])

    word = "lock" if excluded else "(no lock)"
    variables = {"lock": 0, "expiration": 1, "queued": 0, "tasks": 1, "added": 0}
    return Race(
        "bucket flushed under the lock" if excluded else "flush-resets-expiration-late",
        variables,
        {
            "drain": (
                (f"{word} for writing", acquire),
                ("empty the bucket", empty),
                ("reset its expiration", _does(expiration=-1)),
                ("leave", _does(lock=0)),
            ),
            "add": (
                (f"{word} for reading", acquire),
                ("append to the bucket", add),
                ("set its expiration, queue it if that changed", offer),
                ("leave", _does(lock=0)),
            ),
        },
        sound,
        lambda v: bool(v["queued"]),
    )
