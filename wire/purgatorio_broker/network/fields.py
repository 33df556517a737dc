"""One way to read a request in all its versions.

kio has a class for each version of each message. The code that handles a request should not depend on the version. So
it reads the fields by name, with a default for fields that the version does not have. (Responses are mappings of
names. `purgatorio_wire.client.message.entity_of` takes the fields that the version of the response has.)
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition

Values: TypeAlias = Mapping[str, object]
"""The fields of an answer, or of an entry of one, of all its versions. Times are in ms and their names end so."""

_MS: Final = timedelta(milliseconds=1)


class Fields:
    """The fields of a request, or of an entry of one. What this version lacks, or is null, is `default`."""

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
        """An id; None also where it is the id of nothing."""
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

    def partitions(self, topics: str, name: str, numbers: str) -> list[TopicPartition]:
        """The partitions of these topics, each given by its number alone."""
        return [
            TopicPartition(topic.text(name), number)
            for topic in self.entries(topics)
            for number in topic.numbers(numbers)
        ]

    def _get(self, name: str) -> object:
        found: object = getattr(self._entity, name, None)
        return found

    def _all(self, name: str) -> tuple[object, ...]:
        found = self._get(name)
        return found if isinstance(found, tuple) else ()


def code_of(error: Error) -> int:
    """The error's number in the protocol."""
    return ErrorCode[error.value.lower()].value


def by_topic(
    said: Mapping[TopicPartition, Values], name: str = "name", partitions: str = "partitions",
    number: str = "partition_index",
) -> list[Values]:  # fmt: skip
    """What an answer says of partitions, under their topics."""
    found: dict[str, list[Values]] = {}
    for one, values in said.items():
        found.setdefault(one.topic, []).append({number: one.partition, **values})
    return [{name: topic, partitions: entries} for topic, entries in found.items()]
