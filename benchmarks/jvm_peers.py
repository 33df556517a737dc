"""Timers of the JVM under U1, U2 and U4: netty's wheel, the JDK's `ScheduledThreadPoolExecutor`, and a port of the
structure of Kafka's own, whose jar is not among PySpark's.

They run in a child process with the same delays in the same order (`TimerBench.java`). What is counted is the CPU
time of the calling thread and the timer's own thread; the collector's and the compiler's threads are not in it, which
is in the JVM's favour. The first plays of each are not counted: they are when the code is compiled.
"""

import struct
import subprocess
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Final

from benchmarks.candidate import Entry, nothing_here
from benchmarks.grid import GridWorkload
from purgatorio_conformance.java_home import JavaHome, JavaNotFound, find_java
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.subject.java_build import Jars, compiled_classes, pyspark_jars

_WARM_UP: Final = 2
_WARM_ENOUGH: Final = 500_000
"""From this size on one play is enough to have the code compiled."""

_TIMEOUT_S: Final = 120
_BENCH: Final = Path(__file__).with_name("java") / "purgatorio" / "TimerBench.java"
_TIMERS: Final = ("jvm-kafka", "jvm-netty", "jvm-stpe", "jvm-stpe-remove")


def jvm_entries() -> tuple[Entry, ...]:
    """A port of Kafka's wheel (1 ms, 20 buckets, its locks), netty's (1 ms, 512 buckets), and the executor of the JDK
    as it is (tombstones) and with removal on cancel."""
    return tuple(
        Entry(
            name,
            nothing_here,
            "JVM",
            locked=True,
            virtual=False,
            why_not=missing,
            outside=partial(sample, name),
        )
        for name in _TIMERS
    )


@cache
def missing() -> str | None:
    """Why no JVM can be driven here, or None; compiles the driver at first."""
    try:
        _built()
    except (SubjectFailed, JavaNotFound) as problem:
        return str(problem).splitlines()[0]
    return None


def sample(name: str, workload: object) -> dict[str, float]:
    """One play of the workload: nanoseconds an operation. TypeError for a workload of another kind."""
    if not isinstance(workload, GridWorkload):
        raise TypeError(f"not a workload for the JVM: {workload!r}")
    child = _children.get(workload)
    if child is None:
        # One workload at a time: the input of the one before is of no more use.
        for old in _children.values():
            old.close()
        _children.clear()
        child = _children[workload] = JvmChild(workload)
    return child.play(name.removeprefix("jvm-"))


_children: dict[GridWorkload, "JvmChild"] = {}


class JvmChild:
    def __init__(self, workload: GridWorkload) -> None:
        java, jars, classes = _built()
        self._ops = (workload.copies * workload.size, workload.copies * len(workload.churned))
        self._warm: set[str] = set()
        self._folder = tempfile.TemporaryDirectory(prefix="purgatorio-bench-")
        path = Path(self._folder.name) / "workload.bin"
        numbers = [workload.size, len(workload.churned), *workload.delays, *workload.churned]
        numbers += [*workload.new_delays, *workload.order]
        path.write_bytes(struct.pack(f">{len(numbers)}q", *numbers))
        command = [str(java.java), "-XX:+UseSerialGC", "-cp", f"{classes}:{jars.netty_common}"]
        self._process = subprocess.Popen(
            [*command, "purgatorio.TimerBench", str(path), str(workload.copies)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def play(self, timer: str) -> dict[str, float]:
        """One play, after the ones that warm the timer up. RuntimeError where the JVM has died."""
        if timer not in self._warm:
            self._warm.add(timer)
            for _ in range(_WARM_UP if self._ops[0] < _WARM_ENOUGH else 1):
                self._ask(timer)
        add_ns, churn_ns, cancel_ns = self._ask(timer)
        many, churns = self._ops
        return {"add": add_ns / many, "churn": churn_ns / churns, "cancel": cancel_ns / many}

    def _ask(self, timer: str) -> list[int]:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the JVM has no pipes")
        self._process.stdin.write(f"{timer}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if len(answer) != 3:
            raise RuntimeError(f"the JVM died while it played {timer}")
        return [int(word) for word in answer]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=_TIMEOUT_S)
        self._folder.cleanup()


@cache
def _built() -> tuple[JavaHome, Jars, Path]:
    java, jars = find_java(), pyspark_jars()
    return java, jars, compiled_classes(java, jars, more=[_BENCH])
