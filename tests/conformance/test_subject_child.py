"""A child that misbehaves becomes a clear failure of its kind, and is gone afterwards: one test for each kind."""

import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from purgatorio_conformance.java_home import JavaNotFound, find_java
from purgatorio_conformance.subject.at_work import ProcessThreads
from purgatorio_conformance.subject.child import ChildLimits, LineChild, Quiet, lanes_wait
from purgatorio_conformance.subject.contract import FailureKind, SubjectFailed

QUICK = ChildLimits(silence_s=30.0, total_s=60.0, lines=1_000)


@pytest.fixture(autouse=True)
def little_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatorio_conformance.subject.child.LINE_BYTES", 1_000)
    monkeypatch.setattr("purgatorio_conformance.subject.child.OUTPUT_BYTES", 50_000)


def lines(child: LineChild, silence_s: float = 30.0) -> Iterator[bytes]:
    """The lines of the child, until it closes its output and has exited."""
    while isinstance(said := child.hear(silence_s), bytes):
        yield said
    if said is Quiet.SILENT:
        raise child.silent(silence_s)
    child.check_exit()


def talk(script: str, limits: ChildLimits = QUICK, say: Sequence[bytes] = ()) -> list[bytes]:
    with LineChild("fake", [sys.executable, "-c", script], limits) as child:
        for line in say:
            child.say(line)
        return list(lines(child, limits.silence_s))


def failure(script: str, limits: ChildLimits = QUICK) -> SubjectFailed:
    with pytest.raises(SubjectFailed) as caught:
        talk(script, limits)
    return caught.value


def test_well_behaved_child_is_heard_to_its_end() -> None:
    """The twin of all the others: lines in both directions, a last line without its end, exit status 0."""
    script = "import sys\nfor line in sys.stdin:\n  print('got', line.strip())\n  if 'end' in line: break\n"
    assert talk(script + "sys.stdout.write('last')", say=[b"one", b"end"]) == [
        b"got one",
        b"got end",
        b"last",
    ]


SLEEPS = "import time; time.sleep(600)"


@pytest.mark.parametrize(
    ("script", "limits", "kind", "why"),
    [
        (SLEEPS, ChildLimits(silence_s=0.2), "hang", "silent for 0.2 s"),
        # Never silent, never done.
        ("import time\nwhile True: print('x', flush=True); time.sleep(0.01)",
         ChildLimits(silence_s=30.0, total_s=0.5), "hang", "not done after 0.5 s"),
        # End of file is not the end of the process.
        (f"import os; os.close(1); {SLEEPS}", ChildLimits(silence_s=1.0), "closed-output", ""),
        # It will never hear what it is told.
        (f"import os; os.close(0); print('deaf', flush=True); {SLEEPS}", ChildLimits(silence_s=0.3), "closed-input",
         ""),
        # Lines short enough and few enough, and still too much.
        ("while True: print('x' * 900)", ChildLimits(), "flood",
         "more than 50000 bytes"),
        # No more than the limit is ever held.
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", QUICK, "flood", "more than 1000 bytes"),
        ("while True: print('x' * 10)", QUICK, "flood", "more than 1000 lines"),
        # A crash of the runtime looks like this.
        ("import os; os.kill(os.getpid(), 9)", QUICK, "died", "by signal 9"),
        # Standard error is shown, and never obeyed.
        ("import sys; sys.stderr.write('\\x1b[2Jgone\\nsecond line'); sys.exit(1)", QUICK, "died",
         r"\x1b[2Jgone | second line"),
    ],
)  # fmt: skip
def test_a_child_that_misbehaves_is_reported(
    script: str, limits: ChildLimits, kind: FailureKind, why: str
) -> None:
    found = failure(script, limits)
    assert (found.kind, why in str(found)) == (kind, True), found.why


READS = '"main" #1\n   java.lang.Thread.State: RUNNABLE\n\tat java.io.FileInputStream.readBytes(Native)\n\n'
PARKED = "\tat jdk.internal.misc.Unsafe.park(Native)\n\t- parking to wait for  <0x1>\n"


def lanes(*places: str) -> str:
    """The stacks of a JVM with these lanes, each of which waits in a method."""
    state = "   java.lang.Thread.State: WAITING (parking)\n"
    return "".join(f'"lane-{n}" #{n}\n{state}{PARKED}\tat {place}\n\n' for n, place in enumerate(places))


TWO_LANES = lanes("Mine.next(Mine.java:7)", "Mine.next(Mine.java:7)")


@pytest.mark.parametrize(
    ("stacks", "idle"),
    [
        (READS + TWO_LANES, True),
        # A lane has a call; there is but one; the reader has the call; one lane is gone, which tells nothing of a call.
        (READS + lanes("Mine.next(Mine.java:7)", "Mine.settle(Mine.java:9)"), False),
        (READS + lanes("Mine.next(Mine.java:7)"), False),
        (TWO_LANES, False),
        (READS, False),
        # A thread of its own waits for a lock that a call left behind, or only for its next task.
        (READS + TWO_LANES + f'"expiry" #9\n{PARKED[:-1]} (a java.util.concurrent.locks.ReentrantLock$NonfairSync)\n',
         False),
        (READS + TWO_LANES + f'"expiry" #9\n{PARKED[:-1]} (a java.util.concurrent.locks.AbstractQueuedSynchronizer$'
         "ConditionObject)\n", True),
    ],
)  # fmt: skip
def test_lanes_that_all_wait_have_no_call(stacks: str, idle: bool) -> None:
    """An adapter that lost a call is distinguished from an implementation that hangs in it."""
    assert lanes_wait(stacks) is idle


class Chatter:
    """Something happens without end, and no line is the child's: a JVM that tells of a thread in a circle."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        theirs.sendall(b"again")
        self._theirs = theirs

    def fileno(self) -> int:
        return self._ours.fileno()

    def read_lines(self) -> list[bytes]:
        """See `Aside`. Lines stay in the pipe, so that there is always more to read."""
        return []

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


@pytest.mark.parametrize(("silence_s", "total_s"), [(0.2, 60.0), (60.0, 0.2)])
def test_what_is_no_line_of_the_child_is_not_waited_for_without_end(silence_s: float, total_s: float) -> None:
    limits = ChildLimits(silence_s=silence_s, total_s=total_s)
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with closing(Chatter()) as chatter, LineChild("fake", command, limits) as child:
        child.hear_also(chatter)
        with pytest.raises(SubjectFailed, match=r"silent for 0\.2 s|not done after 0\.2 s") as caught:
            next(lines(child, silence_s))
    assert caught.value.kind == "hang"


def test_a_child_whose_threads_all_wait_has_said_everything() -> None:
    """One thread hands the line on to another, which works for a while: no time decides, on no machine."""
    script = (
        "import queue, sys, threading\nlines = queue.Queue()\ndef work():\n  while lines.get():\n"
        "    sum(range(100_000))\n    print('done', flush=True)\n"
        "threading.Thread(target=work, daemon=True).start()\nprint('ready', flush=True)\n"
        "for line in sys.stdin: lines.put(line)"
    )
    with LineChild("fake", [sys.executable, "-c", script], QUICK) as child:
        assert child.hear(30.0) == b"ready"
        threads = child.threads()
        for _ in range(50):
            child.say(b"on")
            while not threads.wait():
                pass
            assert child.hear(0.0) == b"done"


def test_dead_child_is_reported_with_its_status_and_last_lines() -> None:
    """The cause stands on standard error: it belongs into the message."""
    found = failure("import sys; print('a'); sys.stderr.write('x' * 9000 + 'out of cheese'); sys.exit(7)")
    assert found.kind == "died"
    assert "exit status 7" in found.why
    assert found.why.endswith("out of cheese")
    assert len(found.why) < 4_500, "a flood on standard error is bounded too"


_LOOKED_AT = """
import fcntl, os, pwd, sys
place = f"/tmp/hsperfdata_{pwd.getpwuid(os.geteuid()).pw_name}"
os.makedirs(place, mode=0o755, exist_ok=True)
file = os.open(f"{place}/{os.getpid()}", os.O_RDWR | os.O_CREAT, 0o600)
fcntl.flock(file, fcntl.LOCK_EX)
os.set_inheritable(file, True)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Another JVM deletes the file of a JVM that starts. HotSpot has a fixed name of the folder, and ignores TMPDIR."""


def test_two_jvms_that_start_together_mix_no_messages() -> None:
    """Four are started at once, so that it happens by itself, rarely."""
    try:
        command = [sys.executable, "-c", _LOOKED_AT, str(find_java().java), "-version"]
    except JavaNotFound as missing:
        pytest.skip(str(missing))
    alone = subprocess.run(command, capture_output=True, check=True)
    if b"[warning][perf" not in alone.stdout:
        pytest.skip("this JVM does not look whether its file is its own")
    with LineChild("fake", command, QUICK) as child:
        assert list(lines(child)) == []
        assert (b"version" in child.errors(), b"Picked up" in child.errors()) == (True, False)


def test_no_group_is_killed_whose_number_may_be_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a `wait`, as at the end of every run, the group may be another program's. Before, it is the child's."""
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: killed.append(group))
    with LineChild("fake", [sys.executable, "-c", ""], QUICK) as child:
        child.kill()
        assert len(killed) == 1
        child.check_exit()
    assert len(killed) == 1


def test_missing_program_is_unavailable() -> None:
    with pytest.raises(SubjectFailed, match="no-such-program does not start") as caught:
        LineChild("fake", ["no-such-program"])
    assert caught.value.kind == "unavailable"


@pytest.mark.parametrize("session", ["", ", start_new_session=True"])
def test_grandchildren_end_with_the_child(session: str, tmp_path: Path) -> None:
    """However the block is left, nothing of the family keeps running: the pipe's other end is closed everywhere."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    # The grandchild inherits the output, and says that it holds the other end of the pipe.
    grandchild = f"import time; f = open({str(fifo)!r}, 'w'); print('started', flush=True); time.sleep(600)"
    start = f"subprocess.Popen([sys.executable, '-c', {grandchild!r}]{session})"
    script = f"import subprocess, sys\n{start}\nsys.stdin.read()"
    with LineChild("fake", [sys.executable, "-c", script], QUICK) as child:
        assert child.hear(30.0) == b"started"
    try:
        readable, _, _ = select.select([reader], [], [], 60.0)
        assert readable, "the grandchild still holds its end"
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_child_of_one_thread_is_met_on_one_processor(threads: int) -> None:
    """Afterwards no process stays on one processor; a child with more threads runs on all."""
    before = os.sched_getaffinity(0)
    script = "import os, sys, threading\n"
    script += "threading.Thread(target=threading.Event().wait, daemon=True).start()\n" * (threads - 1)
    script += "for line in sys.stdin: print(*sorted(os.sched_getaffinity(0)), flush=True)"
    with LineChild("fake", [sys.executable, "-c", script], QUICK) as child:
        child.say(b"where?")
        assert child.hear(30.0) == " ".join(map(str, sorted(before))).encode()
        with child.on_one_processor():
            ours = os.sched_getaffinity(0)
            child.say(b"where?")
            assert child.hear(30.0) == " ".join(map(str, sorted(ours))).encode()
            assert len(ours) == (1 if threads == 1 else len(before))
        assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads the states of threads by /proc")
def test_a_thread_that_has_ended_leaves_no_open_file() -> None:
    """A subject that starts threads again and again would use up the files that this process may open."""
    threads = ProcessThreads([os.getpid()], [threading.get_native_id()])
    of_ended_threads = []
    for _ in range(20):
        going_on = threading.Event()
        other = threading.Thread(target=going_on.wait)
        other.start()
        threads.wait()
        open_files = [os.path.realpath(file) for file in Path("/proc/self/fd").iterdir()]
        of_ended_threads.append(
            sum(file.endswith("/stat") and not os.path.exists(file) for file in open_files)
        )
        going_on.set()
        other.join()
    # Threads of other tests may have ended, too. But the number does not grow with each thread of this test.
    assert of_ended_threads[-1] - of_ended_threads[0] <= 10
