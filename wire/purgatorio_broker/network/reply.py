"""`Reply`: the response to a request. Any thread may decide the response, and passes it to the connection's thread."""

from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock
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
    """The first call decides the response and returns True. Later calls have no effect and return False. No call
    blocks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._decided = False
        self._outcomes: SimpleQueue[Response] = SimpleQueue()

    def send(self, make: Make) -> bool:
        return self._decide(Response(make))

    def nothing(self) -> bool:
        return self._decide(NOTHING)

    def close(self) -> bool:
        """Close the connection instead of an answer."""
        return self._decide(CLOSE)

    def wait(self) -> Response:
        return self._outcomes.get()

    def _decide(self, outcome: Response) -> bool:
        with self._lock:
            if self._decided:
                return False
            self._decided = True
        self._outcomes.put(outcome)
        return True


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
