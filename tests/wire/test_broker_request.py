"""The request layer: one response for each request, whatever its partitions are."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from purgatorio_broker.delayed_produce import ProduceResult
from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition, FetchResult
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.request import Gatekeeper, RequestLayer
from wire.broker_scene import P0, P1, Scene

SECRET = TopicPartition("secret", 0)
NOWHERE = TopicPartition("nowhere", 0)


class Client:
    """Asks, and keeps what it was sent, and whether its connection is open. Nothing is sent on a closed one."""

    def __init__(self, layer: RequestLayer) -> None:
        self.layer = layer
        self.sent: deque[Mapping[TopicPartition, ProduceResult] | Mapping[TopicPartition, FetchResult]] = (
            deque()
        )
        self.closed = False

    def produce(self, timeout_ms: int, acks: int, batches: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        self.layer.produce(timeout_ms, acks, batches, self._send, self._close)

    def fetch(self, params: FetchParams, partitions: Mapping[TopicPartition, FetchPartition]) -> None:
        self.layer.fetch(params, partitions, self._send)

    def errors(self) -> dict[TopicPartition, Error] | None:
        """By partition, of the next response; None where there is none yet."""
        return {p: result.error for p, result in self.sent.popleft().items()} if self.sent else None

    def _send(
        self, results: Mapping[TopicPartition, ProduceResult] | Mapping[TopicPartition, FetchResult]
    ) -> None:
        if not self.closed:
            self.sent.append(results)

    def _close(self) -> None:
        self.closed = True


def client(scene: Scene) -> Client:
    """It may not see one topic, of a broker that does not know another."""
    gatekeeper = Gatekeeper(
        may=lambda topic: topic != "secret",
        knows=lambda partition: partition.topic != "nowhere",
    )
    return Client(RequestLayer(scene.manager, gatekeeper))


def test_one_response_for_partitions_of_all_kinds() -> None:
    """B801: refused ones wait for the others, and the response has all, in the order of the request."""
    scene = Scene().leads(P0)
    asks = client(scene)
    batches = {SECRET: (10,), P0: (10,), NOWHERE: (10,), P1: ()}
    asks.produce(30, -1, batches)
    assert asks.errors() is None
    for follower in (1, 2):
        scene.follower(follower, P0, 1)
    errors = asks.errors()
    assert errors == {
        SECRET: Error.TOPIC_AUTHORIZATION_FAILED,
        P0: Error.NONE,
        NOWHERE: Error.UNKNOWN_TOPIC_OR_PARTITION,
        P1: Error.INVALID_RECORD,
    }
    assert list(errors) == list(batches)
    assert asks.errors() is None


def test_a_request_without_a_partition_to_ask_for_is_answered_at_once() -> None:
    """B802: nothing is left to wait for."""
    asks = client(Scene())
    asks.produce(30, -1, {SECRET: (10,)})
    assert asks.errors() == {SECRET: Error.TOPIC_AUTHORIZATION_FAILED}
    asks.fetch(FetchParams(30, 1, 1000), {SECRET: FetchPartition(0, 10)})
    assert asks.errors() == {SECRET: Error.TOPIC_AUTHORIZATION_FAILED}


def test_acks_0_is_answered_by_silence_or_by_the_end() -> None:
    """B803: no response; an error closes the connection."""
    asks = client(Scene().leads(P0))
    asks.produce(30, 0, {P0: (10,)})
    assert (asks.errors(), asks.closed) == (None, False)
    asks.produce(30, 0, {P0: (10,), NOWHERE: (10,)})
    assert (asks.errors(), asks.closed) == (None, True)
    asks.produce(30, 1, {P0: (10,)})
    assert asks.errors() is None


def test_what_a_request_made_ready_is_complete_when_it_returns() -> None:
    """B805: a follower's fetch lets the producer go, before the follower's own request has been left."""
    asks = client(Scene(min_isr=1).leads(P0, isr=(0, 1)))
    asks.produce(30, -1, {P0: (10,)})
    other = Client(asks.layer)
    other.fetch(FetchParams(500, 1, 1000, replica_id=1), {P0: FetchPartition(1, 1000)})
    assert asks.errors() == {P0: Error.NONE}
    assert other.errors() is None


def test_a_fetch_merges_as_well() -> None:
    """B806: it waits for what is there, and names what is refused."""
    scene = Scene()
    scene.manager.become_leader(P0, 1, (0,), (0,))
    asks = client(scene)
    asks.fetch(FetchParams(30, 1, 1000), {NOWHERE: FetchPartition(0, 10), P0: FetchPartition(0, 10)})
    assert asks.errors() is None
    Client(asks.layer).produce(30, 1, {P0: (10,)})
    errors = asks.errors()
    assert errors is not None
    assert list(errors.items()) == [(NOWHERE, Error.UNKNOWN_TOPIC_OR_PARTITION), (P0, Error.NONE)]
