"""The parts of `docs/measured/subject-messages.md` that are made from the messages and from a real run.

    python -m docs.makers.protocol_page docs/measured/subject-messages.md

writes them anew between their markers; the rest of the page is written by hand. Run it where `examples` is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from docs.makers.marked import with_part
from purgatorio_conformance.protocol.message import (
    CALLS,
    CAPABILITIES,
    INCOMING,
    Add,
    Advance,
    Cancel,
    Check,
    Gauge,
    Ready,
    Register,
)
from purgatorio_conformance.protocol.rule import FieldRule, Number, Rule, Text, field_rules
from purgatorio_conformance.protocol.script import Script, ScriptPlayer
from purgatorio_pipeline.report.markdown_text import table

MS: Final = 1_000_000
EXAMPLES: Final = Path("examples/subjects")

SHOWN_SCRIPT: Final = Script(
    "timer",
    1_000 * MS,
    (
        Add("t-0", 2_500_000),
        Add("t-1", 40 * MS),
        Add("t-2", 0),
        Cancel("t-1"),
        Cancel("t-1"),
        Advance(1_002 * MS),
        Advance(1_003 * MS),
        Gauge(),
        Advance(1_043 * MS),
    ),
)
"""The run of a timer that the page shows."""

SHOWN_PURGATORY: Final = Script(
    "purgatory",
    0,
    (
        Register("op-0", ("a", "b"), 5 * MS),
        Ready("op-0"),
        Check("b"),
        Register("op-1", ("a",), 5 * MS),
        Advance(5 * MS),
    ),
)
"""And of a purgatory."""


def transcripts() -> dict[str, str]:
    """Both, run now, by marker."""
    return {
        "transcript": transcript([sys.executable, str(EXAMPLES / "toy_wheel.py")], SHOWN_SCRIPT),
        "purgatory": transcript([sys.executable, str(EXAMPLES / "toy_purgatory.py")], SHOWN_PURGATORY),
    }


def transcript(command: Sequence[str], script: Script) -> str:
    """The whole session of one run of the script, from `describe` to the answer to `stop`."""
    with closing(ScriptPlayer(command)) as player:
        played = player.play(script)
        return "\n".join((*player.opening, *played.session, *player.finish())) + "\n"


def sections() -> Mapping[str, str]:
    """The generated parts, by marker."""
    events = [name for name in INCOMING if name not in ("description", "answer")]
    return {
        "calls": "\n\n".join(_message(name, CALLS[name]) for name in CALLS),
        "description": _message("description", INCOMING["description"]),
        "answer": _message("answer", INCOMING["answer"]),
        "events": "\n\n".join(
            [_message(name, INCOMING[name], fields=name in ("enter", "leave", "held")) for name in events]
            + ["All others have these fields:", _fields(INCOMING["fired"])]
        ),
        "capabilities": table(
            ("capability", "the subject"), [(f"`{n}`", meaning) for n, meaning in CAPABILITIES.items()]
        ).rstrip(),
    }


def _message(name: str, record: type[object], *, fields: bool = True) -> str:
    text = " ".join((record.__doc__ or "").split())
    table = f"\n\n{_fields(record)}" if fields and field_rules(record) else ""
    return f"**`{name}`**: {text}{table}"


def _fields(record: type[object]) -> str:
    rows = [(f"`{rule.name}`", _values(rule), rule.meaning) for rule in field_rules(record)]
    return table(("field", "value", "meaning"), rows).rstrip()


def _values(rule: FieldRule) -> str:
    said = _value(rule.rule)
    if rule.needed:
        return said
    return f"{said}; else {_bound(rule.default)}" if isinstance(rule.default, int) else f"{said}; optional"


def _value(rule: Rule) -> str:
    if isinstance(rule, Number):
        least = _bound(rule.least)
        return f"integer, {least} to {_bound(rule.most)}"
    if isinstance(rule, Text):
        words = [f"`{word}`" for word in rule.words]
        return (" or " if len(words) < 3 else ", ").join(words) or f"text, up to {rule.longest} characters"
    if isinstance(rule.item, Number):
        return f"list of up to {rule.most} integers"
    if rule.item.words:
        return "list of texts"
    return f"list of up to {rule.most} texts"


def _bound(value: int) -> str:
    for power in (53, 63):
        if value == (1 << power) - 1:
            return f"2^{power}-1"
    return "-2^63" if value == -(1 << 63) else str(value)


def updated(page: str, made: Mapping[str, str]) -> str:
    """The page with every made part as it should be, and these transcripts, by their markers."""
    parts = {**sections(), **{name: f"```text\n{text}```" for name, text in made.items()}}
    for marker, text in parts.items():
        # The messages' texts link as a page of docs/ does, and this page lies one folder below.
        page = with_part(page, marker, f"{text}\n".replace("](clauses.md", "](../clauses.md"))
    return page


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(updated(place.read_text(encoding="utf-8"), transcripts()), encoding="utf-8")
