"""The results of `purgatorio model` and `purgatorio prove`: one for each claim, with its bound, its cost and its
negative controls."""

from dataclasses import dataclass

from purgatorio_spec.verdict import Verdict, worst


@dataclass(frozen=True, slots=True)
class TwinResult:
    """The result of a negative control. `verdict` must be VIOLATED. `shown`: the path or the integers that show it."""

    name: str
    number: int | None
    property: str
    verdict: Verdict
    shown: str
    states: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of a claim and of its negative controls. `states`: the number of states, 0 for a proof."""

    id: str
    statement: str
    bound: str
    verdict: Verdict
    states: int
    seconds: float
    twins: tuple[TwinResult, ...]
    shown: str = ""

    @property
    def twin(self) -> Verdict:
        """VIOLATED if all negative controls are VIOLATED. Otherwise the first other verdict of a negative control."""
        odd = [twin.verdict for twin in self.twins if twin.verdict is not Verdict.VIOLATED]
        return odd[0] if odd else Verdict.VIOLATED

    @property
    def judged(self) -> Verdict:
        """The verdict to report. A PASS without a VIOLATED negative control proves nothing, so it is UNKNOWN."""
        if self.verdict is Verdict.PASS and (self.twin is not Verdict.VIOLATED or not self.twins):
            return Verdict.UNKNOWN
        return self.verdict


def overall(results: list[ClaimResult]) -> Verdict:
    return worst(result.judged for result in results) if results else Verdict.UNKNOWN
