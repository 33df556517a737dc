"""Builds without the GIL: what the seam does differently there, and the harness on such an interpreter, where there is
one."""

import sys
import sysconfig
from typing import cast

import pytest

from program_text import python
from purgatorio import THREADS, threads
from purgatorio.lock import Lock, Mutex
from purgatorio.sync import AtomicFlag, AtomicInt, AtomicRef
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.harness.campaign import StressPlan, chosen, run_stress

FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
"""Built so. Whether the lock is off is what a test asks: skipped where it is on, it would hide that it came back."""


@pytest.fixture
def no_gil(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seam takes this interpreter for one without the lock."""
    monkeypatch.setattr(threads, "_GIL", False)


@pytest.fixture
def stripes_taken(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The atomics whose stripe was asked for, in order."""
    taken: list[object] = []
    stripe = threads._stripe

    def asked(holder: object) -> Mutex:
        taken.append(holder)
        return stripe(holder)

    monkeypatch.setattr(threads, "_stripe", asked)
    return taken


def use(flag: AtomicFlag, number: AtomicInt, ref: AtomicRef[str]) -> None:
    flag.set(True)
    number.set(2)
    ref.set("b")
    assert (flag.get(), number.get(), ref.get()) == (True, 2, "b")


def atomics() -> tuple[AtomicFlag, AtomicInt, AtomicRef[str]]:
    return THREADS.atomic_flag(), THREADS.atomic_int(), THREADS.atomic_ref("a")


@pytest.mark.usefixtures("no_gil")
def test_without_the_gil_every_use_of_an_atomic_is_ordered_by_its_stripe(stripes_taken: list[object]) -> None:
    """Reads and writes too: a lock is what CPython promises to order other memory by."""
    flag, number, ref = atomics()
    use(flag, number, ref)
    assert stripes_taken == [flag, number, ref] * 2


@pytest.mark.skipif(FREE_THREADED, reason="this interpreter was built without a GIL")
def test_with_the_gil_reads_and_writes_take_no_lock(stripes_taken: list[object]) -> None:
    """The twin: what costs nothing here must go on costing nothing."""
    use(*atomics())
    assert stripes_taken == []


@pytest.mark.usefixtures("no_gil")
def test_a_finalizer_may_use_the_atomic_that_held_it() -> None:
    """The old value is dropped outside of the stripe, which is not reentrant."""
    seen: list[object] = []

    class Holder:
        def __init__(self, ref: AtomicRef[object]) -> None:
            self.ref = ref

        def __del__(self) -> None:
            stripe = cast(Lock, threads._stripe(self.ref))
            if stripe.acquire(blocking=False):
                stripe.release()
                seen.append(self.ref.get())

    ref: AtomicRef[object] = THREADS.atomic_ref(None)
    ref.set(Holder(ref))
    ref.set("next")
    assert seen == ["next"]


def test_the_harness_needs_no_greenlet() -> None:
    """It turns the GIL on again in an interpreter that has none."""
    code = (
        "import sys; sys.modules['greenlet'] = None\n"
        "from purgatorio_stress.harness.campaign import StressPlan, chosen, run_stress\n"
        "plan = StressPlan(chosen(['two-events/pending-flag']), rounds=64, yields=False)\n"
        "print(run_stress(plan).tables[0].rounds)"
    )
    done = python(code, timeout=120)
    assert done.stdout.split() == ["64"], done.stderr


@pytest.mark.usefixtures("no_gil")
@pytest.mark.parametrize("name", ["two-events/pending-flag", "cancel-against-flush/pending-flag"])
def test_the_seam_without_the_gil_runs_the_protocols_that_need_it(name: str) -> None:
    """The two protocols that need an order across atomics, on the seam's other half; on this interpreter."""
    result = run_stress(StressPlan(chosen([name]), rounds=128, yields=True, record_every=1))
    assert result.verdict is Verdict.PASS, result.printed()


@pytest.mark.skipif(
    not FREE_THREADED, reason="needs a free-threaded CPython (3.13t or later); this interpreter has its GIL"
)
@pytest.mark.parametrize(("name", "dialect"), chosen())
def test_the_harness_runs_on_a_free_threaded_interpreter(name: str, dialect: str) -> None:
    """Unchanged, without yields: there threads really run at once."""
    result = run_stress(StressPlan([(name, dialect)], rounds=2_000, yields=False))
    assert result.verdict is Verdict.PASS, result.printed()
    assert result.tables[0].window_hit


@pytest.mark.skipif(
    not FREE_THREADED, reason="needs a free-threaded CPython (3.13t or later); this interpreter has its GIL"
)
def test_the_gil_stays_off() -> None:
    """An extension that does not declare itself brings the lock back, and with it a test of nothing."""
    assert not getattr(sys, "_is_gil_enabled", lambda: True)()
