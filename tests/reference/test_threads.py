"""The seam's binding to threads: each primitive keeps what `purgatorio.sync` says of it."""

import threading
from functools import partial

import pytest

from purgatorio import THREADS, threads
from purgatorio.sync import AtomicRef, Condition, ExecutorClosed, Lock, SharedQueue
from purgatorio.threads_rwlock import ThreadReadWriteLock
from reference.waiting import elsewhere, free, together


def test_a_walker_on_an_unlinked_node_reaches_all_behind_it() -> None:
    """Weak consistency: the node under the walker and those next to it go; everything that stays is still shown."""
    queue: SharedQueue[int] = THREADS.queue()
    for number in range(6):
        queue.append(number)
    nodes = list(queue.nodes())
    walk = queue.nodes()
    shown = [next(walk).item, next(walk).item]
    for gone in (1, 2, 3):
        assert queue.remove(nodes[gone])
    queue.append(6)
    shown += [node.item for node in walk]
    assert shown == [0, 1, 4, 5, 6]
    assert not queue.remove(nodes[2])
    assert queue.size() == 4


def test_a_queue_empties_from_its_head_and_refills() -> None:
    queue: SharedQueue[str] = THREADS.queue()
    assert queue.is_empty()
    queue.append("a")
    queue.append("a")
    assert [queue.poll(), queue.poll(), queue.poll()] == ["a", "a", None]
    queue.append("b")
    assert [node.item for node in queue.nodes()] == ["b"]


def test_a_node_is_removed_by_one_of_many() -> None:
    """Of eight threads that remove every node, exactly one gets each: else completions would be counted twice."""
    queue: SharedQueue[int] = THREADS.queue()
    for number in range(500):
        queue.append(number)
    nodes = list(queue.nodes())
    won = [0] * 8

    def remove_all(me: int) -> None:
        for node in nodes:
            won[me] += queue.remove(node)

    together([partial(remove_all, me) for me in range(8)])
    assert sum(won) == 500
    assert queue.is_empty()


@pytest.fixture(params=[True, False], ids=["as-it-is", "without-gil"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seam also takes this interpreter for one without the GIL."""
    monkeypatch.setattr(threads, "_GIL", request.param and threads._GIL)


@pytest.mark.usefixtures("either_way")
def test_atomics_lose_no_update() -> None:
    """Adding from eight threads, and one winner of a compare-and-set."""
    number, flag = THREADS.atomic_int(), THREADS.atomic_flag()

    def work() -> bool:
        for _ in range(2_000):
            number.add(1)
        return flag.compare_and_set(False, True)

    wins = together([work] * 8)
    assert number.get() == 16_000
    assert sum(wins) == 1
    assert flag.get_and_set(False)
    assert not flag.get_and_set(False)


@pytest.mark.usefixtures("either_way")
def test_an_exchange_gives_each_value_to_one() -> None:
    """Eight threads store values and take the old values. No value is compared with another."""
    ref: AtomicRef[Incomparable] = THREADS.atomic_ref(Incomparable())
    put = [[ref.get()], *([Incomparable() for _ in range(2_000)] for _ in range(8))]
    taken: list[list[Incomparable]] = [[] for _ in range(8)]

    def work(me: int) -> None:
        taken[me] += [ref.get_and_set(value) for value in put[1 + me]]

    together([partial(work, me) for me in range(8)])
    seen = [id(value) for values in (*taken, [ref.get()]) for value in values]
    assert sorted(seen) == sorted(id(value) for values in put for value in values)


class Incomparable:
    """As tasks are, and everything else that an atomic may hold."""

    def __lt__(self, other: object) -> bool:
        raise AssertionError("two values of an atomic are compared")

    __gt__ = __le__ = __ge__ = __lt__


def test_an_executor_runs_in_order_survives_and_ends() -> None:
    """One thread, in order. After the shutdown, accepted actions still run, and new ones are refused."""
    executor = THREADS.executor("order")
    ran: list[int] = []
    go_on = threading.Event()
    executor.submit(partial(_wait_for, go_on))
    executor.submit(lambda: ran.append(1 // 0))
    for number in range(3):
        executor.submit(partial(ran.append, number))
    executor.submit(lambda: ran.append(10 + executor.is_current()))
    executor.shutdown()
    with pytest.raises(ExecutorClosed):
        executor.submit(lambda: None)
    assert not executor.await_termination(0)
    go_on.set()
    assert executor.await_termination(30_000)
    assert ran == [0, 1, 2, 11]
    assert not executor.is_current()


def test_shutdown_now_drops_tasks_that_have_not_started() -> None:
    """And says how many; an executor that never ran anything ends at once."""
    executor = THREADS.executor("drop")
    inside, go_on = threading.Event(), threading.Event()

    def block() -> None:
        inside.set()
        go_on.wait(30)

    executor.submit(block)
    assert inside.wait(30)
    executor.submit(lambda: None)
    executor.submit(lambda: None)
    assert executor.shutdown_now() == 2
    go_on.set()
    assert executor.await_termination(30_000)
    idle = THREADS.executor("idle")
    idle.shutdown()
    assert idle.await_termination(0)


class TestReadWriteLock:
    """Readers together, a writer alone, both re-entrant."""

    def test_readers_share_and_a_writer_does_not(self) -> None:
        """Seen from another thread, which must not block to ask."""
        lock = THREADS.read_write_lock()
        with lock.read:
            assert elsewhere(lambda: free(lock.read))
            assert not elsewhere(lambda: free(lock.write))
        with lock.write:
            assert not elsewhere(lambda: free(lock.read))
            with lock.read, lock.write:
                pass
        assert elsewhere(lambda: free(lock.write))

    def test_a_waiting_writer_holds_back_new_readers_only(self) -> None:
        """A thread that reads may read again, else it and the writer would wait for each other."""
        lock = ThreadReadWriteLock()
        written = threading.Event()

        def write() -> None:
            with lock.write:
                written.set()

        with lock.read:
            writer = threading.Thread(target=write)
            writer.start()
            while elsewhere(lambda: free(lock.read)):
                pass
            with lock.read:
                assert not written.is_set()
        assert written.wait(30)
        writer.join()

    def test_misuse_is_an_error_not_a_hang(self) -> None:
        """A reader that wants to write would wait for itself; a lock that is not held cannot be released."""
        lock = THREADS.read_write_lock()
        with lock.read, pytest.raises(RuntimeError):
            lock.write.acquire()
        for side in (lock.read, lock.write):
            with pytest.raises(RuntimeError):
                side.release()


def test_a_foreign_lock_has_no_condition() -> None:
    with pytest.raises(TypeError):
        THREADS.condition(THREADS.read_write_lock().read)


def test_a_wait_ends_by_notice_or_time() -> None:
    """True by notice, False by time; a time beyond what the platform knows is cut, not an error."""
    lock = THREADS.lock()
    condition = THREADS.condition(lock)
    with lock:
        assert not condition.wait(0)
        notifier = threading.Thread(target=lambda: notify(lock, condition))
        notifier.start()
        assert condition.wait(2**70)
    notifier.join()


def _wait_for(event: threading.Event) -> None:
    assert event.wait(30)


def notify(lock: Lock, condition: Condition) -> None:
    with lock:
        condition.notify_all()
