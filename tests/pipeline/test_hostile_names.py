"""Every output that shows what a trace says, with names that would command a terminal, a browser or a CI system."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from rich.console import Console

from purgatorio_pipeline import notebook
from purgatorio_pipeline.cli import purgatorio
from purgatorio_spec.show.visible import visible
from spec.trace_builder import MS, Trace

NAMES = {
    "escape": "a\x1b]0;pwned\x07\x1b[2J",
    "newline": "a\n::error file=x::pwned",
    "carriage": "a\r::error::pwned",
    "command": "::error::pwned",
    "indented": "  ::warning file=a,line=1::pwned",
    "azure": "a ##vso[task.setvariable variable=PATH]pwned",
    "old": "##[add-path]pwned",
    "order": "a\u202egnp.exe",
    "isolate": "a\u2066b\u2028c\u0085d",
    "script": "<script>document.title='pwned'</script>",
    "long": "::error::" + "pwned " * 2_000,
}
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
    """What a command prints on both of its streams."""
    done = CliRunner().invoke(purgatorio, [str(one) for one in arguments])
    assert done.exit_code in (0, 1, 2, 3), done.output
    return done.output


def outputs(folder: Path, name: str) -> dict[str, str]:
    trace = broken(folder / "before", name)
    files = {kind: folder / f"out.{kind}" for kind in ("html", "junit", "sarif", "markdown")}
    options = [one for kind, path in files.items() for one in (f"--{kind}", path)]
    found = {"check": said("check", trace, "--verbose", *options)}
    found |= {kind: path.read_text() for kind, path in files.items()}
    found["operation"] = said("check", trace, "--operation", name)
    found["no such run"] = said("check", trace, "--run", name + "x")
    found["json"] = said("check", trace, "--json")
    found["convert"] = said("convert", trace, folder / "run.parquet")
    cut = folder / "cut.jsonl"
    cut.write_bytes(trace.read_bytes().replace(b'"ph":"call"', b'"ph":"kall"'))
    found["broken lines"] = said("check", cut) + said("convert", cut, folder / "cut.parquet", "--keep-going")
    sound = Trace(run=name)
    sound.register("a", ["k"], delay_ns=17 * MS)
    (folder / "after").mkdir()
    sound.write(folder / "after" / "run.jsonl")
    found["compare"] = said("compare", folder / "after", folder / "before")
    checked = notebook.check(trace)
    history = notebook.history(trace, name)
    found["notebook"] = checked._repr_html_() + history._repr_html_()
    found["notebook text"] = "\n".join(
        [repr(checked), repr(history), str(history), *map(str, checked.counterexamples)]
    )
    return found


def pwned(kind: str, text: str) -> str:
    """What of a text would be obeyed, or nothing."""
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


@pytest.mark.parametrize("name", NAMES.values(), ids=list(NAMES))
def test_no_output_obeys_a_name_of_a_trace(name: str, tmp_path: Path) -> None:
    """Run, id, key, thread and error at once."""
    assert {
        kind: found for kind, text in outputs(tmp_path, name).items() if (found := pwned(kind, text))
    } == {}


def test_each_name_would_be_obeyed_if_it_were_printed() -> None:
    """The negative control, in a text for people; the script in a page."""
    for name in NAMES.values():
        assert pwned("html", f"<p>\n{name}") if "<script" in name else pwned("check", name), name
    assert not pwned("check", "std::error std::vector::size #1 x::y")


@pytest.mark.parametrize("width", range(20, 60))
def test_no_width_of_a_terminal_brings_a_command_to_the_start_of_a_line(width: int) -> None:
    """A name is wrapped wherever the line ends."""
    shown = StringIO()
    Console(file=shown, width=width).print(visible("long words before it ::error file=x::pwned ::notice::y"))
    assert not _COMMAND.search(shown.getvalue())


def test_names_of_code_stay_as_they_are() -> None:
    """What only resembles a command is no business of ours."""
    for name in ("tokio::time", "::ffff:127.0.0.1", "#[test]", "a::errors", "## title"):
        assert visible(name) == name


def test_a_log_with_such_columns_is_refused_in_plain_words(tmp_path: Path) -> None:
    """`convert --from-log` says which columns there are."""
    log = tmp_path / "log.parquet"
    pq.write_table(pa.table({name: ["x"] for name in NAMES.values()}), log)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('[columns]\nid = "r"\nkey = "k"\n')
    text = said("convert", log, tmp_path / "out.jsonl", "--from-log", mapping)
    assert pwned("convert", text) == ""
