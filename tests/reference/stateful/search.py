"""Runs a stateful test as a search: returns the failure and the number of examples, or None."""

import contextlib
import io
from dataclasses import dataclass
from typing import Final

from hypothesis import seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from hypothesis_profiles import HUNT
from purgatorio import InvariantBroken
from reference.stateful.timer_set import Disagreement

_EXAMPLES: Final = 300
"""The number of examples of a hunt. Without a bug, they take about two to five seconds."""


@dataclass(frozen=True, slots=True)
class Failing:
    """A failure. `clause` is the first part of the message: an id, `T3 or T4`, or `CHECK` for a broken invariant.

    `O8` also stands for an exception of the reference. `examples` includes the failed example.
    """

    clause: str
    said: str
    examples: int


@dataclass(frozen=True, slots=True)
class MachineSearch:
    name: str
    machine: type[RuleBasedStateMachine]

    def hunt(self, examples: int = _EXAMPLES) -> Failing | None:
        """Run examples until the first failure, without shrinking. The examples are the same each time."""
        return self.run(settings(HUNT, max_examples=examples))

    def run(self, profile: settings, of_seed: int | None = None) -> Failing | None:
        """Run examples with a Hypothesis profile. `of_seed`: the seed, if the profile is random. None: no failure."""
        begun = 0

        class Counted(self.machine):  # type: ignore[misc, name-defined]  # a class that is given is no name to mypy
            def __init__(self) -> None:
                nonlocal begun
                begun += 1
                super().__init__()

        Counted.__name__ = self.machine.__name__
        if of_seed is not None:
            seed(of_seed)(Counted)
        try:
            # Hypothesis prints the program of a failure. A caller that needs the program runs the test.
            with contextlib.redirect_stdout(io.StringIO()):
                run_state_machine_as_test(Counted, settings=profile)
        except Disagreement as wrong:
            return Failing(str(wrong).partition(":")[0], str(wrong), begun)
        except InvariantBroken as wrong:
            return Failing("CHECK", str(wrong), begun)
        except Exception as error:
            return Failing("O8", f"{type(error).__name__}: {error}", begun)
        return None
