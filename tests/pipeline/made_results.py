"""What `stress` and `explore` print with --json, made by hand."""

import json
from typing import Any

from purgatorio_pipeline import printed
from purgatorio_pipeline.documents import decoded
from purgatorio_pipeline.finding import Finding
from purgatorio_pipeline.printed import Printed

AGAIN = "purgatorio stress reference --scenario two-events/locked --seed 1 --batch 7 --mutant bug.py"

LONG_COMMAND = f"purgatorio explore --replay two-events/locked/0/{'1x7-' * 200}T"


def outcome(said: str, count: int, grade: str, clause: str = "", again: str = "") -> dict[str, Any]:
    more = {name: value for name, value in (("clause", clause), ("again", again)) if value}
    return {"outcome": said, "count": count, "grade": grade, "overlapped": count, **more}


def stress_of(*scenarios: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "kind": "stress",
        "verdict": "VIOLATED",
        "rounds": 1,
        "dropped": 0,
        "scenarios": list(scenarios),
        **more,
    }


def raced(
    name: str = "two-events/locked", verdict: str = "VIOLATED", overlapped: int = 400
) -> dict[str, Any]:
    """A scenario under threads; one in a hundred rounds is broken if it is VIOLATED."""
    broken = [outcome("left at the end", 10, "forbidden", "O4", AGAIN)] * (verdict == "VIOLATED")
    rest = 1_000 - sum(one["count"] for one in broken)
    return {
        "name": name, "verdict": verdict, "rounds": 1_000, "overlapped": overlapped, "given_up": 0,
        "outcomes": [*broken, outcome("completed", rest - 1, "acceptable"), outcome("twice", 1, "interesting")],
    }  # fmt: skip


def explored(name: str = "two-events/locked", **more: Any) -> dict[str, Any]:
    return {
        "scenario": name, "verdict": "UNKNOWN", "strategy": "random", "schedules": 50, "bound": "a sample",
        "limit": "50 schedules", "unreached": ["a label"], "outcomes": [outcome("completed", 50, "acceptable")],
        "violations": [], **more,
    }  # fmt: skip


def explore_of(*scenarios: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "explore", "verdict": "UNKNOWN", "scenarios": list(scenarios), **more}


def findings_of(*shapes: object) -> list[Finding]:
    kind: Any = Printed  # a union is no type to mypy
    read = [decoded(json.dumps(shape), kind) for shape in shapes]
    return [row for one in read if not isinstance(one, printed.Check) for row in printed.findings_of(one)]
