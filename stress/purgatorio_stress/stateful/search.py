"""Runs a stateful test as a search: returns the failure and the number of examples, or None."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from purgatorio import InvariantBroken
from purgatorio_spec.oracle.hypothesis_profiles import HUNT
from purgatorio_spec.oracle.timer_set import Disagreement

DEFAULT_EXAMPLES: Final = 300
"""Examples of a hunt: about two to five seconds where there is nothing to find."""


@dataclass(frozen=True, slots=True)
class Failing:
    """`clause` is the first word of the message: an id, `T3 or T4`, or `CHECK` for a structure's own invariant.

    `O8`: the reference itself raised. `examples` counts the one that failed.
    """

    clause: str
    said: str
    examples: int


@dataclass(frozen=True, slots=True)
class Search:
    """`begin` gives a function that searches with these settings, and one that says how many examples it has begun."""

    name: str
    begin: Callable[[int | None], tuple[Callable[[settings], None], Callable[[], int]]]
    examples: int = DEFAULT_EXAMPLES
    """The default of a search; the CI profile uses as many."""

    def hunt(self, examples: int | None = None) -> Failing | None:
        """Search so many examples, the same ones every time, until the first that fails. Does not shrink."""
        return self.run(settings(HUNT, max_examples=examples or self.examples))

    def run(self, profile: settings, of_seed: int | None = None) -> Failing | None:
        """Search as this profile says, from a seed where it is not derandomised; None where nothing was found."""
        search, begun = self.begin(of_seed)
        try:
            # Hypothesis prints the program of a failure; the caller that wants it runs the test.
            with contextlib.redirect_stdout(io.StringIO()):
                search(profile)
        except Disagreement as wrong:
            return Failing(str(wrong).partition(":")[0], str(wrong), begun())
        except InvariantBroken as wrong:
            return Failing("CHECK", str(wrong), begun())
        except Exception as error:
            return Failing("O8", f"{type(error).__name__}: {error}", begun())
        return None


def of_machine(name: str, machine: type[RuleBasedStateMachine]) -> Search:
    """The search of a stateful test."""

    def begin(of_seed: int | None) -> tuple[Callable[[settings], None], Callable[[], int]]:
        begun = 0

        class Counted(machine):  # type: ignore[misc, valid-type]  # a class that is given is no name to mypy
            def __init__(self) -> None:
                nonlocal begun
                begun += 1
                super().__init__()

        Counted.__name__ = machine.__name__
        if of_seed is not None:
            seed(of_seed)(Counted)
        return lambda profile: run_state_machine_as_test(Counted, settings=profile), lambda: begun

    return Search(name, begin)


P = TypeVar("P")


def of_programs(name: str, programs: st.SearchStrategy[P], run: Callable[[P], None], examples: int) -> Search:
    """The search of a property of random programs."""

    def begin(of_seed: int | None) -> tuple[Callable[[settings], None], Callable[[], int]]:
        begun = 0

        def search(profile: settings) -> None:
            @profile
            @given(program=programs)
            def holds(program: P) -> None:
                nonlocal begun
                begun += 1
                run(program)

            (holds if of_seed is None else seed(of_seed)(holds))()

        return search, lambda: begun

    return Search(name, begin, examples)
