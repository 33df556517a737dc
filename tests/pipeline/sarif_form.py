"""The part of the SARIF 2.1.0 schema that the reports use, as a JSON Schema. Like the standard's schema, it allows
no other property in any of these objects. Names and limits are those of the standard, sections 3.13 to 3.58. Further
requirements are those of GitHub's code scanning for a rule and a result, with its limits of length."""

from __future__ import annotations

from typing import Final

Form = dict[str, object]


def _object(required: str, **properties: Form) -> Form:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def _list(of: Form, least: int = 0) -> Form:
    return {"type": "array", "items": of, "minItems": least}


TEXT: Final[Form] = {"type": "string"}
LEVEL: Final[Form] = {"enum": ["none", "note", "warning", "error"]}
MESSAGE: Final = _object("text", text=TEXT)
LOCATION: Final = _object(
    "physicalLocation",
    physicalLocation=_object(
        "artifactLocation",
        artifactLocation=_object("uri", uri={"type": "string", "pattern": r"^[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]*$"}),
        region=_object("startLine", startLine={"type": "integer", "minimum": 1}),
    ),
    message=MESSAGE,
)  # fmt: skip
STEP: Final = _object(
    "location",
    location=LOCATION,
    executionOrder={"type": "integer", "minimum": -1},
    nestingLevel={"type": "integer", "minimum": 0},
    importance={"enum": ["important", "essential", "unimportant"]},
)
FLOW: Final = _object("locations", id=TEXT, locations=_list(STEP, 1))
RESULT: Final = _object(
    "message ruleId ruleIndex kind level locations partialFingerprints",
    message=MESSAGE,
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level=LEVEL,
    locations=_list(LOCATION, 1),
    occurrenceCount={"type": "integer", "minimum": 1},
    partialFingerprints={
        "type": "object",
        "properties": {"primaryLocationLineHash": {"type": "string", "pattern": "^[0-9a-f]{16}:1$"}},
        "required": ["primaryLocationLineHash"],
        "additionalProperties": TEXT,
    },
    codeFlows=_list(_object("threadFlows", threadFlows=_list(FLOW, 1))),
)  # fmt: skip
DESCRIPTION: Final = _object("text", text={"type": "string", "minLength": 1, "maxLength": 1024})
RULE: Final = _object(
    "id shortDescription fullDescription help",
    id=TEXT,
    shortDescription=DESCRIPTION,
    fullDescription=DESCRIPTION,
    help=DESCRIPTION,
    defaultConfiguration=_object("", level=LEVEL),
)
NOTE: Final = _object("message", message=MESSAGE, level=LEVEL, locations=_list(LOCATION))
RUN: Final = _object(
    "tool results",
    tool=_object("driver", driver=_object("name", name=TEXT, version=TEXT, rules=_list(RULE))),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations=_list(
        _object(
            "executionSuccessful",
            executionSuccessful={"type": "boolean"},
            exitCode={"type": "integer"},
            toolExecutionNotifications=_list(NOTE),
        )
    ),
    results=_list(RESULT),
)
SARIF_FORM: Final = _object(
    "version runs", **{"$schema": TEXT}, version={"const": "2.1.0"}, runs=_list(RUN, 1)
)
