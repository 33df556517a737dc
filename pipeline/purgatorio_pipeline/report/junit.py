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

from collections.abc import Iterator, Sequence
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


def junit(result: CheckResult, examples: ExampleOf) -> str:
    """The document, with its declaration. The same check gives the same text."""
    runs = worst_first(result.runs)
    texts = _Texts(examples)
    suites = [_suite(run, texts) for run in runs[:RUNS_SHOWN]]
    if len(runs) > RUNS_SHOWN:
        suites.append(_left_out(len(runs) - RUNS_SHOWN))
    if result.quarantined:
        suites.append(_quarantined(result))
    root = Element("testsuites", {"name": "purgatorio"} | _sums(suites))
    root.extend(suites)
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
    cases = [*_trace_cases(run, name), *(_case(run, clause, name, texts) for clause in run.clauses.values())]
    properties = Element("properties")
    for key, value in (
        ("file", run.file),
        ("subject", run.subject),
        ("profile", run.profile),
        ("verdict", str(run.verdict)),
        ("events", str(run.events)),
    ):
        ElementTree.SubElement(properties, "property", {"name": key, "value": visible(value, TEXT_LIMIT)})
    return _suite_of(name, cases, properties)


def _suite_of(name: str, cases: Sequence[Element], *before: Element) -> Element:
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find("skipped") is not None for case in cases)),
    }
    suite = Element("testsuite", {"name": name} | counts)
    suite.extend([*before, *cases])
    return suite


def _sums(suites: Sequence[Element]) -> dict[str, str]:
    return {
        name: str(sum(int(suite.get(name, "0")) for suite in suites))
        for name in ("tests", "failures", "errors")
    }


def _trace_cases(run: RunResult, name: str) -> Iterator[Element]:
    """The test case of the trace itself, if the trace has a problem."""
    problems = [visible(problem, TEXT_LIMIT) for problem in run.problems[:PROBLEMS_SHOWN]]
    if run.failure:
        yield _told("subject", name, "error", visible(run.failure), problems)
    elif run.verdict is Verdict.INVALID_TRACE:
        yield _told("trace", name, "error", "INVALID_TRACE", problems)
    elif run.clauses and all(one.verdict is Verdict.SKIPPED for one in run.clauses.values()):
        yield _told("trace", name, "error", str(run.verdict), problems)
    elif not run.clauses:
        yield _told("trace", name, "skipped", str(run.verdict), problems)


def _told(case: str, suite: str, kind: str, what: str, said: Sequence[str]) -> Element:
    element = Element("testcase", {"classname": suite, "name": case})
    message = said[0] if said else what
    attributes = {"message": message} if kind == "skipped" else {"message": message, "type": what}
    told = ElementTree.SubElement(element, kind, attributes)
    if kind != "skipped":
        told.text = "\n".join(said)
    return element


def _case(run: RunResult, clause: ClauseResult, suite: str, texts: _Texts) -> Element:
    title = wording_of(clause.clause, run.profile).title
    case = Element("testcase", {"classname": suite, "name": f"{clause.clause} {title}"})
    if clause.verdict is Verdict.VIOLATED:
        said = "\n".join(texts.of(run, clause))
        first = next((one for cause in clause.causes.values() for one in cause.examples), None)
        message = f"{clause.violations:,} of {clause.occasions:,} occasions broke it"
        if first is not None:
            message += f"; first {visible(first.subject)}: {visible(first.seen, TEXT_LIMIT)}"
        failure = ElementTree.SubElement(case, "failure", {"message": message, "type": clause.clause})
        failure.text = said
    elif clause.verdict in (Verdict.UNKNOWN, Verdict.SKIPPED):
        reason = f"{clause.verdict}: {visible(clause.reason, TEXT_LIMIT)}"
        ElementTree.SubElement(case, "skipped", {"message": reason})
    else:
        ElementTree.SubElement(case, "system-out").text = f"occasions: {clause.occasions}"
    return case


def _left_out(count: int) -> Element:
    said = f"{count:,} more runs, none worse than these, are left out"
    case = Element("testcase", {"classname": "purgatorio", "name": "left out"})
    ElementTree.SubElement(case, "skipped", {"message": said})
    return _suite_of("left out", [case])


def _quarantined(result: CheckResult) -> Element:
    said = [visible(str(line), TEXT_LIMIT) for line in result.broken[:PROBLEMS_SHOWN]]
    told = _told("lines", "quarantine", "skipped", f"{result.quarantined:,} lines are not records", [])
    out = ElementTree.SubElement(told, "system-out")
    out.text = "\n".join(said)
    return _suite_of("quarantine", [told])
