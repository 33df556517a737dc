"""What one layer said of one mutant."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Kill"]

_UNITS = ("schedules", "examples", "rounds")


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

    def as_json(self) -> dict[str, object]:
        """The shape of `purgatorio mutants --json`."""
        shape: dict[str, object] = {
            "killed": self.killed,
            "clause": self.by,
            "seconds": round(self.seconds, 3),
        }
        if self.unit:
            shape[self.unit] = self.effort
        for name in ("preemptions", "hits"):
            value = getattr(self, name)
            if value is not None:
                shape[name] = value
        if self.reason:
            shape["reason"] = self.reason
        return shape

    @classmethod
    def from_json(cls, shape: Mapping[str, object]) -> "Kill":
        """What `as_json` gave."""

        def whole(name: str) -> int | None:
            value = shape.get(name)
            return value if isinstance(value, int) else None

        unit = next((unit for unit in _UNITS if unit in shape), "")
        seconds = shape.get("seconds")
        return cls(
            bool(shape.get("killed")),
            str(shape.get("clause", "")),
            whole(unit) or 0,
            unit,
            float(seconds) if isinstance(seconds, int | float) else 0.0,
            whole("preemptions"),
            whole("hits"),
            str(shape.get("reason", "")),
        )
