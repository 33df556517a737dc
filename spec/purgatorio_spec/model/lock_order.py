"""Models of deadlocks. Each thread is a list of actions, such as the acquire or the release of a lock.

`W` acquires a write lock (re-entrant for its owner). `R` acquires a read lock. A waiting writer blocks new readers, as
in Java's ReentrantReadWriteLock (without this rule, KAFKA-7697 would be no deadlock). `J` waits for the end of a
thread. For each bug there are two models: the lock order with the bug, and the repaired order. The file
`lock_orders.toml` has the lists of actions.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from purgatorio_spec.model.race import BLOCKED, Action, RaceModel, Steps, Vars

Script = tuple[str, ...]  # "W lock", "R lock", "- lock" (release one hold), "J thread"


@dataclass(frozen=True, slots=True)
class LockStory:
    """`broken` must deadlock, `repaired` must not."""

    bug: int
    broken: dict[str, Script]
    repaired: dict[str, Script]
    not_reentrant: frozenset[str] = frozenset()


def _scripts(texts: Mapping[str, str]) -> dict[str, Script]:
    return {thread: tuple(text.split(", ")) for thread, text in texts.items()}


STORIES = tuple(
    LockStory(
        int(bug),
        _scripts(said["broken"]),
        _scripts(said["repaired"]),
        frozenset(said.get("not_reentrant", "").split()),
    )
    for bug, said in tomllib.loads(files(__package__).joinpath("lock_orders.toml").read_text("utf-8")).items()
)


_WORDS = {"W": "lock", "R": "read-lock", "-": "unlock", "J": "join"}


def lock_race(name: str, scripts: dict[str, Script], not_reentrant: frozenset[str]) -> RaceModel:
    """A model of these lists of actions. Its variables: `W lock thread` and `R lock thread` count the holds of the
    thread, and `at thread` is the number of its next action."""
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
    return RaceModel(
        name,
        {f"at {thread}": 0 for thread in scripts} | held,
        {thread: steps(thread) for thread in scripts},
        {},
        {"a thread is at its end": lambda v: v[f"at {first}"] == len(scripts[first])},
        f"{len(named)} locks",
    )
