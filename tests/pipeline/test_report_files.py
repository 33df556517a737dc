"""JUnit XML, SARIF and Markdown: what CI systems read is well-formed, says every verdict, and stays small."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import jsonschema
import pytest
from markdown_it import MarkdownIt

from pipeline.hostile import many_violations
from purgatorio_pipeline.report.junit import junit
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.sarif import sarif
from purgatorio_spec.judge.result import CheckResult, RunResult, broken_off
from purgatorio_spec.show.event_words import broken_here
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.trace.parse import BrokenLine
from purgatorio_spec.verdict import Verdict
from purgatorio_spec.whole_file import write_whole
from spec.shown_trace import fired_early, garbage_kept, lost_with_a_flag, miscounted
from spec.trace_builder import Trace

SARIF_FORM: Final = json.loads(Path(__file__).with_name("sarif_form.json").read_text(encoding="utf-8"))


def suites(text: str) -> list[ElementTree.Element]:
    """The suites of a JUnit document, its sums checked."""
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert suite.get(name) == str(len(suite.findall(f"testcase/{kind}")))
        assert {child.tag for child in suite} <= {"properties", "testcase"}
        for case in cases:
            assert case.get("name")
            assert case.get("classname")
            assert sum(child.tag in ("failure", "error", "skipped") for child in case) <= 1
    for name in ("tests", "failures", "errors"):
        assert root.get(name) == str(sum(int(suite.get(name, "")) for suite in root))
    return list(root)


def parsed(text: str) -> dict[str, Any]:
    """The one run of a SARIF document, held to the form of the standard."""
    document: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(SARIF_FORM).validate(document)
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["kind"] == "fail" or result["level"] == "none"
    found: dict[str, Any] = run
    return found


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(MarkdownIt("commonmark").enable("table").render(text))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        # How Markdown sets a column of numbers.
        self.attributes |= {name for name, value in attrs if (name, value) != ("style", "text-align:right")}

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def every_verdict() -> CheckResult:
    """Runs that pass, are broken, unknown, skipped in part, invalid, and misbehaved; and a broken line."""
    made = Trace()
    made.register("op-1")
    good = made.judge()
    unknown = replace(
        good.clauses["O5"],
        verdict=Verdict.UNKNOWN,
        reason="the trace has no end record, or records were dropped",
    )
    return CheckResult(
        (
            good,
            fired_early().judge(),
            replace(good, run="cut", clauses={**good.clauses, "O5": unknown}, verdict=Verdict.UNKNOWN),
            RunResult("bad", "bad.jsonl", "", "", Verdict.INVALID_TRACE, 0, {}, ("no usable header",)),
            broken_off(replace(good, run="died"), "died", "it ended with status 9"),
        ),
        1,
        (BrokenLine("bad.jsonl", 1, "kind", "is missing", "add it", "{}"),),
    )


def test_junit_says_every_verdict() -> None:
    """A failure, an error or a skipped case each with its reason; what passed says how many occasions there were."""
    by_name = {
        suite.get("name", ""): suite for suite in suites(junit(every_verdict(), fired_early().examples()))
    }
    failure = by_name["early-fire"].find("testcase/failure")
    (name,) = (one.get("name") for one in by_name["early-fire"].findall("testcase[failure]"))
    assert name == "T1 A task never fires early"
    assert failure is not None
    assert failure.get("type") == "T1"
    (cause,) = fired_early().judge().clauses["T1"].causes.values()
    assert cause.examples[0].seen in failure.get("message", "")
    # Wherever its lines are broken.
    shown = " ".join((failure.text or "").split())
    for word in (
        f"allowed {cause.examples[0].allowed}",
        f"seen {cause.examples[0].seen}",
        "replay purgatorio check",
        broken_here("T1"),
    ):
        assert word in shown
    skipped = [one.get("message", "") for one in by_name["cut"].findall("testcase/skipped")]
    assert "UNKNOWN: the trace has no end record, or records were dropped" in skipped
    error = by_name["bad"].find("testcase/error")
    assert error is not None
    assert error.get("message") == "no usable header"
    died = by_name["died"].find("testcase/error")
    assert died is not None
    assert died.get("type") == "died"
    out = [one.text for one in by_name["hand-made"].findall("testcase/system-out")]
    assert "occasions: 1" in out
    assert "occasions: 0" in out
    assert "bad.jsonl:1" in "".join(by_name["quarantine"].itertext())


def test_sarif_says_where_and_how() -> None:
    """File, line, code flow by thread; UNKNOWN is open; broken traces are notifications."""
    made = fired_early()
    run = parsed(sarif(every_verdict(), made.examples()))
    failed = [one for one in run["results"] if one["kind"] == "fail"]
    (result,) = failed
    place = result["locations"][0]["physicalLocation"]
    example = made.example("T1")
    assert example.illegal_row is not None
    assert place == {
        "artifactLocation": {"uri": "hand-made.jsonl"},
        "region": {"startLine": example.rows[example.illegal_row].line},
    }
    flows = result["codeFlows"][0]["threadFlows"]
    assert [flow["id"] for flow in flows] == list(dict.fromkeys(row.th for row in example.rows))
    orders = sorted(step["executionOrder"] for flow in flows for step in flow["locations"])
    assert orders == list(range(1, len(example.rows) + 1))
    assert {one["ruleId"] for one in run["results"] if one["kind"] == "open"} == {"O5"}
    invocation = run["invocations"][0]
    assert invocation["exitCode"] == 1
    notes = [one["message"]["text"] for one in invocation["toolExecutionNotifications"]]
    assert any("no usable header" in note for note in notes)
    assert any("field 'kind'" in note for note in notes)


def test_sarif_has_no_line_for_a_row_of_parquet() -> None:
    """A row number is no line: a code viewer would point somewhere else."""
    made = fired_early()
    made.file = "runs/a b.parquet"
    (result,) = parsed(sarif(made.result(), made.examples()))["results"]
    assert result["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "runs/a%20b.parquet"}}}]
    assert re.search(r"row \d+ of the file", result["message"]["text"])


def test_a_finding_keeps_its_fingerprint() -> None:
    """The next run of the same subject finds the same cause elsewhere: it is the same finding."""
    one, other = (
        parsed(sarif(made.result(), made.examples()))["results"][0]["partialFingerprints"]
        for made in (fired_early("op-13"), fired_early("op-99"))
    )
    assert one == other
    different = parsed(sarif(every_verdict(), fired_early().examples()))["results"]
    hashes = [found["partialFingerprints"]["primaryLocationLineHash"] for found in different]
    assert len(set(hashes)) == len(hashes) > 1, "two findings must not be taken for one"


def test_runs_of_one_name_are_two_findings() -> None:
    """The same cause of the same subject in two files whose runs share a name."""
    first, second = fired_early(), fired_early()
    second.file = "other.jsonl"
    runs = CheckResult((*first.result().runs, *second.result().runs))
    found = parsed(sarif(runs, {**first.examples(), **second.examples()}))["results"]
    hashes = [one["partialFingerprints"]["primaryLocationLineHash"] for one in found]
    assert len(set(hashes)) == len(hashes) == 2


def test_a_field_that_sarif_does_not_know_would_be_caught() -> None:
    """The twin that must fail: the form of these tests refuses a foreign property, a line 0, and an unknown level."""
    made = fired_early()
    good = sarif(made.result(), made.examples())
    for before, after in (
        ('"ruleId"', '"ruleName"'),
        ('"level": "error"', '"level": "bad"'),
        ('"uri"', '"url"'),
        ('"primaryLocationLineHash"', '"lineHash"'),
        ('"help"', '"helpText"'),
    ):
        with pytest.raises(jsonschema.ValidationError):
            parsed(good.replace(before, after, 1))
    with pytest.raises(jsonschema.ValidationError):
        parsed(re.sub(r'"startLine": \d+', '"startLine": 0', good))


def test_markdown_says_subjects_causes_and_problems() -> None:
    """The table of subjects with occasions, each cause as text, and the problems with the traces."""
    made = lost_with_a_flag()
    result = CheckResult((*every_verdict().runs, made.judge()))
    read = Tags(markdown(result, made.examples(), []))
    assert read.tags >= {"h2", "table", "pre"}
    assert "Purgatorio: VIOLATED" in read.text
    assert broken_here("O4") in read.text
    assert "VIOLATED 1 of 1" in read.text
    assert "no usable header" in read.text


@pytest.mark.parametrize("make", [fired_early, garbage_kept, miscounted])
def test_kinds_of_causes_are_written(make: Callable[[], Trace]) -> None:
    made = make()
    result, examples = made.result(), made.examples()
    assert any(suite.find("testcase/failure") is not None for suite in suites(junit(result, examples)))
    assert any(one["kind"] == "fail" for one in parsed(sarif(result, examples))["results"])
    assert broken_here("") in markdown(result, examples, [])


def test_many_runs_and_violations_make_bounded_files() -> None:
    """10,000 broken runs of one cause, and 10,000 broken lines: each file can be opened, and lists what is left out."""
    made = fired_early()
    (run,) = made.result().runs
    runs = tuple(replace(run, run=f"run-{at}", file=f"{at}.jsonl", problems=("cut",)) for at in range(10_000))
    good = replace(run, run="good", verdict=Verdict.PASS, clauses={})
    result = CheckResult((good, *runs), 10_000)
    (example,) = made.examples().values()
    broken = example.violation
    examples = {CauseKey(one.file, one.run, broken.clause, broken.cause): example for one in runs}
    xml, document, summary = junit(result, examples), sarif(result, examples), markdown(result, examples, [])
    assert len(xml) < 3_000_000
    assert len(document) < 8_000_000
    assert len(summary) < 100_000
    assert len(suites(xml)) == 1002
    assert "9,001 more runs, none worse than these, are left out" in xml
    assert 'name="good"' not in xml
    assert len(parsed(document)["results"]) == 1000
    assert "9,000 more results are left out" in document
    assert "10,000 tasks" in summary
    assert "19,980 more problems are left out" in summary


def test_no_runs_and_many_violations_of_one_cause() -> None:
    nothing = CheckResult(())
    assert suites(junit(nothing, {})) == []
    assert parsed(sarif(nothing, {}))["results"] == []
    assert "no runs" in markdown(nothing, {}, [])
    many = many_violations(10_000)
    assert parsed(sarif(many, {}))["results"][0]["occurrenceCount"] == 10_000
    assert "10,000 tasks" in junit(many, {})
    assert "10,000 tasks" in markdown(many, {}, [])


def test_what_is_no_file_is_written_to_in_place() -> None:
    """`--markdown /dev/stdout` must not put a file where the device was."""
    write_whole(Path("/dev/null"), "x")
    assert not Path("/dev/null").is_file()
