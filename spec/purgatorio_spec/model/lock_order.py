"""Deadlocks of several locks: each thread is a list of acquire and release steps, nothing else.

`W` write-locks (reentrant by its owner), `R` read-locks; a waiting writer keeps new readers out, as Java's
ReentrantReadWriteLock does (KAFKA-7697 needs that). `J` waits for a thread's end. Each story has the order that
was released and the order that repaired it.
"""

from dataclasses import dataclass

from purgatorio_spec.model.shape import Model, Step

Script = tuple[str, ...]  # "W lock", "R lock", "- lock" (release one hold), "J thread"
LockState = tuple[tuple[int, ...], tuple[tuple[str, str, int], ...]]  # counters, holds (lock, mode, thread)


@dataclass(frozen=True, slots=True)
class LockStory:
    """`broken` must deadlock, `repaired` must not."""

    bug: int
    broken: dict[str, Script]
    repaired: dict[str, Script]
    not_reentrant: frozenset[str] = frozenset()


def _scripts(**texts: str) -> dict[str, Script]:
    """Threads by name (a `_` stands for a hyphen), their steps divided by commas."""
    return {name.replace("_", "-"): tuple(text.split(", ")) for name, text in texts.items()}


_ROLLS = {"roll_1": "W part-1, - part-1", "roll_2": "W part-2, - part-2"}

STORIES = (
    LockStory(
        6,
        _scripts(check="W list, W shard, - shard, - list", register="W shard, W list, - list, - shard"),
        _scripts(check="W list, - list, W shard, W list, - list, - shard",
                 register="W shard, W list, - list, - shard"),
    ),
    LockStory(
        7,
        _scripts(check="W list, W group, - group, - list", request="W group, W list, - list, - group"),
        _scripts(check="W list, - list, W group, - group", request="W group, W list, - list, - group"),
    ),
    LockStory(
        9,
        _scripts(group_1="W group-1, W group-2, - group-2, - group-1",
                 group_2="W group-2, W group-1, - group-1, - group-2"),
        _scripts(group_1="W group-1, - group-1, W group-2, - group-2",
                 group_2="W group-2, - group-2, W group-1, - group-1"),
    ),
    LockStory(
        10,
        _scripts(check="W op, W group, - group, - op", request="W group, W op, - op, - group"),
        _scripts(check="W group, W group, - group, - group", request="W group, W group, - group, - group"),
    ),
    LockStory(
        17,
        _scripts(event="W state, W op, - op, - state", check="W op, W state, - state, - op"),
        _scripts(event="W state, - state, W op, - op", check="W op, W state, - state, - op"),
    ),
    LockStory(
        18,
        _scripts(fetch_1="R part-1, R part-2, - part-2, - part-1",
                 fetch_2="R part-2, R part-1, - part-1, - part-2", **_ROLLS),
        _scripts(fetch_1="R part-1, - part-1, R part-2, - part-2",
                 fetch_2="R part-2, - part-2, R part-1, - part-1", **_ROLLS),
    ),
    LockStory(
        57,
        _scripts(drain="W bucket, W bucket, - bucket, - bucket", add="W bucket, - bucket"),
        _scripts(drain="W monitor, W monitor, - monitor, - monitor", add="W monitor, - monitor"),
        frozenset({"bucket"}),
    ),
    LockStory(94, _scripts(reaper="W op, J reaper, - op"), _scripts(reaper="W op, - op", owner="J reaper")),
)  # fmt: skip


def lock_model(name: str, scripts: dict[str, Script], not_reentrant: frozenset[str]) -> Model[LockState]:
    """Every interleaving of the scripts."""
    threads = tuple(scripts)
    programs = tuple(scripts.values())

    def steps(state: LockState) -> list[tuple[int, LockState]]:
        counters, _ = state
        found = []
        for thread, counter in enumerate(counters):
            if counter == len(programs[thread]):
                continue
            after = _apply(state, thread, programs, threads, not_reentrant)
            if after is not None:
                found.append((thread, ((*counters[:thread], counter + 1, *counters[thread + 1 :]), after)))
        return found

    def describe(before: LockState, actor: int, after: LockState) -> Step:
        action, lock = programs[actor][before[0][actor]].split()
        words = {"W": "lock", "R": "read-lock", "-": "unlock", "J": "join"}
        return Step(threads[actor], f"{words[action]} {lock}")

    return Model(
        name=name,
        bound=f"{len(threads)} threads, {len({step.split()[1] for script in programs for step in script})} locks",
        columns=threads,
        initial=((tuple(0 for _ in threads), ()),),
        steps=steps,
        describe=describe,
        done=lambda state: all(c == len(p) for c, p in zip(state[0], programs, strict=True)),
        sometimes={"a thread is at its end": lambda state: state[0][0] == len(programs[0])},
    )


def _apply(
    state: LockState,
    thread: int,
    programs: tuple[Script, ...],
    threads: tuple[str, ...],
    not_reentrant: frozenset[str],
) -> tuple[tuple[str, str, int], ...] | None:
    """The holds after the next action of `thread`; None while it must wait."""
    counters, holds = state
    action, lock = programs[thread][counters[thread]].split()
    mine = [hold for hold in holds if hold[0] == lock and hold[2] == thread]
    others = [hold for hold in holds if hold[0] == lock and hold[2] != thread]
    if action == "J":
        joined = threads.index(lock)
        return holds if counters[joined] == len(programs[joined]) else None
    if action == "-":
        rest = list(holds)
        rest.remove(mine[-1])
        return tuple(rest)
    if mine and lock in not_reentrant:
        return None
    if action == "W":
        return None if others else tuple(sorted((*holds, (lock, "W", thread))))
    writer_waits = any(
        other != thread
        and counters[other] < len(programs[other])
        and programs[other][counters[other]] == f"W {lock}"
        for other in range(len(threads))
    )
    blocked = any(mode == "W" for _, mode, _ in others) or (writer_waits and bool(others) and not mine)
    return None if blocked else tuple(sorted((*holds, (lock, "R", thread))))
