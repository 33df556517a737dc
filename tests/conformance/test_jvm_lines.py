"""Steps at the lines of a JVM's code that knows nothing of them, and every way in which they cannot be had."""

import errno
import json
import os
import socket
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from conformance.driven import broken, run_of, subject_in
from conformance.kit_classes import QUICK
from conformance.test_protocol_gates import only
from program_text import python
from purgatorio_conformance.protocol.coverage import not_looked_for
from purgatorio_conformance.protocol.driver import CommandSubject, Mode
from purgatorio_conformance.protocol.gate_program import gate_programs
from purgatorio_conformance.protocol.jdwp import (
    CodeLine,
    Jvm,
    JvmGone,
    Listening,
    Location,
    Stopped,
    places_between,
)
from purgatorio_conformance.protocol.lines import Lines, LineStep
from purgatorio_conformance.protocol.played_order import NO_LINE, NO_LINE_OF_ITS_OWN, Orders
from purgatorio_conformance.protocol.session import noted
from purgatorio_conformance.protocol.shortest import order_of_run
from purgatorio_conformance.protocol.small_program import CLASSES, SmallProgram, delays_for
from purgatorio_conformance.subject.child import LineChild, Quiet
from purgatorio_conformance.subject.contract import SubjectFailed, silent
from purgatorio_conformance.subject.plan import MS
from purgatorio_spec.check import check_files

pytestmark = pytest.mark.xdist_group("jvm-kit")  # `built` is built once

_FAILS_WITH_THE_AGENT = """#!/bin/sh
case "$JAVA_TOOL_OPTIONS" in *jdwp*) echo "Could not find agent library jdwp on the library path" >&2; exit 1;; esac
exec {java} "$@"
"""


def subject(
    built: tuple[Path, Path],
    case: str,
    java: Path | None = None,
    lines: str | None = "*",
    mode: Mode = "virtual-steps",
) -> CommandSubject:
    own, classes = built
    command = [str(java or own), *QUICK, f"-Dcase={case}", "-cp", str(classes), "LineCases"]
    return subject_in(mode, command, lines=lines)


def test_names_of_no_loaded_class_end_the_run(built: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = subject(built, "plain", lines="LineCase")
    why = r"--lines 'LineCase' matches none of its loaded classes; nearest: LineCases"
    with pytest.raises(SubjectFailed, match=why):
        wrong.run_seeded(1, 300, tmp_path / "run.jsonl", silent)


def found(one: CommandSubject, folder: Path, ops: int = 300) -> tuple[set[str], Path]:
    run = run_of(one, folder, ops=ops)
    return broken(run), Path(run.file)


def test_a_race_between_two_lines_is_found_and_its_line_is_named(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """An add is lost during another add: no callback is near, and the code has no marked loop."""
    lost = subject(built, "lost")
    clauses, trace = found(lost, tmp_path)
    assert "T3" in clauses
    session = order_of_run(lost, check_files([trace]).runs[0], "T3", tmp_path / "again.jsonl")
    held = [json.loads(line[2:]) for line in session if line.startswith('< {"m":"held"')]
    assert {one["f"] for one in held} == {"step"}, (
        "the lines at which two stand are looked up by plays of their own"
    )
    assert "(LineCases.java:" in held[0]["at"]
    assert held[0]["at"].startswith("LineCases$Tasks."), "the line that it stands before"


def test_a_race_within_one_line_is_found(built: tuple[Path, Path], tmp_path: Path) -> None:
    """A counter that is read and written in one line; the twin below counts under the lock."""
    assert "T5" in found(subject(built, "counted"), tmp_path)[0]


@pytest.mark.parametrize(
    ("case", "name", "breaks"),
    [
        ("moved", "move-add-again", {"T3"}),
        ("again", "move-add-again", set()),
        ("forgets", "expire-add", {"T3"}),
        ("again", "expire-add", set()),
    ],
)
def test_a_task_is_added_again_beside_time_that_moves_or_ends_it(
    case: str,
    name: str,
    breaks: set[str],
    built: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread that moves a task puts it back next to the new one, so it runs twice. The thread that ends it removes
    the new one, so it runs for the former add alone. Not under one lock."""
    only(monkeypatch, name)
    # Who listens is driven in this process, where only the one program is known.
    one = replace(subject(built, case), listener=noted([]))
    assert found(one, tmp_path)[0] == breaks
    assert [orders.program.name for orders in one.account.orders if orders.plays] == [name]


@pytest.mark.parametrize("why", [NO_LINE, NO_LINE_OF_ITS_OWN])
def test_programs_without_a_pause_at_a_line_are_listed_with_the_reason(
    why: str, built: tuple[Path, Path]
) -> None:
    lines, at_gates = subject(built, "clean"), subject(built, "clean", mode="virtual-gates")
    first, second, third = gate_programs("timer", delays_for(lines.description, MS))[:3]
    everything = [Orders(SmallProgram("", targets, (), ()), 1) for targets in CLASSES["timer"]]
    at_gates.account.orders += [*everything, Orders(first, 3)]
    lines.account.orders += [Orders(first, skipped=why), Orders(second, 3), Orders(third, skipped=why)]
    assert [one for one in not_looked_for([lines, at_gates]) if one[0] == lines.name] == [
        (lines.name, f"not run with pauses at lines ({why}): {first.name}, {third.name}")
    ]


@pytest.mark.parametrize(("second", "places"), [(13, [8]), (14, [])])
def test_a_field_that_a_line_reads_again_may_have_changed_between(second: int, places: list[int]) -> None:
    """As in `if (entry != null) entry.remove()`."""
    read = (0x2A, 0xB4, 0, 13), (0xC6, 0, 10), (0x2A, 0xB4, 0, second), (0xB6, 0, 17)
    code = bytes(one for instruction in read for one in instruction)
    assert list(places_between(code, 0, len(code))) == places


def test_its_twin_with_a_lock_is_kept_though_the_lock_is_held(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """A paused thread that holds the monitor blocks the other thread, which does not count as running."""
    ways: list[Mode] = ["virtual-steps", "virtual-gates", "virtual-scope"]
    clean, *others = (subject(built, "clean", mode=mode) for mode in ways)
    assert not any(broken(run_of(one, tmp_path, ops=120)) for one in (clean, *others))
    assert not [said for _, said in not_looked_for([clean, *others]) if "negative delay" not in said]
    assert not clean.account.left_out
    places = [point for play in clean.account.plays if play.stop is not None for point in play.stop.points]
    assert {"LineCases$Tasks.add", "LineCases$Tasks.put"} <= {place.line.method for place in places}


def test_lines_can_be_left_alone(built: tuple[Path, Path], tmp_path: Path) -> None:
    """No thread is paused, or only in classes without the race. (The race may be lost then.)"""
    for lines in (None, "LineCases"):
        without = subject(built, "clean", lines=lines, mode="virtual-gates")
        assert found(without, tmp_path / str(lines), 60)[0] == set()
        assert not any(play.stop and play.stop.points for play in without.account.plays)


def test_a_jvm_without_the_agent_is_driven_without_and_it_is_said(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    java = tmp_path / "java"
    java.write_text(_FAILS_WITH_THE_AGENT.format(java=built[0]))
    java.chmod(0o755)
    bare = subject(built, "clean", java, mode="virtual-gates")
    assert bare.lines is None
    assert found(bare, tmp_path, 60)[0] == set()
    (line,) = [one for _, one in not_looked_for([bare]) if "between two lines" in one]
    assert "Could not find agent library" in line


def test_a_jvm_that_dies_while_a_thread_stands(built: tuple[Path, Path], tmp_path: Path) -> None:
    dies = subject(built, "dies")
    with pytest.raises(SubjectFailed) as caught:
        dies.run(dies.shape.make(1, 1, 1, dies.tick_ns), tmp_path / "run.jsonl", lambda *_: None)
    assert (caught.value.kind, "exit status 7" in caught.value.why) == ("died", True), caught.value.why
    assert "JAVA_TOOL_OPTIONS" not in caught.value.why
    assert caught.value.trace is not None


class _Circle:
    def __init__(self, place: int) -> None:
        self._place = place

    def fileno(self) -> int:
        return self._place

    def read_lines(self) -> list[bytes]:
        return []


def test_a_jvm_is_asked_for_its_stacks_though_a_thread_runs_in_a_circle(
    built: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stacks are reported, and the driver does not wait until the JVM rests."""
    monkeypatch.setattr("purgatorio_conformance.subject.child._STACKS_MOST_S", 2.0)
    java, classes = built
    ours, theirs = os.pipe()
    os.close(theirs)
    with LineChild("circle", [str(java), *QUICK, "-cp", str(classes), "LineCases"]) as child:
        child.say(b'{"m":"describe","n":0,"protocol":"purgatorio-subject/1.1"}')
        assert isinstance(child.hear(20.0), bytes)
        child.hear_also(_Circle(ours))
        failure = child.silent(0.1)
        assert (failure.kind, b"main" in child.errors()) == ("hang", True)
    os.close(ours)


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1", b"JDWP-Handshake", b"JDWP-Handshake\xff\xff\xff\xff" * 9]
)
def test_a_peer_that_is_not_a_jvm_is_ignored(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes the connection, speaks another protocol, or does not answer: the driver does not wait for it."""
    monkeypatch.setattr(Listening, "_is_ours", lambda *_: True)
    with closing(Listening()) as listening:
        option = listening.environ()["JAVA_TOOL_OPTIONS"].rpartition(":")[2]
        with socket.create_connection(("127.0.0.1", int(option))) as caller:
            caller.sendall(said)
            caller.shutdown(socket.SHUT_WR)
            caller.settimeout(5)
            assert caller.recv(14) == b"JDWP-Handshake"
            assert listening.jvms() == []


def test_a_caller_that_is_gone_at_once_does_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address can no longer be read."""
    ours = iter([False, True])

    def is_ours(listening: Listening, called: socket.socket) -> bool:
        if not next(ours):
            raise OSError(errno.ENOTCONN, "gone")
        return True

    monkeypatch.setattr(Listening, "_is_ours", is_ours)
    with closing(Listening()) as listening:
        port = int(listening.environ()["JAVA_TOOL_OPTIONS"].rpartition(":")[2])
        for answer in (b"", b"JDWP-Handshake"):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as caller:
                assert caller.recv(14) == answer


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's /proc")
def test_only_a_process_that_was_started_to_call_is_answered() -> None:
    """Another program of this machine is refused, our JVM is answered, and no process listens afterwards."""
    code = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(14))"
    with closing(Listening()) as listening:
        environ = listening.environ()
        port = environ["JAVA_TOOL_OPTIONS"].rpartition(":")[2]
        answers = [
            python(code, port, env=env, check=True, timeout=60).stdout for env in ({**os.environ}, environ)
        ]
    assert answers == ["b''\n", "b'JDWP-Handshake'\n"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


def test_a_reply_is_never_waited_for_longer_than_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatorio_conformance.protocol.jdwp._ANSWER_S", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"JDWP-Handshake")
        with pytest.raises(JvmGone):
            Jvm(ours)


class _Stops:
    """A child, and its JVM, whose lane 0 stands before a line of the thread 7 as soon as its call has said so much."""

    def __init__(self, *said: bytes) -> None:
        self.said = [*said]
        self.stops: list[Stopped] = []
        self.gone_on: list[int] = []
        self.forgotten: list[int] = []

    def say(self, line: bytes) -> None:
        """See `LineChild`."""

    def hear(self, within_s: float) -> bytes | Quiet:
        if not self.said and self.lines is not None:
            self.said += self.lines.read_lines() or []
        return self.said.pop(0) if self.said else Quiet.SILENT

    def hear_also(self, aside: Lines) -> None:
        self.lines = aside

    lines: Lines | None = None

    def jvms(self) -> list["_Stops"]:
        return [self]

    def close(self) -> None:
        """See `Listening`."""

    def threads(self) -> dict[int, str]:
        return {7: "lane-0"}

    def stop_at(self, thread: int, at: Location, nth: int) -> int:
        self.stops.append(Stopped(1, thread, at))
        return 1

    def watch(self, thread: int, without: tuple[str, ...], within: str) -> int:
        return 2

    def forget(self, request: int) -> None:
        self.forgotten.append(request)

    def works(self, most_s: float) -> bool:
        return False

    def look_anew(self) -> None:
        """See `LineChild`."""

    def inside(self, at: Location) -> list[Location]:
        return [(1, 2, 19)] if at == (1, 2, 4) else []

    def read(self, within_s: float) -> list[Stopped]:
        stops, self.stops = self.stops, []
        return stops

    def line(self, at: Location) -> CodeLine:
        return CodeLine("Adapter.tell", at[2], "Adapter.java:9")

    def go_on(self, thread: int) -> None:
        self.gone_on.append(thread)

    began: tuple[int, ...] = ()

    def frames(self, thread: int) -> tuple[int, ...]:
        return self.began

    def around(self, of: int) -> str:
        return ("java.lang.Thread", "Adapter", "org.acme.Purgatory", "purgatorio.kit.Lane")[of]


@pytest.mark.parametrize(
    ("began", "classes", "left_out"),
    [((0, 1, 2), (1, 2, 2), 1), ((0, 1), (1, 1, 2), 0), ((0, 3, 1), (1, 2, 2), 0), ((0,), (1, 2, 2), 0)],
    ids=["by hand", "all in one class", "the kit's", "not known"],
)
def test_lines_of_the_adapter_are_left_out(
    began: tuple[int, ...], classes: tuple[int, ...], left_out: int
) -> None:
    """Where the lane's thread began, unless most of the lines are there: then the purgatory is, too."""
    child = _Stops()
    child.began = began
    lines = Lines(cast(LineChild, child), cast(Listening, child), "*")
    assert lines.connect()
    lines.points += [LineStep("", child.line((of, 2, n)), 1, (of, 2, n)) for n, of in enumerate(classes)]
    lines.leave_adapter_out()
    assert lines.adapters == {point.line for point in lines.points[:left_out]}


def test_a_thread_that_comes_back_into_a_line_stops_there_once() -> None:
    """Behind a getter the JVM tells of the midst of the line, which was found within it too: one place, one stop."""
    child = _Stops(b'{"m":"answer","n":5}')
    lines = Lines(cast(LineChild, child), cast(Listening, child), "*")
    assert lines.connect()
    lines.watch(workers=False)
    lines.say(b'{"m":"cancel","n":5,"id":"t"}')
    child.stops = [Stopped(2, 7, (1, 2, index)) for index in (4, 19, 25, 4, 19)]
    lines.read_lines()
    lines.hear(0)
    steps = [lines.points[step] for step in lines.seen(lines.watched)]
    assert [(step.at[2], step.nth) for step in steps] == [(4, 1), (19, 1), (25, 1), (4, 2), (19, 2)]


@pytest.mark.parametrize("watched", [True, False])
def test_a_call_that_is_watched_runs_on_unwatched_before_it_is_given_up(watched: bool) -> None:
    """Once: it may have been slow because it was watched. The twin is not."""
    child = _Stops()
    lines = Lines(cast(LineChild, child), cast(Listening, child), "*")
    assert lines.connect()
    if watched:
        lines.watch(workers=False)
    lines.say(b'{"m":"cancel","n":5,"id":"t"}')
    assert [lines.works(20.0), lines.works(20.0)] == [watched, False]
    assert (child.forgotten, bool(lines.unknown)) == ([2] if watched else [], watched)


@pytest.mark.parametrize("gate", [True, False], ids=["at a gate", "in the subject"])
def test_who_has_told_of_a_gate_and_stops_at_a_line_is_in_the_adapter(gate: bool) -> None:
    """He goes on at once, unheard, and the line is known; anybody else stands there until he is let go."""
    told = b'{"m":"held","hold":3,"f":"try_complete","id":"op","during":5}'
    other = b'{"m":"held","hold":3,"f":"try_complete","id":"op","th":"reaper"}'
    child = _Stops(told if gate else other)
    lines = Lines(cast(LineChild, child), cast(Listening, child), "*")
    assert lines.connect()
    at = (1, 2, 3)
    lines.points.append(LineStep("", child.line(at), 1, at))
    lines.say(b'{"m":"start","n":4,"gates":["try_complete","step"]}')
    lines.say(b'{"m":"check","n":5,"step":0,"key":"k"}')
    assert lines.hear(0) == (told if gate else other)
    stopped = lines.hear(0)
    assert isinstance(stopped, Quiet) == gate
    assert (child.gone_on, lines.adapters) == (([7], {child.line(at)}) if gate else ([], set()))
    # Once he was let go from his gate he is in the subject again.
    lines.say(b'{"m":"go","n":6,"holds":[3]}')
    lines.say(b'{"m":"check","n":7,"step":0,"key":"k"}')
    assert not isinstance(lines.hear(0), Quiet)
