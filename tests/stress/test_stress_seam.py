"""The seam of a round uses real primitives, and must not change their behavior."""

import threading

import pytest

from purgatorio import ReaperTimer, SystemTimer
from purgatorio.sync import Sync
from purgatorio_stress.harness.noise import Noise, YieldPlan
from purgatorio_stress.harness.seam import NoisySync, OwnThread, RoundStopped, RoundSync, StopFlag


def seams() -> list[RoundSync]:
    """Plain, and with a thread of many yields."""
    noise = Noise()
    noise.enter(YieldPlan("seam", most=3))
    return [RoundSync(StopFlag()), NoisySync(StopFlag(), noise, frozenset({"link.next"}))]


@pytest.fixture(params=[0, 1], ids=["plain", "noisy"])
def sync(request: pytest.FixtureRequest) -> RoundSync:
    return seams()[int(request.param)]


def test_locks_keep_their_promises(sync: Sync) -> None:
    """Exclusion, re-entrance, readers and writers, and a condition of such a lock."""
    lock, rlock, both = sync.lock("l"), sync.rlock("r"), sync.read_write_lock("rw")
    with lock:
        assert not lock.acquire(blocking=False)
    with rlock, rlock:
        pass
    with both.read, both.read:
        pass
    with both.write, both.read:
        pass
    changed = sync.condition(rlock)
    with rlock:
        assert not changed.wait(0)
        changed.notify_all()


def test_held_locks_are_named_with_their_holders(sync: RoundSync) -> None:
    """The report of a stuck round. A plain lock does not know its holder."""
    free, plain, mine = sync.lock("free"), sync.lock("plain"), sync.rlock("mine")
    me = threading.current_thread().name
    with plain, mine:
        held = {one.lock: one.holder for one in sync.held()}
    assert set(held) == {"plain", "mine"}
    assert held["mine"] == me
    assert held["plain"] == (me if isinstance(sync, NoisySync) else "")
    assert sync.held() == []
    assert free.acquire(blocking=False)


def test_readers_are_all_named() -> None:
    """A read lock has many holders; one that lets go leaves the others."""
    sync = NoisySync(StopFlag(), Noise())
    both = sync.read_write_lock("rw")

    def read() -> None:
        both.read.acquire()

    reader = threading.Thread(target=read, name="other")
    with both.read:
        reader.start()
        reader.join()
        assert [one.holder for one in sync.held()] == [f"{threading.current_thread().name}, other"]
    assert [one.holder for one in sync.held()] == ["other"]


def test_a_run_that_is_given_up_breaks_marked_loops(sync: RoundSync) -> None:
    """And not as an `Exception`, which the code under test would contain."""
    stop = StopFlag()
    given_up = RoundSync(stop)
    given_up.loop_head()
    stop.asked = True
    with pytest.raises(RoundStopped):
        given_up.loop_head()
    assert not issubclass(RoundStopped, Exception)
    sync.loop_head()


def test_a_round_starts_no_thread_of_its_own(sync: RoundSync) -> None:
    """A reaper a round, for thousands of rounds, each polling for ever: the machine would be busy with nothing else."""
    with pytest.raises(OwnThread, match="reaper"):
        ReaperTimer("reaper", SystemTimer("t", sync=sync), sync=sync)


def test_a_thread_yields_by_its_plan_and_no_other_does() -> None:
    """At least once a round of as many calls as rounds have had; a thread without a plan passes."""
    noise, plan = Noise(), YieldPlan("yields", most=1)
    noise.point()
    assert plan.yields == 0
    noise.enter(plan)
    for _ in range(20):
        plan.begin()
        for _ in range(plan.span):
            noise.point()
    assert plan.yields == 20


def test_the_span_of_a_plan_grows_with_the_rounds() -> None:
    """Yields must reach the end of a long round, not only its beginning."""
    plan = YieldPlan("span", most=1)
    for _ in range(100):
        plan.pass_by()
    plan.begin()
    assert plan.span == 100
