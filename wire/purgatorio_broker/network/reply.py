"""`Reply`: the response to a request. Any thread may decide the response, and passes it to the connection's thread."""

from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Final

from purgatorio_broker.network.fields import Fields, Values

Make = Callable[[], Values]
"""Makes an answer; on the connection's thread, so that a large one costs no other thread anything."""


@dataclass(frozen=True, slots=True)
class Response:
    """The result of a request. `make`: None if nothing is sent. `close`: the connection ends."""

    make: Make | None
    close: bool = False


NOTHING: Final = Response(None)
CLOSE: Final = Response(None, close=True)


class Reply:
    """The first call decides the response, and later calls have no effect. No call blocks, but for `wait`, which is
    called once."""

    def __init__(self) -> None:
        self._outcomes: SimpleQueue[Response] = SimpleQueue()

    def send(self, make: Make) -> None:
        self._outcomes.put(Response(make))

    def nothing(self) -> None:
        self._outcomes.put(NOTHING)

    def close(self) -> None:
        """Close the connection instead of an answer."""
        self._outcomes.put(CLOSE)

    def wait(self) -> Response:
        return self._outcomes.get()


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is being handled, of one of the connections that are open."""

    version: int
    client: str
    fields: Fields
    reply: Reply
    connection: int = 0

    def answer(self, **values: object) -> None:
        self.reply.send(lambda: values)
