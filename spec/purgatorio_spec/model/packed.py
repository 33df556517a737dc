"""States packed into one integer: named bit fields, and programs of small actions on these fields.

An integer state can be hashed and compared several times faster than a tuple. An action becomes one or two integer
operations. So the search visits more than 100,000 states per second in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Concatenate, ParamSpec

StepFunction = Callable[[int], int | None]  # None: blocked
P = ParamSpec("P")


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
class Place:
    """Where an instruction stands: it turns a target label into what must be added to the state."""

    counter: Bits
    here: int
    labels: Mapping[str, int]

    def to(self, label: str) -> int:
        """The difference that moves this thread's program counter to `label`."""
        return (self.labels[label] - self.here) << self.counter.shift


@dataclass(frozen=True, slots=True)
class Instruction:
    """One atomic action. A counterexample shows `text`; `outcomes` adds a word for each next label."""

    label: str
    text: str
    make: Callable[[Place], StepFunction]
    outcomes: Mapping[str, str] = field(default_factory=dict)

    def says(self, outcomes: Mapping[str, str]) -> Instruction:
        """The same, with a word for each label that it may go to."""
        return replace(self, outcomes=outcomes)


def instruction(
    make: Callable[Concatenate[Place, P], StepFunction],
) -> Callable[Concatenate[str, str, P], Instruction]:
    """Turns a function that makes an action at a label into one that makes the instruction; label and text come
    first."""

    def build(label: str, text: str, /, *args: P.args, **kwargs: P.kwargs) -> Instruction:
        return Instruction(label, text, lambda at: make(at, *args, **kwargs))

    return build


@instruction
def goto(at: Place, target: str) -> StepFunction:
    """An action that only jumps (a call or a return that another action waits for)."""
    move = at.to(target)
    return lambda state: state + move


@instruction
def raise_flag(at: Place, bit: Bits, target: str) -> StepFunction:
    mask, move = bit.mask, at.to(target)
    return lambda state: (state | mask) + move


@instruction
def clear_flag(at: Place, bit: Bits, target: str) -> StepFunction:
    keep, move = ~bit.mask, at.to(target)
    return lambda state: (state & keep) + move


@instruction
def branch(at: Place, bits: Bits, if_set: str, if_clear: str) -> StepFunction:
    """Read a flag, or whether a field is not 0, and go where it says."""
    mask, yes, no = bits.mask, at.to(if_set), at.to(if_clear)
    return lambda state: state + (yes if state & mask else no)


@instruction
def test_and_set(at: Place, bit: Bits, if_set: str, if_clear: str) -> StepFunction:
    mask, yes, no = bit.mask, at.to(if_set), at.to(if_clear)
    return lambda state: state + yes if state & mask else (state | mask) + no


@instruction
def block(at: Place, lock: Bits, target: str) -> StepFunction:
    mask, move = lock.mask, at.to(target)
    return lambda state: None if state & mask else (state | mask) + move


@instruction
def bump(at: Place, counter: Bits, target: str) -> StepFunction:
    """Count to two and stay there; the properties ask only for more than one."""
    one, two, move = 1 << counter.shift, 2 << counter.shift, at.to(target)
    return lambda state: (state if state & two else state + one) + move


END = "end"


class ThreadProgram:
    """The instructions of one thread over its program counter; the label `end` is its last."""

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
            instruction.make(Place(counter, at, labels)) for at, instruction in enumerate(instructions)
        ]
        self.functions.append(lambda state: None)

    def at(self, state: int) -> str:
        return self.names[self.counter.get(state)]

    def is_at(self, labels: Sequence[str]) -> Callable[[int], bool]:
        """A predicate: this thread is at one of `labels` (unknown labels are an error)."""
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
    """Symmetry of `count` equal records of `width` bits each: the representative has them sorted."""
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
