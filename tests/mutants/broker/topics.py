"""Mutants of topics: creation, growth, deletion, and elections of leaders (A1 to A3, E1)."""

from collections.abc import Callable, Mapping
from typing import Final

from mutants.broker.client_visible_mutant import felt, handled, told, under_first_key
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network import topic_requests
from purgatorio_broker.network.node import Node
from purgatorio_stress.mutant.patch import wrapped

_GREW: Final[set[str]] = set()


def _grow_once(grow: Callable[..., None], self: Node, totals: Mapping[str, int]) -> None:
    grow(self, {name: total for name, total in totals.items() if name not in _GREW})
    _GREW.update(name for name, total in totals.items() if self.cluster.has(TopicPartition(name, total - 1)))


MUTANTS: Final = (
    *told("topics"),
    felt("first-topic-watched", "a request about two topics watches only the first topic", "A1 A2",
         under_first_key("DelayedTopics")),
    felt("validated-growth", "CreatePartitions with validate_only adds the partitions", "A3",
         handled(topic_requests.create_partitions, 'request.fields.number("validate_only") or ', "")),
    felt("grows-once", "CreatePartitions works only once for a topic", "A3", wrapped(Node, "_grow", _grow_once)),
)  # fmt: skip
