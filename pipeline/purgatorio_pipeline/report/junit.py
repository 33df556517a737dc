"""A check as JUnit XML for CI systems: a test suite per run, a test case per clause.

    PASS            a test case; its output has the number of occasions
    VIOLATED        a failure, with the allowed behavior, the seen behavior, the counterexample and the replay line
    UNKNOWN         skipped, with the reason (but the exit status of the command is 3)
    SKIPPED         skipped, with the reason
    INVALID_TRACE   an error in the test case `trace`. A run without any judged clause, and a subject that misbehaved,
                    are errors too

The elements and attributes are those of Jenkins' schema (junit-10.xsd of its xUnit plugin), which other CI systems read
too. There is no attribute `time`, because a clause takes no time. The file has at most `RUNS_SHOWN` runs, the worst
first, and `TEXTS_SHOWN` counterexamples. A separate suite says what is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

from purgatorio_pipeline.report.grouped import ExampleOf, worst_first
from purgatorio_spec.judge.result import CheckResult, ClauseResult, RunResult
from purgatorio_spec.show.selection import CauseKey, noun, wording_of
from purgatorio_spec.show.text import render, rendered_without
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import Verdict

RUNS_SHOWN: Final = 1_000
TEXTS_SHOWN: Final = 200
PROBLEMS_SHOWN: Final = 20

Element = ElementTree.Element
_COUNTED: Final = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def junit(result: CheckResult, examples: ExampleOf) -> str:
    """The document, with its declaration. The same check gives the same text."""
    runs = worst_first(result.runs)
    texts = _Texts(examples)
    suites = [_suite(run, texts) for run in runs[:RUNS_SHOWN]]
    if left := runs[RUNS_SHOWN:]:
        said = f"{len(left):,} more runs, none worse than these, are left out"
        suites.append(_counting("testsuite", "left out", _case("left out", "purgatorio", "skipped", said)))
    if result.quarantined:
        said = f"{result.quarantined:,} lines are not records"
        lines = _case("lines", "quarantine", "skipped", said)
        shown = [visible(str(line), TEXT_LIMIT) for line in result.broken[:PROBLEMS_SHOWN]]
        ElementTree.SubElement(lines, "system-out").text = "\n".join(shown)
        suites.append(_counting("testsuite", "quarantine", lines))
    root = _counting("testsuites", "purgatorio", *suites)
    del root.attrib["skipped"]
    ElementTree.indent(root)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{ElementTree.tostring(root, encoding='unicode')}\n"


class _Texts:
    """Counterexamples as text, at most `TEXTS_SHOWN`."""

    def __init__(self, examples: ExampleOf) -> None:
        self._examples = examples
        self._left = TEXTS_SHOWN

    def of(self, run: RunResult, clause: ClauseResult) -> Iterator[str]:
        for name, cause in clause.causes.items():
            counted = noun(clause.clause, name, cause.count, run.profile)
            example = self._examples.get(CauseKey(run.file, run.run, clause.clause, name))
            if example is not None and self._left > 0:
                self._left -= 1
                yield f"{visible(name)}: {counted}\n\n{render(example)}"
            elif cause.examples:
                yield f"{visible(name)}: {counted}, first {rendered_without(cause.examples[0])}"


def _suite(run: RunResult, texts: _Texts) -> Element:
    name = visible(run.run, TEXT_LIMIT)
    properties = Element("properties")
    for key in ("file", "subject", "profile", "verdict", "events"):
        value = visible(str(getattr(run, key)), TEXT_LIMIT)
        ElementTree.SubElement(properties, "property", {"name": key, "value": value})
    cases = (_clause_case(run, clause, name, texts) for clause in run.clauses.values())
    return _counting("testsuite", name, properties, *_trace_cases(run, name), *cases)


def _counting(tag: str, name: str, *parts: Element) -> Element:
    made = Element(tag, {"name": name})
    made.extend(parts)
    for count, counted in _COUNTED.items():
        made.set(count, str(sum(1 for _ in made.iter(counted))))
    return made


def _case(name: str, suite: str, kind: str, message: str = "", what: str = "", text: str = "") -> Element:
    case = Element("testcase", {"classname": suite, "name": name})
    said = {key: value for key, value in (("message", message), ("type", what)) if value}
    ElementTree.SubElement(case, kind, said).text = text
    return case


def _trace_cases(run: RunResult, suite: str) -> Iterator[Element]:
    """The test case of the trace itself, if the trace has a problem."""
    problems = [visible(problem, TEXT_LIMIT) for problem in run.problems[:PROBLEMS_SHOWN]]
    what = visible(run.failure) or str(run.verdict)
    message = problems[0] if problems else what
    nothing = all(one.verdict is Verdict.SKIPPED for one in run.clauses.values())
    if run.failure or run.verdict is Verdict.INVALID_TRACE or (run.clauses and nothing):
        name = "subject" if run.failure else "trace"
        yield _case(name, suite, "error", message, what, "\n".join(problems))
    elif nothing:
        yield _case("trace", suite, "skipped", message)


def _clause_case(run: RunResult, clause: ClauseResult, suite: str, texts: _Texts) -> Element:
    name = f"{clause.clause} {wording_of(clause.clause, run.profile).title}"
    if clause.verdict is Verdict.VIOLATED:
        first = next((one for cause in clause.causes.values() for one in cause.examples), None)
        message = f"{clause.violations:,} of {clause.occasions:,} occasions broke it"
        if first is not None:
            message += f"; first {visible(first.subject)}: {visible(first.seen, TEXT_LIMIT)}"
        return _case(name, suite, "failure", message, clause.clause, "\n".join(texts.of(run, clause)))
    if clause.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED):
        return _case(name, suite, "skipped", f"{clause.verdict}: {visible(clause.reason, TEXT_LIMIT)}")
    return _case(name, suite, "system-out", text=f"occasions: {clause.occasions}")
