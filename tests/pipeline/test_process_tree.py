"""The cost of a measured process: its memory does not count twice while it starts another program."""

import sys
from dataclasses import replace

import pytest

from benchmarks.process_tree import Failed, Process, resident_bytes, run_measured

JVM = Process(parent=1, cpu_s=9.0, space_bytes=8 << 30, resident_bytes=2 << 30)


def test_a_child_with_its_parents_pages_is_counted_once() -> None:
    """Forked just now, the parent some pages further; with its own program, or its own pages, it counts."""
    forked = replace(JVM, parent=10, cpu_s=0.0, resident_bytes=JVM.resident_bytes - 40_960)
    assert resident_bytes({10: JVM, 11: forked}) == JVM.resident_bytes
    other = replace(forked, space_bytes=5 << 20, resident_bytes=1 << 20)
    assert resident_bytes({10: JVM, 11: other}) == JVM.resident_bytes + (1 << 20)
    grown = replace(forked, resident_bytes=1 << 30)
    assert resident_bytes({10: JVM, 11: grown}) == 3 << 30
    assert resident_bytes({11: forked}) == forked.resident_bytes


def test_a_process_is_measured_to_its_end() -> None:
    """The output, the CPU time, and the memory of the child processes."""
    held = "x = bytearray(64 << 20); sum(range(20_000_000))"
    program = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {held!r}]))"
    cost = run_measured([sys.executable, "-c", program])
    assert "returncode=0" in cost.output
    assert cost.peak_bytes > 64 << 20


def test_the_end_of_its_standard_error_is_shown() -> None:
    """With its status."""
    with pytest.raises(Failed, match=r"ended with 3: (.|\n)*why"):
        run_measured([sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"])
