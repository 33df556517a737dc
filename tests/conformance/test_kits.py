"""The kits for Go, Rust and Node: their toys pass, and a bug in a toy is found. Skipped where a language is missing."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.driven import broken, run_of
from docs.makers.maven import compiled_adapter, jdk_program, maven_jars
from program_text import ran
from purgatorio_conformance.protocol.driver import Mode, command_subjects
from purgatorio_conformance.subject.child import ChildLimits, LineChild, Quiet
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_spec.judge.result import RunResult

ROOT = Path(__file__).parents[2]
KITS = ROOT / "kits"
TOYS = ("wheel", "purgatory", "periodic", "semaphore")
BUILD_TIMEOUT_S = 600.0

pytestmark = pytest.mark.xdist_group("kits")  # each is built once


@dataclass(frozen=True)
class Toys:
    """How the toys of a kit are started: the commands, and what adds the bug."""

    wheel: Sequence[str]
    purgatory: Sequence[str]
    periodic: Sequence[str]
    semaphore: Sequence[str]
    bug: Sequence[str] = ()
    buggy: Sequence[str] = ("env", "TOY_BUG=1")

    def command(self, name: str, bug: bool) -> list[str]:
        own = list(getattr(self, name))
        return [*(self.buggy if bug else ()), *own, *(self.bug if bug else ())]


def needed(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not on the PATH")
    return found


def built(command: Sequence[str], folder: Path, **environment: str) -> None:
    done = ran(command, cwd=folder, env={**os.environ, **environment}, timeout=BUILD_TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Toys:
    language = request.param
    if language == "node":
        node = needed("node")
        wheel, purgatory, periodic, pool = (
            (node, str(KITS / "node" / "examples" / f"{name}.js")) for name in (*TOYS[:3], "pool")
        )
        return Toys(wheel, purgatory, periodic, pool, ("--bug",), ())
    out = tmp_path_factory.mktemp(language)
    if language == "go":
        built(
            [needed("go"), "build", "-o", f"{out}/", "./..."], KITS / "go", GOPROXY="off", GOTOOLCHAIN="local"
        )
    else:
        built([needed("cargo"), "build", "--offline", "--examples", "--target-dir", str(out)], KITS / "rust")
        out = out / "debug" / "examples"
    return Toys(*((str(out / name),) for name in TOYS))


def judged(command: Sequence[str], mode: Mode, folder: Path, ops: int = 200) -> RunResult:
    *_, subject = (one for one in command_subjects(command) if one.mode == mode)
    return run_of(subject, folder, ops=ops)


def found(command: Sequence[str], mode: Mode, folder: Path, ops: int = 200) -> set[str]:
    return broken(judged(command, mode, folder, ops))


@pytest.mark.parametrize("bug", [False, True], ids=["clean", "bug"])
@pytest.mark.parametrize("toys", ["go", "rust", "node"], indirect=True)
def test_a_bug_of_a_toy_wheel_is_found(toys: Toys, bug: bool, tmp_path: Path) -> None:
    """A task that fires a turn of the wheel too early; the wheel without the bug breaks nothing."""
    assert found(toys.command("wheel", bug), "virtual-plan", tmp_path) & {"T1", "T3"} == (
        {"T1"} if bug else set()
    )


@pytest.mark.parametrize(
    ("mode", "bug"),
    [
        ("virtual-units", False),
        ("virtual-units", True),
        pytest.param("real-units", False, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("toys", ["go"], indirect=True)
def test_a_semaphore_without_hooks_of_a_timer_is_judged(
    toys: Toys, mode: Mode, bug: bool, tmp_path: Path
) -> None:
    """Each request times out on a goroutine of its own, which completes it and reports its expiration."""
    run = judged(toys.command("semaphore", bug), mode, tmp_path, ops=60)
    assert broken(run) == ({"O4"} if bug else set())
    assert (run.clauses["O3"].verdict, run.clauses["T3"].verdict) == ("PASS", "SKIPPED")


@pytest.mark.parametrize("toys", ["go", "rust", "node"], indirect=True)
def test_periodic_tasks_and_resets_are_judged(toys: Toys, tmp_path: Path) -> None:
    """A late run that moves all later ones breaks T9; without the bug, rates, delays, cancels and resets pass."""
    clean = judged(toys.command("periodic", bug=False), "virtual-periodic", tmp_path / "clean")
    kept = {name: clean.clauses[name].verdict for name in ("T8", "T9", "T10", "T11")}
    assert kept == dict.fromkeys(kept, "PASS")
    bug = judged(toys.command("periodic", bug=True), "virtual-periodic", tmp_path / "bug")
    assert bug.clauses["T9"].violations
    assert not bug.clauses["T11"].violations


@pytest.mark.parametrize("toys", ["go", "rust", "node"], indirect=True)
def test_what_was_read_is_answered_at_the_end_of_input(toys: Toys) -> None:
    """The calls of a page, piped into the program: a user takes one that answers half of them for dead."""
    calls: list[dict[str, object]] = [
        {"m": "describe"},
        {"m": "start", "part": "timer", "time": "virtual", "now_ns": 0, "gates": []},
        *({"m": "add", "lane": 0, "id": f"t-{n}", "delay_ns": 5_000_000} for n in range(50)),
        {"m": "advance", "lane": 0, "now_ns": 10_000_000},
        {"m": "stop", "lane": 0},
    ]
    lines = "".join(json.dumps({**call, "n": n}) + "\n" for n, call in enumerate(calls))
    done = ran(toys.command("wheel", False), input=lines, timeout=60)
    answered = [
        said["n"]
        for line in done.stdout.splitlines()
        if "n" in (said := json.loads(line)) and "f" not in said
    ]
    assert (done.returncode, sorted(answered)) == (0, list(range(len(calls)))), done.stderr


@pytest.mark.parametrize("toys", ["go"], indirect=True)
def test_a_pause_of_go_has_the_lines_of_the_step_and_its_caller(toys: Toys) -> None:
    calls = (
        {"m": "start", "part": "purgatory", "time": "virtual", "now_ns": 0, "gates": ["step"]},
        {"m": "register", "id": "op", "keys": ["k"], "delay_ns": 5_000_000, "step": 1},
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(toys.command("purgatory", False), stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("".join(json.dumps({**call, "n": n}) + "\n" for n, call in enumerate(calls)))
        child.stdin.flush()
        held = next(said for line in child.stdout if (said := json.loads(line))["m"] == "held")
        child.kill()
    place = r"\S+ \(\w+\.go:\d+\)"
    assert re.fullmatch(rf"toy\.{place} from {place}", held["at"]), held


@pytest.mark.slow
@pytest.mark.parametrize("bug", [False, True], ids=["clean", "bug"])
@pytest.mark.parametrize("toys", ["go", "rust", "node"], indirect=True)
def test_a_lost_completion_of_a_toy_purgatory_is_found(toys: Toys, bug: bool, tmp_path: Path) -> None:
    """A check that finds an operation busy and leaves (KAFKA-6653); the clean twin breaks nothing."""
    assert found(toys.command("purgatory", bug), "virtual-gates", tmp_path) == ({"O4"} if bug else set())


def edited(name: str, old: str, new: str, folder: Path) -> list[str]:
    """The command of a toy for Node with `new` in the place of `old`."""
    kit = shutil.copytree(KITS / "node", folder / "node", ignore=shutil.ignore_patterns("node_modules"))
    source = kit / "examples" / name
    text = source.read_text(encoding="utf-8")
    assert old in text
    source.write_text(text.replace(old, new), encoding="utf-8")
    return [needed("node"), str(source)]


@pytest.mark.parametrize("drops", [True, False])
def test_the_keys_of_a_toy_purgatory_are_counted(drops: bool, tmp_path: Path) -> None:
    """A list that is never dropped when it is empty is P4's; the toy without this bug breaks nothing."""
    drop = "if (list.size === 0) this.lists.delete(key);"
    command = edited("purgatory.js", drop, drop if drops else "", tmp_path)
    assert found(command, "virtual-plan", tmp_path) == (set() if drops else {"P4"})


@pytest.mark.parametrize("bug", [True, False])
def test_a_node_timer_without_an_add_has_periodic_tasks_that_run_once(bug: bool, tmp_path: Path) -> None:
    """Its one-shot tasks break nothing, and its bug is found as before."""
    add = "  add(task, delayNs) {\n    return this.enter(task, delayNs);\n  }\n"
    command = [*edited("periodic.js", add, "", tmp_path), *(["--bug"] if bug else [])]
    assert found(command, "virtual-periodic", tmp_path) == ({"T9"} if bug else set())
    assert found(command, "virtual-scope", tmp_path, ops=300) == set()


def test_a_method_that_a_node_adapter_declares_and_lacks_accuses_no_timer(tmp_path: Path) -> None:
    command = edited("periodic.js", "  moveTo(nowNs) {", "  moveItTo(nowNs) {", tmp_path)
    with pytest.raises(AssertionError, match=r"died: .*has no method moveTo"):
        found(command, "virtual-periodic", tmp_path)


@pytest.mark.parametrize("looks", [True, False])
def test_tasks_that_a_node_timer_does_not_await_may_cancel_each_other(looks: bool, tmp_path: Path) -> None:
    """A task of the bucket cancels the next one, which runs all the same: T4. An adapter that ran the tasks later
    would hide it."""
    look = "if (due && this.cancel(task)) task();"
    command = edited("wheel.js", look, look if looks else "if (due) [this.cancel(task), task()];", tmp_path)
    assert found(command, "virtual-scope", tmp_path, ops=300) == (set() if looks else {"T4"})


@pytest.mark.parametrize("bug", [False, True])
def test_async_tasks_that_a_node_timer_does_not_await_overlap(bug: bool, tmp_path: Path) -> None:
    """As callbacks of setTimeout do that are due at one time. The answer waits for all. After runed#139."""
    command = [*edited("wheel.js", "task.now,", "task,", tmp_path), *(["--bug"] if bug else [])]
    assert found(command, "virtual-scope", tmp_path, ops=300) == ({"T3"} if bug else set())
    assert found(command, "virtual-gates", tmp_path) == ({"T1", "T3"} if bug else set())


@pytest.mark.parametrize("bug", [False, True])
def test_tasks_of_a_node_timer_that_belong_to_no_call_are_not_late(bug: bool, tmp_path: Path) -> None:
    """As those of a promise that was made by the add. The advance may return first: a call inside a task comes before
    time moves on. More than 48 tasks may be paused at once. After eliza#20453."""
    own_turn = "require('node:async_hooks').AsyncResource.bind(() => { task(); }),"
    command = [*edited("wheel.js", "task.now,", own_turn, tmp_path), *(["--bug"] if bug else [])]
    assert found(command, "virtual-scope", tmp_path, ops=300) == ({"T3"} if bug else set())
    assert found(command, "virtual-plan", tmp_path) == ({"T1"} if bug else set())


def test_a_new_run_ends_a_task_that_is_not_awaited(tmp_path: Path) -> None:
    """It is paused, and reads the calls. The start of the next run leaves the code of the first."""
    start = {"m": "start", "part": "timer", "time": "virtual", "now_ns": 0, "gates": ["timer_fire"]}
    with subprocess.Popen(
        [needed("node"), str(KITS / "node" / "examples" / "wheel.js")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as node:  # fmt: skip
        calls, lines = node.stdin, node.stdout
        assert calls is not None
        assert lines is not None

        def says(call: dict[str, object], last: str) -> list[dict[str, object]]:
            calls.write(json.dumps(call) + "\n")
            calls.flush()
            heard = [json.loads(lines.readline())]
            while heard[-1]["m"] != last:
                heard.append(json.loads(lines.readline()))
            return heard

        held: dict[str, object] = {}
        for n in (10, 20):
            says({**start, "n": n}, "answer")
            says({"m": "add", "n": n + 1, "id": "a", "delay_ns": 1_000_000}, "answer")
            held = says({"m": "advance", "n": n + 2, "now_ns": 1_000_000}, "held")[-1]
        says({"m": "add", "n": 30, "id": "b", "delay_ns": 1_000_000, "hold": held["hold"]}, "answer")
        assert says({"m": "go", "n": 31, "holds": [held["hold"]]}, "leave")[0] == {"m": "answer", "n": 31}
        assert json.loads(lines.readline()) == {"m": "answer", "n": 22}
        calls.close()
        assert node.wait(60) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("version", "breaks"), [("1.0.0", {"O4"}), ("1.1.1", set())])
def test_kafka_6653_is_found_in_the_released_classes(version: str, breaks: set[str], tmp_path: Path) -> None:
    """In 1.0.0 as published, and not in 1.1.1, which has its mend. Maven resolves the jars into the user's cache."""
    sources = ROOT / "examples" / "kafka"
    folders = [sources / name for name in ("clock", "common", "scala", "base-1.0", "timer-0.10")]
    try:
        jars = maven_jars([f"org.apache.kafka:kafka_2.12:{version}"])
        classes = compiled_adapter(sorted(one for folder in folders for one in folder.rglob("*.java")), jars)
        java = jdk_program("java")
    except SubjectFailed as missing:
        pytest.skip(str(missing))
    assert found([str(java), "-cp", f"{classes}:{jars}/*", "KafkaScala"], "virtual-gates", tmp_path) == breaks


LOCKS_TWICE = """package main

import (
	"os"
	"sync"
)

func crossing(lock *sync.Mutex) {
	lock.Lock()
}

func main() {
	go os.Stdin.Read(make([]byte, 1)) // a program that waits for input does not end itself
	var lock sync.Mutex
	lock.Lock()
	crossing(&lock)
}
"""


@pytest.mark.parametrize("trimmed", [True, False])
def test_a_go_program_that_hangs_is_asked_for_its_stacks(trimmed: bool, tmp_path: Path) -> None:
    """The message names the line of its own code, and its standard error ends with its own words."""
    tmp_path.joinpath("go.mod").write_text("module m.test/own\n")
    tmp_path.joinpath("main.go").write_text(LOCKS_TWICE)
    options = ["-trimpath"] if trimmed else []
    built([needed("go"), "build", *options, "-o", "own", "."], tmp_path, GOTOOLCHAIN="local")
    with LineChild("crossing", [str(tmp_path / "own")], ChildLimits(silence_s=1.0)) as child:
        while child.hear(1.0) is not Quiet.SILENT:
            pass
        failure = child.silent(1.0)
        assert b"main.crossing" in child.errors()
    assert failure.kind == "hang"
    assert failure.why.endswith("; goroutine 1 at main.crossing(main.go:9)"), failure.why


@pytest.mark.slow
def test_a_go_timer_that_others_wrote_is_driven(tmp_path: Path) -> None:
    """`time.AfterFunc` and RussellLuo/timingwheel keep their promises. One module of each kind is enough."""
    binary = tmp_path / "adapters"
    try:
        built([needed("go"), "build", "-o", str(binary), "."], KITS / "go" / "adapters")
    except AssertionError as refused:
        pytest.skip(f"the modules are not to be had: {refused}")
    for name in ("afterfunc", "timingwheel"):
        assert found(["env", f"TIMER={name}", str(binary)], "real", tmp_path / name) == set()


@pytest.mark.slow
def test_a_rust_timer_that_others_wrote_is_driven(tmp_path: Path) -> None:
    out = tmp_path / "target"
    try:
        built([needed("cargo"), "build", "--target-dir", str(out)], KITS / "rust" / "adapters")
    except AssertionError as refused:
        pytest.skip(f"the crates are not to be had: {refused}")
    command = ["env", "TIMER=delay-queue", str(out / "debug" / "purgatorio-adapters")]
    assert found(command, "virtual-plan", tmp_path / "delay-queue") == set()


@pytest.mark.slow
def test_a_node_timer_is_driven(tmp_path: Path) -> None:
    adapters = KITS / "node" / "adapters" / "index.js"
    assert found([needed("node"), str(adapters), "set-timeout"], "real", tmp_path) == set()
