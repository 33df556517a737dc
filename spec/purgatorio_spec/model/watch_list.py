"""The model of one key's list, which is removed while an operation is added to it.

The model has a few shared variables, and threads of atomic actions. An action is a function that changes the variables,
reports that it is blocked, or ends its thread. The negative controls are the known bugs `orphan-watcher-list` and
`remove-key-no-emptiness-recheck`. (KAFKA-2160 removes empty lists, and KAFKA-2253 repairs this removal.)
"""

from collections.abc import Callable
from typing import Final, Literal

from purgatorio_spec.known_bugs import bug_name
from purgatorio_spec.model.completion import NO_LOST
from purgatorio_spec.model.shape import Model, Move

Vars = dict[str, int]
BLOCKED: Final = "blocked"
ENDS: Final = "ends"
Action = Callable[[Vars], Literal["blocked", "ends"] | None]
Steps = tuple[tuple[str, Action], ...]
ListState = tuple[tuple[int, ...], tuple[int, ...]]  # counters, variables
NO_ORPHAN = "P1 no operation sits in a list that its key does not lead to"


def _lock(v: Vars) -> Literal["blocked"] | None:
    if v["lock"]:
        return BLOCKED
    v["lock"] = 1
    return None


def _does(**changes: int) -> Action:
    def action(v: Vars) -> None:
        v.update(changes)

    return action


def watch_list(checkers: int, append_locked: bool = True, tests_emptiness: bool = True) -> Model[ListState]:
    """One key's list, in which operation A (bit 1) is completed and still listed: operation B (bit 2) is registered,
    its own event comes, and `checkers` run concurrently. `current`: the number of the key's list, 0 for none."""
    lock, unlock = ("lock the shard", _lock), ("unlock the shard", _does(lock=0))

    def find(v: Vars) -> None:
        v["current"] = v["current"] or 2
        v["seen by register"] = v["current"]

    def append(v: Vars) -> None:
        v[f"list {v['seen by register']}"] |= 2

    def try_b(v: Vars) -> None:
        v["completed"] |= v["published"]

    def checker(me: str) -> Steps:
        def see(v: Vars) -> None:
            v[f"seen by {me}"] = v["current"]

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
            lock,
            ("check_and_complete: read the key's list", see),
            unlock,
            ("continue if there is a list", stop_without_list),
            ("try every operation, unlink completed ones", traverse),
            ("continue if the list is empty", stop_unless_empty),
            lock,
            ("remove the key if it still leads here and is empty", remove),
            unlock,
        )

    put = ("append B to it", append)
    register: Steps = (
        lock,
        ("find or make the key's list", find),
        *((put, unlock) if append_locked else (unlock, put)),
        ("try_complete B again", try_b),
    )
    publish = ("make B's condition true", _does(published=1))
    others = [f"check-{index}" for index in range(checkers)]
    programs = {"register": register, "event": (publish, *checker("event"))}
    programs |= {name: checker(name) for name in others}
    columns, threads = tuple(programs), tuple(programs.values())
    first = {"lock": 0, "current": 1, "list 1": 1, "list 2": 0, "published": 0, "completed": 0}
    first |= {f"seen by {name}": 0 for name in columns}

    def named(state: ListState) -> Vars:
        return dict(zip(first, state[1], strict=True))

    def steps(state: ListState) -> list[tuple[int, ListState]]:
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

    def done(state: ListState) -> bool:
        return all(c == len(t) for c, t in zip(state[0], threads, strict=True))

    def no_orphan(state: ListState) -> bool:
        v = named(state)
        listed = [number for number in (1, 2) if v[f"list {number}"] & 2]
        return not done(state) or bool(v["completed"]) or all(number == v["current"] for number in listed)

    flaw = None if append_locked and tests_emptiness else 4 if append_locked else 3
    return Model(
        name="watch list" if flaw is None else f"watch list ({bug_name(flaw)})",
        bound=f"{len(columns)} threads, 1 key, 2 operations",
        columns=columns,
        initial=((tuple(0 for _ in columns), tuple(first.values())),),
        steps=steps,
        describe=lambda before, actor, after: Move(columns[actor], threads[actor][before[0][actor]][0]),
        done=done,
        always={
            NO_LOST: lambda state: not done(state) or bool(named(state)["completed"]),
            NO_ORPHAN: no_orphan,
        },
        sometimes={
            "the key is removed": lambda state: named(state)["current"] == 0,
            "the registration makes a new list": lambda state: named(state)["current"] == 2,
            "B joins the old list": lambda state: bool(named(state)["list 1"] & 2),
        },
    )
