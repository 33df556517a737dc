"""One key's list while the key is removed: registration against a checker that empties the list.

Bound: one key; operation A is completed and still listed, operation B is being registered; one or two checkers.
Source: KAFKA-2160 (empty lists are removed), KAFKA-2253 (what went wrong with that).
"""

from dataclasses import dataclass
from enum import Enum

from purgatorio_spec.known_bugs import bug_name
from purgatorio_spec.model.completion import NO_LOST
from purgatorio_spec.model.packed import (
    END,
    Bits,
    Instruction,
    Layout,
    Place,
    Program,
    StepFunction,
    block,
    branch,
    clear_flag,
    interleave,
    raise_flag,
)
from purgatorio_spec.model.shape import Model, Step

NO_ORPHAN = "P1 no operation sits in a list that its key does not lead to"


class ListFlaw(Enum):
    """Known mistakes, by their numbers in `purgatorio_spec.known_bugs`; `NONE` must hold."""

    NONE = 0
    APPEND_UNLOCKED = 3
    NO_EMPTINESS_TEST = 4


@dataclass(frozen=True, slots=True)
class Shelf:
    """The shared memory: the key's list number (0: none), who is in which list, B's condition and flag."""

    layout: Layout
    lock: Bits
    current: Bits
    members: tuple[Bits, Bits]  # of list 1 and 2: bit 0 is A, bit 1 is B
    published: Bits
    completed: Bits


def watch_list(flaw: ListFlaw, checkers: int) -> Model[int]:
    """Registration of B, `checkers` plain checks, and B's own event with its check."""
    layout = Layout()
    shelf = Shelf(
        layout,
        layout.add("lock"),
        layout.add("current", 2),
        (layout.add("list1", 2), layout.add("list2", 2)),
        layout.add("published"),
        layout.add("completed"),
    )
    columns = ("register", "event", *(f"check-{index}" for index in range(checkers)))
    programs = [Program(layout.add("pc register", 4), _register(shelf, layout.add("seen r", 2), flaw))]
    programs += [
        Program(
            layout.add(f"pc {name}", 4), _check(shelf, layout.add(f"seen {name}", 2), flaw, name == "event")
        )
        for name in columns[1:]
    ]
    start = shelf.members[0].put(shelf.current.put(0, 1), 1)
    ends = [program.is_at([END]) for program in programs]

    def done(state: int) -> bool:
        return all(end(state) for end in ends)

    def no_orphan(state: int) -> bool:
        if not done(state) or shelf.completed.get(state):
            return True
        current = shelf.current.get(state)
        return all(
            not bits.get(state) & 2 or number == current for number, bits in enumerate(shelf.members, 1)
        )

    return Model(
        name="watch list" if flaw is ListFlaw.NONE else f"watch list ({bug_name(flaw.value)})",
        bound=f"{2 + checkers} threads, 1 key, 2 operations",
        columns=columns,
        initial=(start,),
        steps=interleave(programs),
        describe=lambda before, actor, after: Step(columns[actor], programs[actor].text(before, after)),
        done=done,
        always={
            NO_LOST: lambda state: not done(state) or bool(shelf.completed.get(state)),
            NO_ORPHAN: no_orphan,
        },
        sometimes={
            "the key is removed": lambda state: shelf.current.get(state) == 0,
            "the registration makes a new list": lambda state: shelf.current.get(state) == 2,
            "B joins the old list": lambda state: bool(shelf.members[0].get(state) & 2),
        },
    )


def _register(shelf: Shelf, seen: Bits, flaw: ListFlaw) -> list[Instruction]:
    unlocked = flaw is ListFlaw.APPEND_UNLOCKED

    def find(at: Place) -> StepFunction:
        move = at.to("unlock" if unlocked else "append")

        def step(state: int) -> int:
            if not shelf.current.get(state):
                state = shelf.current.put(state, 2)
            return seen.put(state, shelf.current.get(state)) + move

        return step

    def append(at: Place) -> StepFunction:
        move = at.to("recheck" if unlocked else "unlock")

        def step(state: int) -> int:
            bits = shelf.members[seen.get(state) - 1]
            return bits.put(state, bits.get(state) | 2) + move

        return step

    def recheck(at: Place) -> StepFunction:
        move, mask = at.to(END), shelf.completed.mask
        return lambda state: ((state | mask) if shelf.published.get(state) else state) + move

    return [
        block("lock-for-find", "lock the shard", shelf.lock, "find"),
        Instruction("find", "find or make the key's list", find),
        Instruction("append", "append B to it", append),
        clear_flag("unlock", "unlock the shard", shelf.lock, "append" if unlocked else "recheck"),
        Instruction("recheck", "try_complete B again", recheck),
    ]


def _check(shelf: Shelf, seen: Bits, flaw: ListFlaw, publishes: bool) -> list[Instruction]:
    def read(at: Place) -> StepFunction:
        move = at.to("unlock-read")
        return lambda state: seen.put(state, shelf.current.get(state)) + move

    def traverse(at: Place) -> StepFunction:
        move = at.to("empty")

        def step(state: int) -> int:
            bits = shelf.members[seen.get(state) - 1]
            kept = bits.get(state) & 2  # A is completed: unlink it
            if kept and shelf.published.get(state):
                state, kept = state | shelf.completed.mask, 0
            if shelf.completed.get(state):
                kept = 0
            return bits.put(state, kept) + move

        return step

    def empty(at: Place) -> StepFunction:
        remove, leave = at.to("lock-for-remove"), at.to(END)
        return lambda state: state + (leave if shelf.members[seen.get(state) - 1].get(state) else remove)

    def remove(at: Place) -> StepFunction:
        move = at.to("unlock-remove")

        def step(state: int) -> int:
            number = seen.get(state)
            is_empty = not shelf.members[number - 1].get(state) or flaw is ListFlaw.NO_EMPTINESS_TEST
            if shelf.current.get(state) == number and is_empty:
                state = shelf.current.put(state, 0)
            return state + move

        return step

    publish = raise_flag("publish", "make B's condition true", shelf.published, "lock-for-read")
    return [
        *([publish] if publishes else []),
        block("lock-for-read", "lock the shard", shelf.lock, "read"),
        Instruction("read", "check_and_complete: read the key's list", read),
        clear_flag("unlock-read", "unlock the shard", shelf.lock, "none"),
        branch("none", "is there a list?", seen, "traverse", END).says({END: "no", "traverse": "yes"}),
        Instruction("traverse", "try every operation, unlink completed ones", traverse),
        Instruction("empty", "is the list empty?", empty, {END: "no", "lock-for-remove": "yes"}),
        block("lock-for-remove", "lock the shard", shelf.lock, "remove"),
        Instruction("remove", "remove the key if it still leads here and is empty", remove),
        clear_flag("unlock-remove", "unlock the shard", shelf.lock, END),
    ]
