"""States of a model as one integer with named bit fields, and actions on these fields.

An integer is hashed and compared several times faster than a tuple, and an action takes one or two integer operations.
So the search visits more than 100,000 states per second in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

StepFunction = Callable[[int], int | None]  # None: blocked


@dataclass(frozen=True, slots=True)
class Bits:
    """A named field of the packed state: `width` bits from `shift`."""

    name: str
    shift: int
    width: int

    @property
    def mask(self) -> int:
        return ((1 << self.width) - 1) << self.shift

    def get(self, state: int) -> int:
        return (state >> self.shift) & ((1 << self.width) - 1)

    def put(self, state: int, value: int) -> int:
        """`state` with the field set. ValueError if the value does not fit."""
        if not 0 <= value < 1 << self.width:
            raise ValueError(f"{self.name} = {value} does not fit {self.width} bits")
        return (state & ~self.mask) | value << self.shift


class Layout:
    def __init__(self) -> None:
        self.fields: dict[str, Bits] = {}
        self.width = 0

    def add(self, name: str, width: int = 1) -> Bits:
        """A new field above all earlier ones. ValueError if the name is taken."""
        if name in self.fields:
            raise ValueError(f"field {name!r} exists")
        self.fields[name] = Bits(name, self.width, width)
        self.width += width
        return self.fields[name]


@dataclass(frozen=True, slots=True)
class JumpOrigin:
    """The place of an instruction in a program. `to` computes the number that a jump to a label adds to the state."""

    counter: Bits
    here: int
    labels: Mapping[str, int]

    def to(self, label: str) -> int:
        """The number to add to the state, so that this thread's program counter is at `label`."""
        return (self.labels[label] - self.here) << self.counter.shift


@dataclass(frozen=True, slots=True)
class Instruction:
    """One atomic action. A counterexample shows `text`; `outcomes` adds a word for each next label."""

    label: str
    text: str
    make: Callable[[JumpOrigin], StepFunction]
    outcomes: Mapping[str, str] = field(default_factory=dict)

    def says(self, outcomes: Mapping[str, str]) -> Instruction:
        """The same instruction, with a word for each next label."""
        return replace(self, outcomes=outcomes)


def act(
    label: str,
    text: str,
    then: str,
    *,
    when: tuple[int, int] = (0, 0),
    otherwise: str | None = None,
    sets: Mapping[Bits, int] | None = None,
    counts: Bits | None = None,
) -> Instruction:
    """An action with a condition: `when` has a bit mask and a value. If the masked state equals the value, the action
    sets fields, increases counters, and goes to `then`. Otherwise it goes to `otherwise`, or is blocked. A counter
    stops at two, because the properties test only for more than one."""
    test, value = when
    given = sets or {}
    keep, put = ~sum(bits.mask for bits in given), sum(bits.put(0, number) for bits, number in given.items())
    one, two = (0, 0) if counts is None else (1 << counts.shift, 2 << counts.shift)

    def make(at: JumpOrigin) -> StepFunction:
        move, stay = at.to(then), None if otherwise is None else at.to(otherwise)

        def step(state: int) -> int | None:
            if state & test != value:
                return None if stay is None else state + stay
            return (state & keep | put) + (move if state & two else move + one)

        return step

    return Instruction(label, text, make)


END = "end"


class ThreadProgram:
    """The instructions of one thread, by its program counter. The last label is `end`."""

    def __init__(self, counter: Bits, instructions: Sequence[Instruction]) -> None:
        labels = {instruction.label: at for at, instruction in enumerate(instructions)}
        if len(labels) != len(instructions):
            raise ValueError("two instructions share a label")
        labels[END] = len(instructions)
        self.counter = counter
        self.labels = labels
        self.names = [*(instruction.label for instruction in instructions), END]
        self.instructions = tuple(instructions)
        self.functions: list[StepFunction] = [
            instruction.make(JumpOrigin(counter, at, labels)) for at, instruction in enumerate(instructions)
        ]
        self.functions.append(lambda state: None)

    def at(self, state: int) -> str:
        return self.names[self.counter.get(state)]

    def is_at(self, labels: Sequence[str]) -> Callable[[int], bool]:
        """Returns a predicate of a state: whether this thread is at one of `labels`. An unknown label is an error."""
        wanted = frozenset(self.labels[label] for label in labels)
        shift, mask = self.counter.shift, (1 << self.counter.width) - 1
        return lambda state: ((state >> shift) & mask) in wanted

    def text(self, before: int, after: int) -> str:
        """The action from `before` to `after` in words."""
        instruction = self.instructions[self.counter.get(before)]
        outcome = instruction.outcomes.get(self.at(after))
        return instruction.text if outcome is None else f"{instruction.text}: {outcome}"


def interleave(programs: Sequence[ThreadProgram]) -> Callable[[int], list[tuple[int, int]]]:
    """All transitions of a state, one for each thread that is not blocked and has not ended."""
    threads = [
        (actor, program.counter.shift, (1 << program.counter.width) - 1, program.functions)
        for actor, program in enumerate(programs)
    ]

    def steps(state: int) -> list[tuple[int, int]]:
        found = []
        for actor, shift, mask, functions in threads:
            after = functions[(state >> shift) & mask](state)
            if after is not None:
                found.append((actor, after))
        return found

    return steps


def sorted_records(first_shift: int, width: int, count: int) -> Callable[[int], int]:
    """Returns a function that sorts `count` records of `width` bits in a state. So states that differ only in the order
    of these records become equal (symmetry)."""
    record = (1 << width) - 1
    whole = ((1 << (width * count)) - 1) << first_shift
    shifts = [first_shift + width * index for index in range(count)]

    def canonical(state: int) -> int:
        records = sorted([(state >> shift) & record for shift in shifts])
        state &= ~whole
        for shift, value in zip(shifts, records, strict=True):
            state |= value << shift
        return state

    return canonical
