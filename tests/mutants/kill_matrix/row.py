"""The types of the JSON output of `python -m mutants`."""

from msgspec import Struct

from purgatorio_stress.printed import Count


class Kill(Struct, frozen=True):
    """The result of one layer for one known bug. `by` is the clause, the claim or the message; `effort`: the
    amount of work, in `unit`.

    `preemptions`: the number in the counterexample. `hits`: the number of rounds that found the bug. `reason`: the
    reason why the layer was not run. (A layer that was run and found nothing has no reason.)
    """

    killed: bool
    by: str = ""
    effort: int = 0
    unit: str = ""
    seconds: float = 0.0
    preemptions: int | None = None
    hits: int | None = None
    reason: str = ""


class MatrixRow(Struct, frozen=True, tag_field="kind", tag="mutant"):
    """A known bug with the results of the layers: a row of `mutants`, and a line of a file of `mutants --kept`."""

    number: Count
    name: str
    layers: dict[str, Kill]
    source: str = ""
    interleaving: bool = False
    scenario: str = ""

    @property
    def killed(self) -> bool:
        """Whether any layer found it."""
        return any(kill.killed for kill in self.layers.values())


class NotApplicable(Struct):
    """A row of the list of bugs whose mechanism this reference does not have."""

    number: Count
    name: str
    reason: str


class Mutants(Struct, tag_field="kind", tag="mutants"):
    mutants: list[MatrixRow]
    equivalent: list[str] = []
    not_applicable: list[NotApplicable] = []
