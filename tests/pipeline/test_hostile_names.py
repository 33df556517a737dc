"""Every output that shows what a trace says, with names that would command a terminal, a browser or a CI system."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from rich.console import Console

from pipeline.hostile import COMMANDS, HOSTILE, hostile_check, hostile_findings
from pipeline.test_report_files import Tags, parsed, suites
from pipeline.test_report_page import alone
from purgatorio_pipeline import notebook
from purgatorio_pipeline.cli import purgatorio
from purgatorio_pipeline.command import watch
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.printed import run_of
from purgatorio_pipeline.report.junit import junit
from purgatorio_pipeline.report.markdown import markdown
from purgatorio_pipeline.report.page import page
from purgatorio_pipeline.report.sarif import sarif
from purgatorio_pipeline.report.terminal import print_check
from purgatorio_pipeline.watch.batch import News
from purgatorio_pipeline.watch.state import WatchState
from purgatorio_spec.judge.result import CheckResult
from purgatorio_spec.show.visible import visible
from spec.trace_builder import MS, Trace

_COMMAND = re.compile(r"^\s*::[a-z-]+[ :]|##\[|##vso\[|##teamcity\[", re.MULTILINE)
_PASTED = re.compile(r"purgatorio check|--(run|operation) ")
LONGEST_LINE = 9_000
"""Of a text for people, but for a command to be pasted; other documents have a line for a whole record."""


def broken(folder: Path, name: str) -> Path:
    """A trace in which run, ids, keys, threads and an error have this name, and clauses are violated."""
    made = Trace(run=name, late_ns=None)
    call = made.start("try_complete_else_watch", name, keys=[name], delay_ns=17 * MS, th=name)
    made.end(made.start("try_complete", name, th=name), err=name)
    made.end(call, 0)
    made.add(name, delay_ns=17 * MS, th=name)
    made.start("timer_fire", name, th=name + "2")
    folder.mkdir(exist_ok=True)
    return made.write(folder / "run.jsonl")


def said(*arguments: str | Path) -> str:
    done = CliRunner().invoke(purgatorio, [str(one) for one in arguments])
    assert done.exit_code in (0, 1, 2, 3), done.output
    return done.output


def commands(folder: Path, name: str) -> dict[str, str]:
    trace = broken(folder / "before", name)
    cut = folder / "cut.jsonl"
    cut.write_bytes(trace.read_bytes().replace(b'"ph":"call"', b'"ph":"kall"'))
    sound = Trace(run=name)
    sound.register("a", ["k"], delay_ns=17 * MS)
    (folder / "after").mkdir()
    sound.write(folder / "after" / "run.jsonl")
    history = notebook.history(trace, name)
    return {
        "check": said("check", trace, "--verbose"),
        "operation": said("check", trace, "--operation", name),
        "no such run": said("check", trace, "--run", name + "x"),
        "json": said("check", trace, "--json"),
        "convert": said("convert", trace, folder / "run.parquet"),
        "broken lines": said("check", cut) + said("convert", cut, folder / "cut.parquet", "--keep-going"),
        "compare": said("compare", folder / "after", folder / "before"),
        "notebook": history._repr_html_(),
        "notebook text": f"{history!r}\n{history}",
    }


def reports(name: str) -> dict[str, str]:
    """The report files of a check and of findings in which every text is such a name, each read by its own reader."""
    (result, examples, late), findings, shown = (
        hostile_check(name),
        hostile_findings(name),
        visible(name)[:50],
    )
    text, xml, document = (
        page(result, examples, late, (), findings), junit(result, examples), sarif(result, examples)
    )  # fmt: skip
    read = alone(text)
    assert "".join(read.text).count(shown) >= 14
    assert any(shown in value for attribute, value in read.attributes if attribute == "title")
    words = (word for suite in suites(xml) for word in (*suite.itertext(), *suite.attrib.values()))
    assert shown in " ".join(words)
    assert any(shown in one["message"]["text"] for one in parsed(document)["results"])
    summary = markdown(result, examples, late, findings)
    tags = Tags(summary)
    assert tags.tags <= set("h2 h3 h4 p table thead tbody tr th td code pre ul li strong".split())
    assert tags.attributes <= {"class"}
    assert tags.text.count(shown) >= 4
    outside = re.sub(r"(`{3,})text\n.*?\n\1\n", "", summary, flags=re.S)
    assert not any(word in outside for word in ("@somebody", "http:", "www."))
    checked = notebook.ShownCheck(Judged(result, examples, late))
    return {
        "html": text, "junit": xml, "sarif": document, "markdown": summary, "terminal": terminal(name),
        "notebook": checked._repr_html_() + checked.counterexamples[0]._repr_html_(),
        "notebook text": f"{checked!r}\n{checked.counterexamples[0]}",
    }  # fmt: skip


def terminal(name: str) -> str:
    """The output of a check and of a watch, without the colors of Purgatorio."""
    result, examples, _ = hostile_check(name)
    (run,) = result.runs
    (cause,) = run.clauses["T1"].causes.values()
    state = WatchState(closed=[run_of(replace(run, run=name))])
    out = io.StringIO()
    print_check(
        Console(file=out, width=80, force_terminal=True, color_system="standard"),
        result,
        examples,
        verbose=True,
    )
    console = Console(file=out, width=80)
    watch.tell(console, News(0, state.closed, [(name, cause.examples[0])], state))
    watch.summary(console, state.printed())
    text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert "[red]" not in name or "[red]rich[/red]" in text
    return text


def pwned(kind: str, text: str) -> str:
    """The parts of a text that a terminal would obey."""
    text = text.replace("\n", "") if kind in ("json", "sarif") else text
    # JSON is read by programs, which escape what they show: it holds no control characters, and the rest as it is.
    wrong = (
        r"[\x00-\x08\x0b-\x1f]"
        if kind == "json"
        else r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
    )
    if control := re.search(wrong, text):
        return f"character {control[0]!r}"
    if command := _COMMAND.search(text):
        return f"command {command[0]!r}"
    markup = re.sub(
        r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE
    )  # listings behind fences
    if kind in ("html", "markdown", "notebook") and "<script>document" in markup:
        return "script"
    longest = max([0, *(len(line) for line in text.split("\n") if not _PASTED.search(line))])
    if kind not in ("html", "sarif", "json", "notebook") and longest > LONGEST_LINE:
        return f"a line of {longest:,} characters"
    return ""


NAMES = (*HOSTILE, *COMMANDS)


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name)[:40] for name in NAMES])
def test_no_output_obeys_a_name_of_a_trace(name: str, tmp_path: Path) -> None:
    """Run, id, key, thread and error at once; in reports all other texts as well."""
    printed = commands(tmp_path, name) if name in (*COMMANDS, HOSTILE[0]) else {}
    for outputs in (reports(name), printed):
        assert {kind: wrong for kind, text in outputs.items() if (wrong := pwned(kind, text))} == {}


def test_each_name_would_be_obeyed_if_it_were_printed() -> None:
    """The negative control, in a text for people; the script in a page."""
    for name in (*COMMANDS, *(name for name in HOSTILE if "<script>" in name)):
        assert pwned("html", f"<p>\n{name}") if "<script" in name else pwned("check", name), name
    assert not pwned("check", "std::error std::vector::size #1 x::y")
    summary = markdown(CheckResult(()), {}, [], hostile_findings("SAFE"))
    assert "script" in Tags(summary.replace("SAFE", HOSTILE[0], 1)).tags


@pytest.mark.parametrize("width", range(20, 60))
def test_no_width_of_a_terminal_brings_a_command_to_the_start_of_a_line(width: int) -> None:
    """A name is wrapped wherever the line ends."""
    shown = io.StringIO()
    Console(file=shown, width=width).print(visible("long words before it ::error file=x::pwned ::notice::y"))
    assert not _COMMAND.search(shown.getvalue())


def test_names_of_code_stay_as_they_are() -> None:
    """What only resembles a command is no business of ours."""
    for name in ("tokio::time", "::ffff:127.0.0.1", "#[test]", "a::errors", "## title"):
        assert visible(name) == name


def test_a_log_with_such_columns_is_refused_in_plain_words(tmp_path: Path) -> None:
    """`convert --from-log` says which columns there are."""
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: ["x"] for name in NAMES}), log)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[columns]\nid = "r"\nkey = "k"\n')
    text = said("convert", log, tmp_path / "out.jsonl", "--from-log", mapping)
    assert pwned("convert", text) == ""


@pytest.mark.parametrize("name", COMMANDS, ids=[ascii(name)[:40] for name in COMMANDS])
def test_a_log_of_such_rows_is_converted_and_judged_in_plain_words(name: str, tmp_path: Path) -> None:
    """With `--keep-going`: lines that are not rows, bad rows, and the judgement of the others."""
    row = {"r": name, "k": name, "in": 1, "out": 2}
    rows = [row, {**row, "out": 3}, {**row, "r": name + "x", "out": name}, {**row, "r": "y", "in": name}]
    log = tmp_path / "log.jsonl"
    broken = f"{name}\n".encode() + b'{"r": "\x1b[2J\xff\n'
    log.write_bytes(broken + "".join(json.dumps(one) + "\n" for one in rows).encode() + broken)
    words = "--map id=r --map key=k --map enqueued=in --map completed=out --map unit=ms --keep-going".split()
    text = said("convert", log, trace := tmp_path / "out.jsonl", "--from-log", *words)
    assert "bad row" in " ".join(text.split())  # wrapped after the name of the file
    checked = said("check", trace, "--verbose")
    assert "O1 VIOLATED" in checked
    assert (pwned("convert", text), pwned("check", checked)) == ("", "")
