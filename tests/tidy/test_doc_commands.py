"""Every command that the pages tell a reader to type is run here, or its reason not to be is in the list below.

A command is a line of a code block that begins with a program's name. Where the page shows what it prints, that is
compared; else the exit status and the line that the page speaks of.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

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

    status: int | tuple[int, ...] = 0
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


INSTALLS = NotHere("installs packages over the network; CI's workflow does it on fresh machines")
CLUSTER = NotHere("needs a cluster; tests/pipeline/test_cluster.py --slow starts one and submits to it")
KAFKA = NotHere(
    "needs a Kafka broker with traces in it; tests/pipeline/test_watch_messages.py has a stand-in"
)
ENDLESS = NotHere("runs until Ctrl-C or for as long as its option says; tests run it with a bound")
HOURS = NotHere("takes an hour and more as it stands; tests run it with smaller numbers")
REPORT = Elsewhere("tests/pipeline/test_report_results.py")
ALL_TESTS = NotHere("is the suite itself")
WIRE = Elsewhere("tests/wire/test_own_broker.py")
SPARK = Elsewhere("tests/pipeline/test_incremental_spark.py")
WATCH = Elsewhere("tests/pipeline/test_watch.py")
JVM_KIT = Elsewhere("tests/conformance/test_jvm_kit.py")
PLUGIN = Elsewhere("tests/tidy/test_readme.py")
TUTORIAL = Elsewhere("tests/tidy/test_tutorials.py")

KNOWN: dict[str, Run | Elsewhere | NotHere] = {
    # Whoever reads this wants to know what is not run: first that.
    "pip install '.[pytest]' && cd examples/toy-wheel": INSTALLS,
    "pip install '.[wire]'": INSTALLS,
    "pip install 'purgatorio[pytest]'": INSTALLS,
    "pip install 'purgatorio[wire]'": INSTALLS,
    "pip install '../..[pytest]' . && pytest": INSTALLS,
    "make verify": INSTALLS,
    "make test": ALL_TESTS,
    "make lint": NotHere("is what CI runs beside the suite"),
    "python -m docs.makers.kafka_releases_wire docs/measured/kafka-releases-wire.md --results DIR 3.9.0 4.4.0": NotHere(
        "takes Maven, Java and minutes: a slow test of the wire drives one release of each kind"
    ),
    "purgatorio check runs/ --master spark://host:7077": CLUSTER,
    "purgatorio check 'traces/*.parquet' --master spark://host:7077 --out lake": CLUSTER,
    "purgatorio check 'hdfs://name:8020/traces/*.parquet' --out hdfs://name:8020/lake": NotHere(
        "needs a cluster with HDFS; tests/pipeline/test_hadoop.py does it with a file system of Hadoop's own"
    ),
    "spark-submit --master spark://host:7077 --driver-memory 4g --py-files build/purgatorio.zip "
    "build/purgatorio_submit.py check 'traces/*.parquet' --out lake": CLUSTER,
    "purgatorio watch --kafka host1:9092,host2:9092 --topic runs --out lake "
    "--packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0": KAFKA,
    "purgatorio watch runs/ --out lake": ENDLESS,
    "purgatorio watch runs --out lake": ENDLESS,
    "purgatorio watch runs --out lake --metrics runs.prom": ENDLESS,
    "purgatorio broker --port 9092": ENDLESS,
    "purgatorio stress --minutes 60 --traces soak": ENDLESS,
    "purgatorio campaign two-events --out soak --stress-rounds 20000 --seeds 0-499 --minutes 60": ENDLESS,
    "purgatorio campaign --out nightly": HOURS,
    "purgatorio campaign --out nightly --seeds 0-99 --strategy random --strategy pct --schedules 2000": HOURS,
    "pytest tests/reference/test_stateful_timers.py tests/reference/test_stateful_purgatory.py "
    "--hypothesis-profile nightly": HOURS,
    # Run by tests of their own, which look closer.
    "pytest -x": TUTORIAL,
    "pytest": PLUGIN,
    "purgatorio wire localhost:9092": WIRE,
    "purgatorio wire localhost:9092 --trace wire.jsonl": WIRE,
    "purgatorio wire localhost:9092 --program 'a0*1x100/1 r0e+1e/1000/240/1048576; w60 a0*1x100/1 a1*1x100/1'": WIRE,
    "make compiled": Elsewhere("tests/reference/test_compiled_build.py"),
    "HATCH_BUILD_HOOK_ENABLE_CUSTOM=true pip wheel . --no-deps": Elsewhere("tests/tidy/test_publishing.py"),
    "make jvm-kit": JVM_KIT,
    "mkdir -p build/toy && javac -d build/toy -sourcepath conformance/purgatorio_conformance/kits/jvm "
    "examples/jvm-kit/*.java": JVM_KIT,
    "purgatorio verify --engine process --command 'java -cp build/toy ToyAdapter'": JVM_KIT,
    "java -cp build/toy ToyAdapter races build/races && purgatorio check --engine process build/races": JVM_KIT,
    "purgatorio verify --engine process --command 'node my.js'": Elsewhere(
        "tests/pipeline/test_verify_command.py"
    ),
    "purgatorio check runs/ --out lake --report report.html --json": SPARK,
    "purgatorio check runs/ --out lake": SPARK,
    "purgatorio watch runs --out lake --once": WATCH,
    "purgatorio report runs/ nightly/ *.json --html page.html": REPORT,
    "purgatorio report runs/ nightly/ stress.json explore.json mutants.json --html page.html "
    "--markdown summary.md": REPORT,
    # Run here.
    "purgatorio check runs/": Run(1, r"T1 1,710 of 4,426"),
    "purgatorio check runs/ --junit out.xml --sarif out.sarif --markdown summary.md": Run(1),
    "purgatorio check runs/ --junit purgatorio.xml --sarif purgatorio.sarif --markdown summary.md": Run(
        1, slow=True
    ),
    "purgatorio check examples/traces/kafka-clean-1k.jsonl": Run(0, r"^PASS: 1 PASS"),
    "purgatorio check examples/traces/kafka-buggy-no-recheck.parquet": Run(1, r"O4 1,367 of 4,000"),
    "purgatorio clause O4": Run(0, r"no lost completion"),
    "purgatorio compare before/ after/": Run(1, r"^VIOLATED: something is newly broken"),
    "cd examples/traces; purgatorio compare kafka-clean-pending-flag-4k.parquet "
    "kafka-buggy-trylock-give-up.parquet": Run(1, slow=True),  # the same two as before/ and after/
    "cd examples/logs": NotHere("a folder"),
    "purgatorio convert requests.csv requests.trace.jsonl --from-log requests.toml": Elsewhere(
        "tests/spec/test_from_log.py"
    ),
    "purgatorio check requests.trace.jsonl": Elsewhere("tests/spec/test_from_log.py"),
    "purgatorio convert requests.csv run.jsonl --from-log mapping.toml": Elsewhere(
        "tests/spec/test_from_log.py"
    ),
    "purgatorio convert run.jsonl run.parquet": Run(0, r"run\.parquet: 22,326 events"),
    "purgatorio verify --engine process --command 'node examples/subjects/toy_wheel.js --bug'": Run(
        1, r"^VIOLATED: ", slow=True, needs="node"
    ),
    "cd examples/racy_cache && purgatorio explore --package racy_cache --adapter cache_adapter:LoadsOnce": Run(
        1, r"loaded 2 times", slow=True
    ),
    "purgatorio explore --package racy_cache --adapter cache_adapter:LoadsOnce": Run(
        1, r"loaded 2 times", folder="examples/racy_cache"
    ),
    "purgatorio explore --replay foreign/racy_cache+cache_adapter:LoadsOnce/0/2x8-1x11-2x3-T": Run(
        1, r"loaded 2 times", folder="examples/racy_cache"
    ),
    "purgatorio explore --list": Run(0, r"^two-events "),
    "purgatorio explore two-events/pending-flag": Run(0, r"^PASS "),
    "purgatorio explore two-events/pending-flag --mutant tests/mutants/reference:trylock-give-up": Run(
        1, r"^VIOLATED ", slow=True
    ),
    "purgatorio explore --replay two-events/pending-flag/0/1x8-2x9-1x4-T "
    "--mutant tests/mutants/reference:trylock-give-up": Run(1, r"O4"),
    "purgatorio explore drawn:hashed:1.2.0.0:16::add.0+add.0,cancel.0,stop:": Run(0, r"^PASS "),
    "purgatorio model C1 --stories": Run(0, r"^PASS: 1 claims"),
    "purgatorio stress -s two-events": Run(0, r"^PASS: "),
    "purgatorio stress mine:PARTS": Run((0, 3), r"^(PASS|UNKNOWN): .* 0 dropped", slow=True),
    "python -m benchmarks --help": Run(0, r"purgatory"),
    "python -m purgatorio_pipeline.shipping build": Run(0, r"purgatorio_submit\.py"),
    "python -c 'from purgatorio_conformance.subject.java_build import kit_folder; print(kit_folder())'": Run(
        0, r"jvm"
    ),
    "purgatorio campaign --out hunt --mutant tests/mutants/reference:trylock-give-up --first": Run(
        1, slow=True
    ),
    "purgatorio verify reference netty asyncio": Run(0, r"^PASS: 25 PASS", slow=True),
    "purgatorio subjects": Run((0, 1), r"^sched +PASS", slow=True),  # by what is installed
    "purgatorio model": Run(0, r"^PASS: ", slow=True),
    "purgatorio prove": Run(0, r"^PASS: ", slow=True),
    "purgatorio explore": Run(0, slow=True),
    "purgatorio explore --races": Run(0, slow=True),
    "purgatorio explore remove-against-move --mutant tests/mutants/reference:remove-wrong-list --races": Run(
        1, slow=True
    ),
    "purgatorio explore --json > explore.json": Run(0, slow=True),
    "purgatorio explore --drawn --seconds 60": Run(3, r"^UNKNOWN ", slow=True),
    "purgatorio explore --drawn --seconds 60 --seed 1": Run(3, r"^UNKNOWN ", slow=True),
    "purgatorio explore --drawn purgatory --seconds 20 --mutant tests/mutants/reference:trylock-give-up": Run(
        1, r"^VIOLATED ", slow=True
    ),
    "purgatorio explore --drawn system --mutant my_bug.py": Run(1, r"^VIOLATED ", slow=True),
    "PYTHONPATH=tests python -m mutants": Run(0, slow=True),
    "PYTHONPATH=tests python -m mutants --json > mutants.json": Run(0, slow=True),
    "purgatorio stress": Run(0, r"^PASS: ", slow=True),
    "purgatorio stress --json > stress.json": Run(0, slow=True),
    "purgatorio stress intrusive-timer": Run(0, r"^PASS: ", slow=True),
    "purgatorio stress -s two-events --rounds 100000": Run(0, r"^PASS: ", slow=True),
    "purgatorio stress -s two-events --mutant tests/mutants/reference:trylock-give-up": Run(
        1, r"^VIOLATED: ", slow=True
    ),
}
"""Every command of the pages, as `commands_of` gives it."""


def every_command() -> dict[str, list[tuple[str, str]]]:
    """By the command: the pages that have it, and what each shows under it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for page in PAGES:
        for command, shown in commands_of(page.read_text()):
            found.setdefault(command, []).append((page.name, shown))
    return found


def test_every_command_is_known() -> None:
    """A command that nobody runs is one that nobody knows to work. Nothing in the list is stale."""
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
    """The twin: fenced and indented, with a comment, a continuation and what it prints; and a tree of files is none."""
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
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("command", "how"), cases())
def test_a_command_does_what_its_page_says(
    command: str, how: Run, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status, and what it prints: the whole where the page shows it, else what the page speaks of."""
    if how.needs and shutil.which(how.needs) is None:
        pytest.skip(f"{how.needs} is not installed")
    status, told, errors = ended(command, desk / how.folder, monkeypatch)
    assert status in ((how.status,) if isinstance(how.status, int) else how.status), (
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
