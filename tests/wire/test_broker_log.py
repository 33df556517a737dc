"""The log under the broker: against a list of sizes, and at its edges."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purgatorio.invariant import InvariantBroken
from purgatorio.threads import THREADS
from purgatorio_broker.error import BrokerError
from purgatorio_broker.log import EpochEnd, Log, OffsetMetadata

SEGMENT_BYTES = 30

steps = st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(1, 40), min_size=1, max_size=4)),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
    st.tuples(st.just("start"), st.integers(0, 12)),
    st.tuples(st.just("roll"), st.just(0)),
)


def played(program: list[tuple[str, object]]) -> tuple[Log, list[int], int]:
    """A log after this program; the sizes and the start that it must have."""
    log, start = Log(SEGMENT_BYTES, THREADS), 0
    sizes: list[int] = []
    for action, value in program:
        if action == "append" and isinstance(value, list):
            assert log.append(value, 1) == len(sizes)
            sizes += value
        elif action == "truncate" and isinstance(value, int):
            log.truncate_to(value)
            del sizes[value:]
            start = min(start, len(sizes))
        elif action == "start" and isinstance(value, int):
            start = max(start, min(value, len(sizes)))
            log.raise_start(min(value, len(sizes)))
        else:
            log.roll()
        log.check()
    return log, sizes, start


@settings(max_examples=150, deadline=None)
@given(program=st.lists(steps, max_size=8), offset=st.integers(0, 12), max_bytes=st.integers(0, 50))
def test_a_log_is_a_list_of_sizes(program: list[tuple[str, object]], offset: int, max_bytes: int) -> None:
    """Whatever was done to it: its ends, what can be read from where, and how many bytes lie between."""
    log, sizes, start = played(program)
    assert (log.start(), log.end()) == (start, len(sizes))
    if not start <= offset <= len(sizes):
        with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
            log.read(offset, len(sizes), max_bytes, at_least_one=True)
        return
    read = log.read(offset, len(sizes), max_bytes, at_least_one=False)
    assert [record.size_bytes for record in read] == sizes[offset : offset + len(read)]
    assert sum(record.size_bytes for record in read) <= max_bytes
    assert len({record.segment_base for record in read}) <= 1
    for upto in range(offset, len(sizes) + 1):
        between = log.place(offset).bytes_until(log.place(upto))
        assert between is None or between == sum(sizes[offset:upto])
    one = log.read(offset, len(sizes), 0, at_least_one=True)
    assert [record.offset for record in one] == list(range(offset, len(sizes)))[:1]


def test_a_segment_is_full_before_it_is_rolled() -> None:
    """Records that fit stay together; one that is larger than a segment has one of its own."""
    log = Log(SEGMENT_BYTES, THREADS)
    log.append([10, 20, 1, 100, 1], 1)
    assert [log.place(offset).segment_base for offset in range(6)] == [0, 0, 2, 3, 4, 4]
    assert log.place(0).is_on_older_segment(log.place(2))
    assert log.place(0).bytes_until(log.place(2)) is None


def test_a_place_that_is_not_known_is_on_no_segment() -> None:
    """A bare offset is neither older nor any bytes away."""
    bare, placed = OffsetMetadata(5), OffsetMetadata(7, 0, 70)
    assert not bare.is_on_older_segment(placed)
    assert (bare.bytes_until(placed), placed.bytes_until(bare)) == (None, None)


def test_epochs_end_where_the_next_begins() -> None:
    """The largest epoch that is at most the asked one; none where the log begins later; never backwards."""
    log = Log(SEGMENT_BYTES, THREADS)
    log.append([1, 1], 3)
    log.append([1], 5)
    assert [log.end_of_epoch(epoch) for epoch in (2, 3, 4, 5, 9)] == [
        None, EpochEnd(3, 2), EpochEnd(3, 2), EpochEnd(5, 3), EpochEnd(5, 3),
    ]  # fmt: skip
    with pytest.raises(InvariantBroken, match="epoch 4"):
        log.append([1], 4)
