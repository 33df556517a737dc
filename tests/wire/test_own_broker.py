"""The project's own broker, driven over a socket: it keeps every promise, and its mutants do not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from purgatorio_spec.judge.result import RunResult
from purgatorio_spec.verdict import Verdict
from purgatorio_spec.wire.judge import judge_file
from purgatorio_spec.wire.record import Declared
from purgatorio_stress.socket_broker.running import Running
from purgatorio_stress.socket_broker.settings import Settings
from purgatorio_stress.wire.connection import Address
from purgatorio_stress.wire.plan import chosen
from purgatorio_stress.wire.session import Asked, record

DELAY_MS = 300
QUICK = (
    "acks",
    "ready-fetch",
    "sum-fetch",
    "topics",
    "delete-records",
    "order",
    "versions",
    "refusals",
    "sync-waits",
)


def driven(port: int, path: Path, *only: str) -> RunResult:
    """Drive the broker at this port, and judge the trace."""
    asked = Asked(
        Address("127.0.0.1", port),
        f"127.0.0.1:{port}",
        tuple(chosen(only)),
        Declared(initial_delay_ms=DELAY_MS),
        120,
    )
    asyncio.run(record(asked, path, lambda line: None))
    return judge_file(path)[1]


def test_quick_scenes_are_kept_with_occasions(tmp_path: Path) -> None:
    with Running(Settings(port=0, initial_delay_ms=DELAY_MS)) as broker:
        result = driven(broker.port, tmp_path / "wire.jsonl", *QUICK)
    broken = {name: one for name, one in result.clauses.items() if one.verdict is Verdict.VIOLATED}
    assert not broken
    for clause in ("X1", "X2", "X3", "F4", "F7", "P1", "P2", "P3", "A1", "A2", "D1", "G0", "G1", "G5", "G9"):
        assert result.clauses[clause].occasions, f"{clause}: {result.clauses[clause].reason}"


def test_unusual_settings_are_gone_round(tmp_path: Path) -> None:
    unusual = Settings(
        port=0, initial_delay_ms=DELAY_MS, min_in_sync=2, max_fetch_bytes=1024, max_connections=60
    )
    with Running(unusual) as broker:
        result = driven(broker.port, tmp_path / "wire.jsonl", "accumulating", "short-fetch", "acks", "cut")
    assert {name for name, one in result.clauses.items() if one.verdict is Verdict.VIOLATED} == set()
    assert result.clauses["F5"].occasions
    assert result.clauses["C1"].occasions


@pytest.mark.slow
def test_the_whole_plan_is_kept(tmp_path: Path) -> None:
    with Running(Settings(port=0, initial_delay_ms=DELAY_MS)) as broker:
        result = driven(broker.port, tmp_path / "wire.jsonl")
    broken = {name: one for name, one in result.clauses.items() if one.verdict is Verdict.VIOLATED}
    assert not broken
    without = [name for name, one in result.clauses.items() if not one.occasions]
    assert sorted(without) == ["F9", "P4", "P5", "P6"]  # they take two brokers
