"""Deadlocks of several locks: each thread is a list of acquire and release actions.

`W` takes a write lock (reentrant by its owner). `R` takes a read lock. A waiting writer blocks new readers, as in
Java's ReentrantReadWriteLock (the bug KAFKA-7697 needs this). `J` waits for the end of a thread. For each bug there
are two models: the released order of the locks, and the repaired order.
"""

from dataclasses import dataclass
from typing import Literal

from purgatorio_spec.model.race import BLOCKED, Action, Race, Steps, Vars

Script = tuple[str, ...]  # "W lock", "R lock", "- lock" (release one hold), "J thread"


@dataclass(frozen=True, slots=True)
class LockStory:
    """`broken` must deadlock, `repaired` must not."""

    bug: int
    broken: dict[str, Script]
    repaired: dict[str, Script]
    not_reentrant: frozenset[str] = frozenset()


def _scripts(**texts: str) -> dict[str, Script]:
    """Threads by name (`_` means a hyphen), their actions separated by commas."""
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


_WORDS = {"W": "lock", "R": "read-lock", "-": "unlock", "J": "join"}


def lock_race(name: str, scripts: dict[str, Script], not_reentrant: frozenset[str]) -> Race:
    """The scripts as threads of actions. `W lock thread` and `R lock thread`: how often the thread holds it; `at
    thread`: the number of its next action."""
    named = {step.split()[1] for script in scripts.values() for step in script}
    held = {f"{mode} {lock} {thread}": 0 for mode in "WR" for lock in sorted(named) for thread in scripts}

    def action(me: str, mode: str, lock: str) -> Action:
        others = [thread for thread in scripts if thread != me]

        def holds(v: Vars, modes: str, threads: list[str]) -> bool:
            return any(v[f"{one} {lock} {thread}"] for one in modes for thread in threads)

        def must_wait(v: Vars) -> bool:
            if mode == "J":
                return v[f"at {lock}"] < len(scripts[lock])
            if mode == "-":
                return False
            if holds(v, "WR", [me]) and lock in not_reentrant:
                return True
            if mode == "W":
                return holds(v, "WR", others)
            behind = any(scripts[one][v[f"at {one}"] :][:1] == (f"W {lock}",) for one in others)
            return holds(v, "W", others) or (behind and holds(v, "R", others) and not holds(v, "R", [me]))

        def act(v: Vars) -> Literal["blocked"] | None:
            if must_wait(v):
                return BLOCKED
            v[f"at {me}"] += 1
            if mode == "-":
                v[f"{'W' if holds(v, 'W', [me]) else 'R'} {lock} {me}"] -= 1
            elif mode != "J":
                v[f"{mode} {lock} {me}"] += 1
            return None

        return act

    def steps(thread: str) -> Steps:
        parts = [step.split() for step in scripts[thread]]
        return tuple((f"{_WORDS[mode]} {lock}", action(thread, mode, lock)) for mode, lock in parts)

    first = next(iter(scripts))
    return Race(
        name,
        {f"at {thread}": 0 for thread in scripts} | held,
        {thread: steps(thread) for thread in scripts},
        {},
        {"a thread is at its end": lambda v: v[f"at {first}"] == len(scripts[first])},
        f"{len(named)} locks",
    )
