"""What one layer said of one mutant."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kill:
    """`by` is the clause, the claim or the message; `effort` counts what was run, in `unit`.

    `preemptions`: of what was found. `hits`: how many of the rounds reported it. `reason`: why the layer was not run;
    it then has nothing to say, which is not the same as having looked in vain.
    """

    killed: bool
    by: str = ""
    effort: int = 0
    unit: str = ""
    seconds: float = 0.0
    preemptions: int | None = None
    hits: int | None = None
    reason: str = ""
