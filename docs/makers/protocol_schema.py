"""The published JSON Schema of `purgatorio-subject/1`, derived from the typed messages.

`python -m docs.makers.protocol_schema` writes the file anew; a test fails when it is behind. The schema describes
one line. What depends on the lines before it (which call is answered, which ids there are, what a description
contradicts) is the conversation's alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import orjson

from purgatorio_conformance.protocol import message
from purgatorio_conformance.protocol.message import CALLS, INCOMING, PROTOCOL
from purgatorio_conformance.protocol.rule import FieldRule, Number, Rule, Text, field_rules

Json = dict[str, object]

SCHEMA_FILE: Final = Path(message.__file__).with_name("subject-1.schema.json")


def json_schema() -> Json:
    """Draft 2020-12: a line is either a call of the driver or what the subject says."""
    calls = [_message(name, record, of_driver=True) for name, record in CALLS.items()]
    said = [_message(name, record, of_driver=False) for name, record in INCOMING.items()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of {PROTOCOL}",
        "oneOf": [{"$ref": "#/$defs/call"}, {"$ref": "#/$defs/said"}],
        "$defs": {
            "call": {"description": "from the driver", "oneOf": calls},
            "said": {"description": "from the subject", "oneOf": said},
        },
    }


def _message(name: str, record: type[object], *, of_driver: bool) -> Json:
    rules = field_rules(record)
    properties: Json = {"m": {"const": name}}
    needed = ["m", *(rule.name for rule in rules if rule.needed)]
    if of_driver:
        properties |= {"n": {"type": "integer", "minimum": 0}, "lane": {"type": "integer", "minimum": 1}}
        properties |= {
            "hold": {"description": "the pause of the calling thread", "type": "integer", "minimum": 0},
            "step": {"description": "the step where the call pauses", "type": "integer", "minimum": 0},
            "again": {
                "description": "the second step where the call pauses, after `step`",
                "type": "integer",
                "minimum": 1,
            },
            "settle": {"description": "0: answer without waiting for its own threads", "const": 0},
        }
        needed.append("n")
    properties |= {rule.name: _field(rule) for rule in rules}
    return {
        "description": " ".join((record.__doc__ or "").split()),
        "type": "object",
        "required": needed,
        "properties": properties,
        "patternProperties": {"^x_": {"description": "fields of the subject, which are ignored"}},
        "additionalProperties": False,
    }


def _field(rule: FieldRule) -> Json:
    of_rule = _rule(rule.rule)
    # Null is the same as absent.
    allowed = of_rule if rule.needed else {"anyOf": [of_rule, {"type": "null"}]}
    return {"description": rule.meaning, **allowed}


def _rule(rule: Rule) -> Json:
    if isinstance(rule, Number):
        return {"type": "integer", "minimum": rule.least, "maximum": rule.most}
    if isinstance(rule, Text):
        return {"enum": list(rule.words)} if rule.words else {"type": "string", "maxLength": rule.longest}
    return {"type": "array", "items": _rule(rule.item), "minItems": rule.least, "maxItems": rule.most}


def schema_text() -> str:
    return orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2).decode() + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
