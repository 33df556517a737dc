"""The benchmark of timers: its candidates agree, its method pairs rounds, and what must fail does."""

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.candidate import Candidate, Entry
from benchmarks.delays import DISTRIBUTIONS, delays
from benchmarks.edges import HerdWorkload, SparseWorkload
from benchmarks.figures import figures
from benchmarks.grid import GridWorkload
from benchmarks.guard import GUARDS, Guard, bootstrap, check_guard
from benchmarks.heap_peers import IntHeap, TupleHeap
from benchmarks.instructions import count_instructions, no_valgrind
from benchmarks.observe import Play, bytes_per_timer, tick_values
from benchmarks.registry import ENTRIES, HONEST_BASELINE
from benchmarks.request import RequestRate, RequestWorkload, request_plan
from benchmarks.rounds import eligible, measure, rotated
from benchmarks.suite import IDS, suite
from benchmarks.timer_bench import run_timer_bench
from benchmarks.witness import Collector, agree, comparable
from benchmarks.workload import Disagreement, Stopwatch, Workload
from purgatorio_spec.verdict import Verdict

HERE = [entry for entry in ENTRIES if entry.outside is None and entry.missing() is None]


def entry(name: str) -> Entry:
    return next(one for one in ENTRIES if one.name == name)


@pytest.mark.parametrize("planned", list(suite("quick")), ids=lambda planned: " ".join(planned.ids))
def test_all_candidates_fire_the_same_timers(planned: object) -> None:
    workload: Workload = planned.make()  # type: ignore[attr-defined]  # pytest's parameters have no type
    assert agree(workload.small(), comparable(HERE)) > 0


class Forgetful(IntHeap):
    """Fires one of a hundred cancelled timers."""

    def cancel(self, key: int) -> None:
        if key % 100:
            super().cancel(key)


class Late(IntHeap):
    """Fires a millisecond late."""

    def advance(self, now_ms: int) -> None:
        super().advance(now_ms - 1)
        self._now_ms = now_ms


@pytest.mark.parametrize(("broken", "said"), [(Forgetful, "odd fired"), (Late, "asks again")])
def test_a_candidate_that_disagrees_is_found(broken: Callable[[], Candidate], said: str) -> None:
    """The twin: a cancelled timer that fires, a timer that is not there when it asked to be woken."""
    odd = replace(entry(HONEST_BASELINE), name="odd", make=broken)
    workload = RequestWorkload("K1", RequestRate(2_000, 20, 60, 0.2))
    with pytest.raises(Disagreement, match=said):
        measure(workload, [entry("heapq"), odd], 1)


def test_a_run_has_every_candidate_and_ratios_of_ours() -> None:
    """The shape of a figure, with the baseline for each of our timers."""
    bench = run_timer_bench("quick", HERE, ("K1", "U1"))
    rows = [figure.row() for figure in bench.figures]
    assert {row["id"] for row in rows} == {"K1", "U1", "U2", "U4"}
    assert {row["workload"] for row in rows if row["id"] == "U1"} == set(DISTRIBUTIONS) - {"log-uniform-year"}
    for figure in bench.figures:
        assert (HONEST_BASELINE in figure.ratios) == figure.ours
        assert figure.ns_low <= figure.ns <= figure.ns_high
    assert bench.skipped["uvloop"]


def test_an_unknown_workload_is_refused() -> None:
    with pytest.raises(ValueError, match="no such workload: K9; there are K1"):
        run_timer_bench("quick", HERE, ("K9",))


def test_orders_rotate_and_reverse() -> None:
    """No candidate always follows the same one."""
    assert rotated("abc", 4) == [list("abc"), list("acb"), list("cab"), list("cba")]


def test_ratios_are_of_the_same_round() -> None:
    """And a candidate that is marked slow takes part in the first rounds only, paired by round all the same."""
    slow = replace(entry("heapq"), slow=True)
    measured = measure(HerdWorkload(200), [slow, entry(HONEST_BASELINE)], 3, long=True)
    ratio = measured.ratio(HONEST_BASELINE, "heapq", "add")
    assert ratio is not None
    assert ratio.rounds == 2
    assert len(measured.taken(HONEST_BASELINE, "add")) == 3
    assert ratio.low <= ratio.median <= ratio.high
    assert not figures(measured)[0].ratios, "a peer has no ratio of its own"


def test_a_candidate_that_cannot_take_part_is_skipped_with_a_reason() -> None:
    """A package that is not there, a clock that cannot be set, a cancel that searches."""
    absent = replace(entry("heapq"), name="absent", module="no_such_package")
    chosen, skipped = eligible(HerdWorkload(2_000), [absent, entry("uvloop"), entry("sched"), entry("heapq")])
    assert [one.name for one in chosen] == ["heapq"]
    assert "pip install 'purgatorio[bench]'" in skipped["absent"]
    assert set(skipped) == {"absent", "uvloop", "sched"}


def test_inputs_are_the_same_every_time() -> None:
    for name in DISTRIBUTIONS:
        assert delays(name, 50, 1) == delays(name, 50, 1)
        assert min(delays(name, 500, 2)) >= 1
    arrivals, completions = request_plan(RequestRate(10_000, 20, 60, 1.0), 1)
    assert 9_000 < sum(arrivals) < 11_000
    assert len({number for numbers in completions for number in numbers}) == sum(map(len, completions))


def test_a_heap_wakes_once_a_timer_and_a_wheel_more_often() -> None:
    sparse = SparseWorkload(100)
    assert sparse.wakes_per_timer(TupleHeap) <= 1
    assert sparse.wakes_per_timer(entry("faithful").make) > 1


def test_the_collector_is_left_as_it_was() -> None:
    """Frozen inputs are thawed, also after a failure."""
    before = gc.get_freeze_count()

    def fail(workload: object) -> dict[str, float]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure(GridWorkload("uniform", 10, 1), [replace(entry("heapq"), virtual=False, outside=fail)], 1)
    measure(HerdWorkload(10), [entry("heapq")], 1)
    assert gc.get_freeze_count() <= before


def test_bytes_are_measured_in_a_fresh_process() -> None:
    """A few dozen bytes at least; nothing where the system does not tell."""
    for seen in bytes_per_timer(20_000, [entry(HONEST_BASELINE)]):
        assert 30 < seen.values["bytes_per_timer"] < 400


class Dear(TupleHeap):
    """Each cancel searches the whole heap, as a list without handles would have to."""

    def cancel(self, handle: Any) -> None:
        for _, _, other in self._heap:
            if other is handle:
                super().cancel(other)
                return


def _few() -> Workload:
    return RequestWorkload("K2", RequestRate(10_000, 200, 500, 0.2))


def test_the_guard_passes_ours_and_fails_its_twin() -> None:
    """A wheel that is not many times as fast as the faithful one would fail; a heap with a linear cancel does."""
    guard = Guard("heapq", "heapq-lazy", "request", 0.3, _few)
    pair = [entry("heapq"), entry("heapq-lazy")]
    assert check_guard(guard, pair, 7).verdict is not Verdict.VIOLATED
    twin = [replace(entry("heapq"), make=Dear), entry("heapq-lazy")]
    assert check_guard(guard, twin, 7).verdict is Verdict.VIOLATED


def test_the_guards_hold() -> None:
    """The guards of CI, on the builds of this machine. UNKNOWN (a busy machine) fails no test."""
    found = [check_guard(guard, HERE, 5) for guard in GUARDS]
    assert not [one for one in found if one.verdict is Verdict.VIOLATED]
    assert [one for one in found if one.verdict is not Verdict.SKIPPED]


@pytest.mark.slow
@pytest.mark.skipif(no_valgrind() is not None, reason="there is no valgrind")
def test_instructions_repeat_and_tell_the_wheels_apart() -> None:
    """The same count twice, to a few in a thousand, and a fraction of the faithful wheel's."""
    first, again = count_instructions("interpreted"), count_instructions("interpreted")
    assert abs(first / again - 1) < 0.005
    assert count_instructions("faithful") > 3 * first


def test_a_guard_whose_subject_is_not_built_is_skipped() -> None:
    guard = Guard("compiled", "heapq", "request", 1.0, _few)
    assert check_guard(guard, [entry("heapq")], 3).verdict is Verdict.SKIPPED


def test_the_interval_holds_the_median() -> None:
    low, high = bootstrap([1.0, 2.0, 3.0, 4.0, 5.0] * 3)
    assert low <= 3.0 <= high
    assert bootstrap([2.0] * 9) == (2.0, 2.0)


def test_every_id_is_played_at_the_standard_scale() -> None:
    """X4 and X5 are looks at others and at a fill."""
    played = {which for planned in suite("standard") for which in planned.ids}
    assert played | {"X4", "X5"} == set(IDS)


def test_a_stopwatch_divides_by_operations() -> None:
    watch = Stopwatch()
    with watch.timing("nothing", 0):
        pass
    assert watch.ns() == {}


def test_a_stall_of_the_machine_is_no_worst_tick() -> None:
    """A tick that is long in one of three runs is caused by the machine. A tick that is long in all runs is caused
    by the timer. Pauses of the collector count in one column only."""
    quiet = [1_000] * 10
    stalled, slow = [*quiet[:9], 50_000_000], [*quiet[:4], 3_000_000, *quiet[5:]]
    paused = [*quiet[:7], 9_000_000, *quiet[8:]]
    assert _worst(quiet, stalled, quiet) == (0.001, 0.001)
    assert _worst(slow, slow, slow) == (3.0, 3.0)
    with_pauses = [Play(paused, quiet, 1, Collector()), Play(paused[::-1], quiet, 1, Collector())] * 2
    values = tick_values(with_pauses[:3])
    assert (values["worst_tick_ms"], values["worst_tick_apart_from_collector_ms"]) == (9.0, 0.001)


def _worst(*plays_ns: list[int]) -> tuple[float, float]:
    values = tick_values([Play(ticks, ticks, 1, Collector()) for ticks in plays_ns])
    return values["worst_tick_ms"], values["worst_tick_apart_from_collector_ms"]
