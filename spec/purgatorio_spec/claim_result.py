"""The results of `model` and `prove`: one row for each claim, with its bound, its cost and its negative controls."""

from dataclasses import dataclass

from purgatorio_spec.verdict import Verdict, worst


@dataclass(frozen=True, slots=True)
class TwinResult:
    """A mistake next to a claim: `verdict` must be VIOLATED; `shown` is the path or the integers that show it."""

    name: str
    number: int | None
    property: str
    verdict: Verdict
    shown: str
    states: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim's own verdict and its negative controls. `states` is 0 where nothing is enumerated (a proof)."""

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
        """VIOLATED if every negative control failed as it must; otherwise the verdict of the first that did not."""
        odd = [twin.verdict for twin in self.twins if twin.verdict is not Verdict.VIOLATED]
        return odd[0] if odd else Verdict.VIOLATED

    @property
    def judged(self) -> Verdict:
        """The verdict that counts: a PASS whose negative control did not fail shows nothing, so it is UNKNOWN."""
        if self.verdict is Verdict.PASS and (self.twin is not Verdict.VIOLATED or not self.twins):
            return Verdict.UNKNOWN
        return self.verdict


def overall(results: list[ClaimResult]) -> Verdict:
    return worst(result.judged for result in results) if results else Verdict.UNKNOWN
