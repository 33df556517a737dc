"""What a process and all its descendants cost: CPU seconds and peak memory, sampled with psutil.

CPU is the sum over every process that was seen, so one that lives less than a sample is missed; memory is the sum of
the resident sets, which counts a page that two processes share twice, but not the whole of one that has just forked.
"""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import psutil

SAMPLE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Process:
    """One process at one moment: the bytes of its address space, and its resident bytes."""

    parent: int
    cpu_s: float
    space_bytes: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """A finished process: its output, and the cost of its process tree."""

    output: str
    cpu_s: float
    wall_s: float
    peak_bytes: int


class Failed(Exception):
    """The process ended with another status than 0; the end of its error output."""


def run_measured(command: Sequence[str]) -> Cost:
    """Run a command to its end. Raises `Failed`."""
    began = time.monotonic()
    # Files, since nobody reads while it runs, and a pipe that is full stops the writer.
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        seen, peak_bytes = _watched(process)
        for file in (output, errors):
            file.seek(0)
        if process.returncode:
            raise Failed(f"{' '.join(command)} ended with {process.returncode}: {errors.read()[-2000:]}")
        return Cost(output.read(), sum(seen.values()), time.monotonic() - began, peak_bytes)


def _watched(process: subprocess.Popen[bytes]) -> tuple[dict[int, float], int]:
    """CPU seconds by process, and the peak of their memory, once it has ended."""
    seen: dict[int, float] = {}
    peak_bytes = 0
    while process.poll() is None:
        tree = _tree(process.pid)
        seen.update({pid: one.cpu_s for pid, one in tree.items()})
        peak_bytes = max(peak_bytes, resident_bytes(tree))
        time.sleep(SAMPLE_S)
    return seen, peak_bytes


def resident_bytes(tree: Mapping[int, Process]) -> int:
    """Of all processes. One that shows what its parent shows has just been forked, and still has its parent's pages:
    a JVM that starts another program is seen twice for a moment."""
    return sum(one.resident_bytes for one in tree.values() if not _just_forked(one, tree.get(one.parent)))


def _just_forked(one: Process, parent: Process | None) -> bool:
    if parent is None or one.space_bytes != parent.space_bytes:
        return False
    # The parent goes on, so its own figure may be some pages further.
    return abs(one.resident_bytes - parent.resident_bytes) <= parent.resident_bytes // 100


def _tree(root: int) -> dict[int, Process]:
    """A process and its descendants that are alive now."""
    try:
        top = psutil.Process(root)
        alive = [top, *top.children(recursive=True)]
    except psutil.Error:
        return {}
    found: dict[int, Process] = {}
    for one in alive:
        with contextlib.suppress(psutil.Error):  # it ended meanwhile
            spent, held = one.cpu_times(), one.memory_info()
            found[one.pid] = Process(one.ppid(), spent.user + spent.system, held.vms, held.rss)
    return found
