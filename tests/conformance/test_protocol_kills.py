"""How much the driver finds: the toy subjects with one thing changed at a time, each found by a clause that it breaks.

What is not found is listed with its reason: it changes nothing, or breaks no promise that a clause states.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from purgatorio_conformance.protocol.driver import command_subjects
from purgatorio_conformance.subjects import record_runs
from purgatorio_spec.check import check_files

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "subjects"

Change = tuple[str, str, str]
"""The clause that finds it, or the reason why none can; the text; what stands there instead."""

ROUNDED_UP = "-(-(self.now_ns + delay_ns) // TICK_NS)"
DUE = "if due_tick <= self.tick]"
RANGE = "max(last + 1, self.tick - 7), self.tick + 1)"
SIZE = "sum(len(bucket) for bucket in self.buckets)"
CANCELLED = "any(bucket.pop(task, None) is not None for bucket in self.buckets)"
WHEEL: tuple[Change, ...] = (
    ("T1", ROUNDED_UP, "(self.now_ns + delay_ns) // TICK_NS"),
    ("T2", ROUNDED_UP, f"{ROUNDED_UP} + 1"),
    ("T2", "else due_tick < self.tick + 1", "else due_tick < self.tick"),
    ("T2", "else due_tick < self.tick + 1", "else due_tick < 1"),
    ("T2", "self.buckets[due_tick % 8][task]", "self.buckets[due_tick % 7][task]"),
    ("T2", "self.buckets[due_tick % 8][task]", "self.buckets[(due_tick + 1) % 8][task]"),
    ("T2", "self.tick - 7", "self.tick - 6"),
    ("T2", RANGE, "max(last + 2, self.tick - 7), self.tick + 1)"),
    ("T2", RANGE, "max(last + 1, self.tick - 7), self.tick)"),
    ("T1", DUE, "]"),
    ("T2", DUE, "if due_tick < self.tick]"),
    ("T3", DUE, "if due_tick == self.tick]"),
    ("T3", "                del bucket[task]\n", ""),
    ("T4", "bucket.pop(task, None) is not None", "task in bucket"),
    ("T1", "self.now_ns = now_ns\n        last", "last"),
    ("T5", SIZE, "sum(len(bucket) for bucket in self.buckets[1:])"),
    ("nothing changes: it visits buckets twice", "max(last + 1, self.tick - 7)", "last + 1"),
    ("no clause makes a cancel succeed, and it says that it did not", CANCELLED,
     "any([bucket.pop(task, None) is not None for bucket in self.buckets[:7]])"),
)  # fmt: skip

TRIED = "done = ready and self.force_complete(op)"
CALLED = '        say(m="enter", f="on_complete"'
EXPIRES = 'if self.force_complete(op):\n                    say(m="expired"'
CLAIM = "        if op in self.completed:\n            return False\n        self.completed.add"
GIVEN_BACK = "if op not in self.completed]\n        for op in given_back"
PURGATORY: tuple[Change, ...] = (
    ("O1", CLAIM, "        self.completed.add"),
    ("T4", f"        self.disarm(op)\n{CALLED}", CALLED),
    ("O2", TRIED, "done = self.force_complete(op)"),
    ("O4", TRIED, "done = ready"),
    ("O7", "            return True\n        for key in keys", "            pass\n        for key in keys"),
    ("O4", "for key in keys:\n            self.watchers", "for key in keys[:1]:\n            self.watchers"),
    ("P2", "for key in keys:\n            self.watchers", "for key in keys[:1]:\n            self.watchers"),
    ("T1", "(self.now_ns + delay_ns, op)", "(self.now_ns + delay_ns - 1, op)"),
    ("T2", "(self.now_ns + delay_ns, op)", "(self.now_ns + delay_ns + 1, op)"),
    ("O7", "return sum(self.try_complete(op) for", "return int(any([self.try_complete(op) for"),
    ("O7", "return sum(self.try_complete(op) for", "return -sum(self.try_complete(op) for"),
    ("T2", "self.timeouts[0][0] <= now_ns", "self.timeouts[0][0] < now_ns"),
    ("T4", "            if op in self.armed:\n", "            if True:\n"),
    ("O3", EXPIRES, f'say(m="expired", id=op)\n                {EXPIRES}'),
    ("P1", "        self.watchers = {key: ops for key, ops in live.items() if ops}\n", ""),
    ("T5", '"delayed": len(self.armed)', '"delayed": len(self.timeouts)'),
    ("P1", "self.watchers.pop(key, [])", "self.watchers.get(key, [])"),
    ("no clause says that a completed operation is not given back", GIVEN_BACK, "]\n        for op in given_back"),
    ("T4", "        for op in given_back:\n            self.disarm(op)\n", ""),
)  # fmt: skip

CHANGES = [("toy_wheel", change) for change in WHEEL] + [("toy_purgatory", change) for change in PURGATORY]


def found(program: str, change: Change, folder: Path) -> set[str]:
    """The clauses that the changed program breaks, over both manners of virtual time."""
    _, text, instead = change
    source = (EXAMPLES / f"{program}.py").read_text(encoding="utf-8")
    assert source.count(text) == 1, text
    changed = source.replace(text, instead)
    if "any([self" in instead:
        changed = changed.replace("[first:])", "[first:]]))")
    path = folder / "changed.py"
    path.write_text(changed, encoding="utf-8")
    subjects = command_subjects([sys.executable, "-I", "-S", str(path)], time="virtual")
    records = record_runs(subjects, folder, ops=200)
    assert [record.failure for record in records] == [None] * len(subjects)
    runs = check_files([record.path for record in records if record.path is not None]).runs
    return {name for run in runs for name, clause in run.clauses.items() if clause.violations}


@pytest.mark.parametrize(
    ("program", "change"),
    [
        pytest.param(*one, marks=() if number % 9 == 0 else pytest.mark.slow)
        for number, one in enumerate(CHANGES)
    ],
)
def test_every_change_is_found_or_has_its_reason(program: str, change: Change, tmp_path: Path) -> None:
    """Some of them in every run of the tests; what is not found is known by name."""
    broken = found(program, change, tmp_path)
    if " " in change[0]:
        assert broken == set(), "a limit that is none any more: say what finds it"
    else:
        assert change[0] in broken
