"""Reads the fields of a request in the same way in all its versions.

kio has a class for each version of each message. The functions here read a field by name, with a default if the version
does not have the field. (A response is a mapping from field names to values. `purgatorio_wire.client.message.entity_of`
takes the fields that the version has.)
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition

Values: TypeAlias = Mapping[str, object]
"""The fields of a response, or of an entry of it, in all versions. The names of times end with `_ms`."""

_MS: Final = timedelta(milliseconds=1)
_TOPIC: Final = "name", "topic"
_PARTITIONS: Final = (
    "partitions", "partition_data", "partition_indexes", "partition_responses", "partition_result",
    "results_by_partition",
)  # fmt: skip
_NUMBER: Final = "partition_index", "partition", "index", "partition_id"
"""The names of the fields for a topic's name, its partitions, and the number of a partition."""


class Fields:
    """The fields of a request or of a part of a request. A field that is null, or not in this version, is `default`."""

    def __init__(self, entity: object) -> None:
        self._entity = entity

    def has(self, name: str) -> bool:
        """Whether the version has the field, and it is not null."""
        return self._get(name) is not None

    def number(self, name: str, default: int = 0) -> int:
        found = self._get(name)
        return int(found) if isinstance(found, int) else default

    def ms(self, name: str, default: int = 0) -> int:
        found = self._get(name)
        return found // _MS if isinstance(found, timedelta) else default

    def real(self, name: str) -> float:
        found = self._get(name)
        return float(found) if isinstance(found, float) else 0.0

    def text(self, name: str, default: str = "") -> str:
        found = self._get(name)
        return found if isinstance(found, str) else default

    def data(self, name: str) -> bytes:
        found = self._get(name)
        return found if isinstance(found, bytes) else b""

    def uuid(self, name: str) -> UUID | None:
        """An id; None also for the zero id."""
        found = self._get(name)
        return found if isinstance(found, UUID) else None

    def numbers(self, name: str) -> list[int]:
        return [one for one in self._all(name) if isinstance(one, int)]

    def texts(self, name: str) -> list[str]:
        return [one for one in self._all(name) if isinstance(one, str)]

    def entry(self, name: str) -> "Fields":
        return Fields(self._get(name))

    def entries(self, name: str) -> "list[Fields]":
        return [Fields(one) for one in self._all(name)]

    def partitions(
        self, topics: str, named: Callable[[UUID | None], str | None] = lambda topic_id: None
    ) -> "list[NamedPart]":
        """The partitions of these topics. A partition is an entry, or only a number. `named` finds the topic of an
        id."""
        found: list[NamedPart] = []
        for topic in self.entries(topics):
            name, topic_id = topic._first(_TOPIC), topic.uuid("topic_id")
            of = name if isinstance(name, str) else named(topic_id)
            entries = topic._first(_PARTITIONS)
            for entry in map(Fields, entries if isinstance(entries, tuple) else ()):
                number = entry._first(_NUMBER, entry._entity)
                found.append(NamedPart(of, number if isinstance(number, int) else 0, topic_id, entry))
        return found

    def _first(self, names: tuple[str, ...], default: object = None) -> object:
        return next((found for name in names if (found := self._get(name)) is not None), default)

    def _get(self, name: str) -> object:
        found: object = getattr(self._entity, name, None)
        return found

    def _all(self, name: str) -> tuple[object, ...]:
        found = self._get(name)
        return found if isinstance(found, tuple) else ()


NOTHING: Final = Fields(None)


class NamedPart(NamedTuple):
    """A partition that a request names. `topic`: None if it gives an id that is unknown."""

    topic: str | None
    partition: int
    topic_id: UUID | None = None
    fields: Fields = NOTHING

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic or "", self.partition)


def code_of(error: Error) -> int:
    """The error's number in the protocol."""
    return ErrorCode[error.value.lower()].value


def grouped(told: Iterable[tuple[NamedPart | TopicPartition, Values]]) -> list[Values]:
    """The partitions of an answer, grouped by topic. A topic has its name and its id, if they are known."""
    topics: dict[tuple[str | None, UUID | None], list[Values]] = {}
    for one, values in told:
        topic_id = one.topic_id if isinstance(one, NamedPart) else None
        entry = {**dict.fromkeys(_NUMBER, one.partition), **values}
        topics.setdefault((one.topic, topic_id), []).append(entry)
    return [
        {**dict.fromkeys(_TOPIC, topic or ""), "topic_id": topic_id, **dict.fromkeys(_PARTITIONS, entries)}
        for (topic, topic_id), entries in topics.items()
    ]
