"""A check as SARIF 2.1.0 (OASIS) for code scanning: the clauses are rules, and each cause in a run is a result.

    VIOLATED        a result of kind `fail` and level `error`, at the line of the trace that breaks the promise. The
                    earlier events are a code flow, with a thread flow for each thread, in the recorder's order
    UNKNOWN         a result of kind `open` and level `none`, with the reason
    INVALID_TRACE   a notification of level `error`. A subject that misbehaved, and each quarantined line, are
                    notifications too
    PASS, SKIPPED   no result, because SARIF lists only problems

A line number counts lines of the trace after decompression. A row of a Parquet file is no line, so the message has its
number. The file has at most `RESULTS_SHOWN` results and `NOTES_SHOWN` notifications, and says what is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import PurePath
from typing import Final, NamedTuple
from urllib.parse import quote

from purgatorio_pipeline.hadoop import is_uri
from purgatorio_pipeline.report.grouped import ExampleOf, run_titles, worst_first
from purgatorio_pipeline.report.provenance import tool_version
from purgatorio_spec.clause.declaration import Wording
from purgatorio_spec.judge.result import Cause, CheckResult, RunResult
from purgatorio_spec.show.counterexample import Counterexample, ShownEvent
from purgatorio_spec.show.event_words import line_of
from purgatorio_spec.show.selection import CauseKey, noun, wordings
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import EXIT_STATUS, Verdict

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RESULTS_SHOWN: Final = 1_000
FLOWS_SHOWN: Final = 200
NOTES_SHOWN: Final = 100
_MOST_URI: Final = 2_000

Json = dict[str, object]
_HELP: Final = (
    "A clause of the specification of delayed operations and timing wheels; `purgatorio check --clauses` lists all. "
    "Where the events are at hand, the message of a result ends in the command that judges it again and shows "
    "the operation event by event."
)


def sarif(result: CheckResult, examples: ExampleOf) -> str:
    """The document. The same check gives the same text."""
    runs = worst_first(result.runs)
    titles = run_titles(runs)
    found = [one for run in runs for one in _worth_a_look(run)]
    named = wordings(run.profile for run in runs)
    numbers = {name: number for number, name in enumerate(named)}
    shown = [
        _result(one, titles[one.run.file, one.run.run], examples.get(one.key), flow=at < FLOWS_SHOWN)
        | {"ruleIndex": numbers[one.key.clause]}
        for at, one in enumerate(found[:RESULTS_SHOWN])
    ]
    notes = list(_notes(result, runs))
    left = len(notes) - NOTES_SHOWN
    more = [_note("note", f"{left:,} more problems are left out")] if left > 0 else []
    if len(found) > RESULTS_SHOWN:
        more.append(_note("note", f"{len(found) - RESULTS_SHOWN:,} more results are left out"))
    status = EXIT_STATUS[result.verdict]
    document: Json = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(named)},
                "columnKind": "unicodeCodePoints",
                "invocations": [
                    {
                        "executionSuccessful": status != EXIT_STATUS[Verdict.INVALID_TRACE],
                        "exitCode": status,
                        "toolExecutionNotifications": [*notes[:NOTES_SHOWN], *more],
                    }
                ],
                "results": shown,
            }
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _driver(named: Mapping[str, Wording]) -> Json:
    rules = [
        {
            "id": name,
            "shortDescription": {"text": wording.title},
            "fullDescription": {"text": wording.promise},
            "help": {"text": _HELP},
            "defaultConfiguration": {"level": "error"},
        }
        for name, wording in named.items()
    ]
    return {"name": "purgatorio", "version": tool_version(), "rules": rules}


class _Found(NamedTuple):
    """A cause in a run, or an UNKNOWN clause of a run. For the latter, the name is the reason, and `cause` is None."""

    run: RunResult
    key: CauseKey
    cause: Cause | None


def _worth_a_look(run: RunResult) -> Iterator[_Found]:
    for clause in run.clauses.values():
        if clause.verdict is Verdict.UNKNOWN:
            yield _Found(run, CauseKey(run.file, run.run, clause.clause, clause.reason), None)
        for name, cause in clause.causes.items():
            if cause.examples:
                yield _Found(run, CauseKey(run.file, run.run, clause.clause, name), cause)


def _result(found: _Found, title: str, example: Counterexample | None, *, flow: bool) -> Json:
    """One result. Its fingerprint is equal in consecutive checks: it has the clause, cause, subject and run, no line or
    operation, and a file only if two runs have one name. GitHub's code scanning uses only the second fingerprint. If
    it were missing, GitHub would compute it from the line, which differs in each recording."""
    run, key, cause = found
    at = None if example is None or example.illegal_row is None else example.rows[example.illegal_row]
    print_of = "\n".join((key.clause, key.cause, run.subject, title)).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(print_of).hexdigest()
    shape: Json = {
        "ruleId": key.clause,
        "locations": [_location(run.file, at)],
        "partialFingerprints": {"purgatorioCause/v1": digest, "primaryLocationLineHash": f"{digest[:16]}:1"},
    }
    if cause is None:
        said = f"{key.clause} is unknown in run {visible(title)}: {visible(key.cause, TEXT_LIMIT)}"
        return shape | {"message": {"text": said}, "kind": "open", "level": "none"}
    violation = cause.examples[0] if example is None else example.violation
    parts = [
        f'{visible(key.cause)}: {visible(violation.subject)} in the run "{visible(title)}"',
        f"{noun(key.clause, key.cause, cause.count, run.profile)} in all",
        f"allowed: {visible(violation.allowed, TEXT_LIMIT)}",
        f"seen: {visible(violation.seen, TEXT_LIMIT)}",
    ]
    if at is not None and not _has_lines(run.file):
        parts.append(f"row {at.line} of the file")
    if example is not None:
        parts.append(f"replay: {' '.join(example.replay)[:_MOST_URI]}")
        if flow and example.rows:
            shape["codeFlows"] = [_flow(run.file, example)]
    shape |= {"kind": "fail", "level": "error", "occurrenceCount": max(cause.count, 1)}
    return shape | {"message": {"text": "\n".join(parts)}}


def _flow(file: str, example: Counterexample) -> Json:
    flows: dict[str, list[Json]] = {}
    for order, row in enumerate(example.rows, 1):
        said = line_of(row, example.violation.subject, example.start_t)
        step: Json = {
            "location": _location(file, row) | {"message": {"text": said}},
            "executionOrder": order,
            "nestingLevel": row.depth,
        }
        if row.witness:
            step["importance"] = "essential"
        flows.setdefault(row.th, []).append(step)
    return {
        "threadFlows": [
            {"id": visible(thread), "locations": steps} for thread, steps in flows.items()
        ]
    }  # fmt: skip


def _location(file: str, at: ShownEvent | None = None) -> Json:
    place: Json = {"artifactLocation": {"uri": _uri(file)}}
    if at is not None and at.line > 0 and _has_lines(file):
        place["region"] = {"startLine": at.line}
    return {"physicalLocation": place}


def _has_lines(file: str) -> bool:
    return not file.endswith(".parquet")


def _uri(file: str) -> str:
    """A relative path as a relative reference (from where the check ran), an absolute one as a file URI, a URI as it
    is."""
    if is_uri(file):
        return quote(visible(file, _MOST_URI), safe=":/")
    path = PurePath(visible(file, _MOST_URI))
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _notes(result: CheckResult, runs: list[RunResult]) -> Iterator[Json]:
    for run in runs:
        bad = run.verdict is Verdict.INVALID_TRACE or bool(run.failure)
        for problem in islice(run.problems, NOTES_SHOWN):
            yield _note(
                "error" if bad else "warning", f"{visible(run.run)}: {visible(problem, TEXT_LIMIT)}", run.file
            )
    for line in result.broken:
        yield _note("error", visible(str(line), TEXT_LIMIT), line.file)
    if result.quarantined > len(result.broken):
        yield _note("error", f"{result.quarantined - len(result.broken):,} more quarantined lines")


def _note(level: str, text: str, file: str | None = None) -> Json:
    note: Json = {"level": level, "message": {"text": text}}
    return note if file is None else note | {"locations": [_location(file)]}
