"""Known bugs of concrete operations, and of the purgatory as the broker suffers from them; two of our own."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from mutants.reference import MUTANTS
from mutants.reference.broker_operations import BROKER_MUTANTS
from mutants.reference.mutant import Mutant
from purgatorio.delayed.action_queue import ActionQueue
from purgatorio_broker.delayed_fetch import DelayedFetch
from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_stress.mutant.patch import Patch, edited, patched
from wire.broker_days import DAYS, Broker, lived
from wire.broker_scene import P0, Scene

Fetched = Mapping[TopicPartition, FetchResult]


class Broken(Exception):
    """The exception of a callback."""


def every_action_runs() -> None:
    queue = ActionQueue()
    ran: list[int] = []

    def raises() -> None:
        raise Broken

    queue.add(raises)
    queue.add(lambda: ran.append(1))
    try:
        queue.run_all()
    except Broken:
        ran.append(-1)
    assert ran == [1], "the second was lost"


def a_chain_of_completions_is_a_loop() -> None:
    """300 consumers wait at one offset each; every answer appends the record that the next one waits for."""
    scene = Scene(min_isr=1, segment_bytes=1_000_000)
    scene.manager.become_leader(P0, 1, (0,), (0,))
    answered: list[int] = []

    def answer(number: int) -> Callable[[Fetched], None]:
        def append(results: Fetched) -> None:
            answered.append(number)
            scene.manager.append_records(0, 1, {P0: (10,)}, lambda results: None)

        return append

    for number in range(300):
        params = FetchParams(1000, 10 * (number + 1), 10_000)
        scene.manager.fetch_records(params, {P0: FetchPartition(0, 10_000)}, answer(number))
    try:
        scene.append(P0, 10)
    except RecursionError:
        answered.append(-1)
    assert answered == list(range(300)), "as deep as the chain is long"


ASKS_AGAIN = edited(DelayedParts, "decide", "not status.undecided", "False")
THROTTLED = " and not self._source.is_throttled(status.partition, self._params)"
ROWS: dict[str, tuple[tuple[Patch, ...], Callable[[], None]]] = {
    "36": (MUTANTS[36].patches, a_chain_of_completions_is_a_loop),
    "37": (MUTANTS[37].patches, every_action_runs),
    "asks again": ((ASKS_AGAIN,), partial(lived, Broker, "a_decided_partition_keeps_its_answer")),
    "throttle forgotten": (
        (edited(DelayedFetch, "_bytes_available", THROTTLED, ""),),
        partial(lived, Broker, "a_throttled_follower_waits_before_an_older_segment"),
    ),
}  # fmt: skip
"""A mutant, and the scenario that tells it from the code. The throttle is of the family of 97 (KAFKA-6937)."""


@pytest.mark.parametrize("name", ROWS)
def test_the_code_passes_and_the_mutant_is_killed(name: str) -> None:
    """A scenario that both pass would show nothing, and one that both fail neither."""
    patches, scenario = ROWS[name]
    scenario()
    with patched(patches), pytest.raises(AssertionError):
        scenario()


@pytest.mark.parametrize("mutant", BROKER_MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_a_known_bug_of_an_operation_fails_its_test(mutant: Mutant) -> None:
    file, _, name = mutant.scenario.partition("::")
    day = DAYS.get(Path(file).stem)
    test: Callable[[], None] = (
        partial(lived, day, name) if day else getattr(import_module(f"wire.{Path(file).stem}"), name)
    )
    test()
    refused = RuntimeError  # a false True of `try_complete`
    with mutant.applied(), pytest.raises((AssertionError, refused)):
        test()
