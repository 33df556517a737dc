"""Every command that the pages tell a reader to type is run here, or its reason not to be is in doc_commands.toml.

A command is a line of a code block that begins with a program's name. Where the page shows what it prints, that is
compared; else the exit status and the line that the page speaks of.
"""

import os
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from program_text import ran
from purgatorio_pipeline import cli

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "examples" / "traces"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
PROGRAMS = (
    "purgatorio|python|pip|make|pytest|cd|spark-submit|mkdir|java|HATCH_BUILD_HOOK_ENABLE_CUSTOM=true"
    "|PYTHONPATH=tests"
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(rf"^(\$ | {{4,}})((?:{PROGRAMS})\b(?:.*\\\n)*.*)$", re.MULTILINE)
COMMENT = re.compile(r"\s+#.*$")
NAMED = re.compile(r"`purgatorio ([a-z]+)\b([^`\n]*)`")
OPTION = re.compile(r" (--[a-z][a-z-]*)")


def commands_of(text: str) -> list[tuple[str, str]]:
    """The commands of a page, each with what stands under it in its block up to the next one."""
    found: list[tuple[str, str]] = []
    for block in FENCED.findall(text):
        if block[0] in ("console", ""):
            found += _of_block(block[1])
    return found + [(command, "") for command, _ in _of_block(FENCED.sub("", text))]


def _of_block(text: str) -> list[tuple[str, str]]:
    at = list(LINE.finditer(text))
    ends = [*(one.start() for one in at[1:]), len(text)][: len(at)]
    found = []
    for one, end in zip(at, ends, strict=True):
        command = " ".join(COMMENT.sub("", one[2].replace("\\\n", " ")).split())
        found.append((command, text[one.end() : end].strip("\n")))
    return found


@dataclass(frozen=True)
class Run:
    """To be run: the status it ends with (of several where the machine decides), and a pattern of its output.
    `slow`: by --slow."""

    status: int | list[int] = 0
    says: str = ""
    slow: bool = False
    folder: str = "."
    needs: str = ""


@dataclass(frozen=True)
class Elsewhere:
    test: str


@dataclass(frozen=True)
class NotHere:
    """It is not run by any test: why."""

    why: str


def _known() -> dict[str, Run | Elsewhere | NotHere]:
    table = tomllib.loads((Path(__file__).parent / "doc_commands.toml").read_text(encoding="utf-8"))
    found: dict[str, Run | Elsewhere | NotHere] = {}
    for one in table["not_here"]:
        found |= dict.fromkeys(one["commands"], NotHere(one["why"]))
    for one in table["elsewhere"]:
        found |= dict.fromkeys(one["commands"], Elsewhere(one["test"]))
    return found | {one.pop("command"): Run(**one) for one in table["run"]}


KNOWN = _known()
"""Every command of the pages, as `commands_of` gives it."""


def every_command() -> dict[str, list[tuple[str, str]]]:
    """By the command: the pages that have it, and what each shows under it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for page in PAGES:
        for command, shown in commands_of(page.read_text()):
            found.setdefault(command, []).append((page.name, shown))
    return found


def test_every_command_is_known() -> None:
    """A command that is never run may not work. The list has no old entries."""
    found = every_command()
    assert {command: pages for command, pages in found.items() if command not in KNOWN} == {}
    assert set(KNOWN) - set(found) == set()


def test_what_is_run_elsewhere_is_there() -> None:
    """A file that was renamed must not leave a command untested."""
    assert not [
        one.test for one in KNOWN.values() if isinstance(one, Elsewhere) and not (ROOT / one.test).exists()
    ]
    named = [re.findall(r"tests/\S+\.py", one.why) for one in KNOWN.values() if isinstance(one, NotHere)]
    assert not [test for tests in named for test in tests if not (ROOT / test).exists()]


def test_a_new_command_is_found() -> None:
    """The negative control: fenced and indented, with a comment, a continuation and an output. A tree of files is
    not a command."""
    fenced = "```console\n$ purgatorio new --a   # why\nPASS\n$ make  b \\\n   c\n```\n"
    page = f"x\n\n{fenced}\n    purgatorio old\n    pipeline/x\n"
    assert commands_of(page) == [("purgatorio new --a", "PASS"), ("make b c", ""), ("purgatorio old", "")]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a reader has it: the checkout's examples, and runs of his own."""
    desk = tmp_path_factory.mktemp("desk")
    for name in ("examples", "stress", "benchmarks", "tests"):
        (desk / name).symlink_to(ROOT / name)
    for folder in ("runs", "before", "after"):
        (desk / folder).mkdir()
    shutil.copy(TRACES / "kafka-clean-1k.jsonl", desk / "run.jsonl")
    shutil.copy(TRACES / "kafka-buggy-early-fire.parquet", desk / "runs")
    shutil.copy(TRACES / "kafka-clean-pending-flag-4k.parquet", desk / "before")
    shutil.copy(TRACES / "kafka-buggy-trylock-give-up.parquet", desk / "after")
    explorer, stress = ((ROOT / "docs" / name).read_text() for name in ("explorer.md", "stress.md"))
    (desk / "my_bug.py").write_text(patches_of(explorer))
    mine = "from purgatorio import SystemTimer as MyTimer\n"  # the page says only that it is yours
    (desk / "mine.py").write_text(mine + re.findall(r"```python\n(.*?)```", stress, re.DOTALL)[0])
    return desk


def patches_of(page: str) -> str:
    block = page[page.index("    from purgatorio.timer.bucket") : page.index("`edited(")]
    return "".join(line.removeprefix("    ") for line in block.splitlines(keepends=True))


def cases() -> list[object]:
    runs = [(command, how) for command, how in KNOWN.items() if isinstance(how, Run)]
    return [
        pytest.param(command, how, id=command, marks=[pytest.mark.slow] if how.slow else [])
        for command, how in runs
    ]


def ended(command: str, folder: Path, patch: pytest.MonkeyPatch) -> tuple[int, str, str]:
    """Status, standard output and errors. A plain `purgatorio` runs in this process, which has imported it; what the
    shell has a part in, and what changes the code of others, in one of its own."""
    program, *words = shlex.split(command)
    if program == "purgatorio" and not {">", "--package", "foreign"} & set(re.split(r"[ /]", command)):
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv("COLUMNS", "80")
        told = CliRunner().invoke(cli.purgatorio, words)
        return told.exit_code, told.stdout, told.stderr
    done = ran(
        command,
        shell=True,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
        },
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("command", "how"), cases())
def test_a_command_matches_its_page(
    command: str, how: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status, and its output: the whole output if the page shows it, otherwise the part that the page mentions."""
    if how.needs and shutil.which(how.needs) is None:
        pytest.skip(f"{how.needs} is not installed")
    status, told, errors = ended(command, desk / how.folder, monkeypatch)
    assert status in ([how.status] if isinstance(how.status, int) else how.status), (
        told[-2000:] + errors[-2000:]
    )
    assert re.search(how.says, told, re.MULTILINE), told[-2000:]
    for page, shown in every_command()[command]:
        assert not shown or told.strip("\n") == shown, f"{page} shows something else"


def unknown_words(text: str) -> list[str]:
    """The commands and options of `purgatorio` that a page names in its sentences, and that there are not."""
    wrong: list[str] = []
    for name, rest in NAMED.findall(text):
        if name not in cli.COMMANDS:
            wrong.append(name)
            continue
        command = cli.purgatorio.get_command(click.Context(cli.purgatorio), name)
        known = {option for one in command.params for option in one.opts} if command else set()
        wrong += [f"{name} {option}" for option in OPTION.findall(rest) if option not in known]
    return wrong


def test_commands_and_options_exist() -> None:
    """And the twin: one that was renamed, and a command that there is not."""
    assert {page.name: wrong for page in PAGES if (wrong := unknown_words(page.read_text()))} == {}
    # And those of the commands that nobody runs; what is quoted is a program's.
    typed = (re.sub("'.*?'", "", command) for command in KNOWN if command.startswith("purgatorio "))
    assert unknown_words(" ".join(f"`{command}`" for command in typed)) == []
    assert unknown_words("`purgatorio check --mastr x`, `purgatorio chek`") == ["check --mastr", "chek"]
