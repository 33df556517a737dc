"""P4 of a purgatory whose adapter tells how many keys have a list, and of one that tells less."""

from __future__ import annotations

import pytest

from conformance.reference_adapters import NS_PER_MS, AnyPurgatory
from purgatorio.delayed.watchers import WatcherList
from purgatorio_conformance.suite import gated
from purgatorio_conformance.suite.contract import Promise
from purgatorio_conformance.suite.gated import PLAN, of_purgatory, play
from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict

PROMISE = Promise("locked", NS_PER_MS, early_ns=0, late_ns=0, purge_interval=0)


class Telling(AnyPurgatory):
    def gauges(self) -> tuple[int, int, int]:
        watched, delayed, *_ = super().gauges()
        return watched, delayed, sum(len(one._lists.get()) for one in self.purgatory._watcher_lists)


def judged(made: type[AnyPurgatory]) -> RunResult:
    return play(PLAN, of_purgatory(PROMISE, made)).result


def test_a_list_of_a_key_that_is_never_dropped_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its twins: it is dropped; nobody tells the keys, and then nothing is said of P4."""
    monkeypatch.setattr(gated, "_OPERATIONS", 60)
    assert "P4" not in judged(AnyPurgatory).clauses
    assert judged(Telling).clauses["P4"].verdict is Verdict.PASS
    monkeypatch.setattr(WatcherList, "remove_key_if_empty", lambda *_: None)
    broken = judged(Telling).clauses["P4"]
    assert (broken.verdict, list(broken.causes)) == (Verdict.VIOLATED, ["empty-lists"])
