"""The request layer: one response for each request, whatever its partitions are."""

from __future__ import annotations

from collections import deque

from purgatorio_broker.error import Error
from purgatorio_broker.fetch_request import FetchParams, FetchPartition
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.request import FetchResponse, Gatekeeper, ProduceResponse, RequestLayer
from reference.broker_scene import P0, P1, Scene

SECRET = TopicPartition("secret", 0)
NOWHERE = TopicPartition("nowhere", 0)


class Connection:
    """A client in this process: what was sent to it, and whether it is open. Nothing is sent on a closed one."""

    def __init__(self) -> None:
        self._sent: deque[ProduceResponse | FetchResponse] = deque()
        self._closed = False

    def send(self, response: ProduceResponse | FetchResponse) -> None:
        if not self._closed:
            self._sent.append(response)

    def close(self) -> None:
        self._closed = True

    def is_closed(self) -> bool:
        return self._closed

    def receive(self) -> ProduceResponse | FetchResponse | None:
        """The next response; None where there is none yet."""
        return self._sent.popleft() if self._sent else None


def layer(scene: Scene) -> tuple[RequestLayer, Connection]:
    """A client that may not see one topic, of a broker that does not know another."""
    gatekeeper = Gatekeeper(
        may=lambda topic: topic != "secret",
        knows=lambda partition: partition.topic != "nowhere",
    )
    return RequestLayer(scene.manager, gatekeeper), Connection()


def produced(connection: Connection) -> ProduceResponse:
    """The response to a produce, and no other behind it."""
    response = connection.receive()
    assert isinstance(response, ProduceResponse)
    assert connection.receive() is None
    return response


def test_one_response_for_partitions_of_all_kinds() -> None:
    """B801: refused ones wait for the others, and the response has all, in the order of the request."""
    scene = Scene().leads(P0)
    requests, connection = layer(scene)
    batches = {SECRET: (10,), P0: (10,), NOWHERE: (10,), P1: ()}
    requests.produce(connection, 30, -1, batches)
    assert connection.receive() is None
    for follower in (1, 2):
        scene.follower(follower, P0, 1)
    errors = {partition: result.error for partition, result in produced(connection).results.items()}
    assert errors == {
        SECRET: Error.TOPIC_AUTHORIZATION_FAILED,
        P0: Error.NONE,
        NOWHERE: Error.UNKNOWN_TOPIC_OR_PARTITION,
        P1: Error.INVALID_RECORD,
    }
    assert list(errors) == list(batches)


def test_a_request_without_a_partition_to_ask_for_is_answered_at_once() -> None:
    """B802: nothing is left to wait for."""
    requests, connection = layer(Scene())
    requests.produce(connection, 30, -1, {SECRET: (10,)})
    assert produced(connection).results[SECRET].error is Error.TOPIC_AUTHORIZATION_FAILED
    requests.fetch(connection, FetchParams(30, 1, 1000), {SECRET: FetchPartition(0, 10)})
    assert isinstance(connection.receive(), FetchResponse)


def test_acks_0_is_answered_by_silence_or_by_the_end() -> None:
    """B803: no response; an error closes the connection."""
    scene = Scene().leads(P0)
    requests, connection = layer(scene)
    requests.produce(connection, 30, 0, {P0: (10,)})
    assert (connection.receive(), connection.is_closed()) == (None, False)
    requests.produce(connection, 30, 0, {P0: (10,), NOWHERE: (10,)})
    assert (connection.receive(), connection.is_closed()) == (None, True)
    requests.produce(connection, 30, 1, {P0: (10,)})
    assert connection.receive() is None


def test_what_a_request_made_ready_is_complete_when_it_returns() -> None:
    """B805: a follower's fetch lets the producer go, before the follower's own request has been left."""
    scene = Scene(min_isr=1).leads(P0, isr=(0, 1))
    requests, connection = layer(scene)
    requests.produce(connection, 30, -1, {P0: (10,)})
    other = Connection()
    params = FetchParams(500, 1, 1000, replica_id=1)
    requests.fetch(other, params, {P0: FetchPartition(1, 1000)})
    assert produced(connection).results[P0].error is Error.NONE
    assert other.receive() is None


def test_a_fetch_merges_as_well() -> None:
    """B806: it waits for what is there, and names what is refused."""
    scene = Scene()
    scene.manager.become_leader(P0, 1, (0,), (0,))
    requests, connection = layer(scene)
    wanted = {NOWHERE: FetchPartition(0, 10), P0: FetchPartition(0, 10)}
    requests.fetch(connection, FetchParams(30, 1, 1000), wanted)
    assert connection.receive() is None
    requests.produce(Connection(), 30, 1, {P0: (10,)})
    response = connection.receive()
    assert isinstance(response, FetchResponse)
    assert [result.error for result in response.results.values()] == [
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.NONE,
    ]
