"""Bugs of topics that are made, grow and are deleted, and of elections (A1 to A3, E1)."""

from collections.abc import Callable, Mapping
from typing import Final

from mutants.broker.client_visible_mutant import felt, handled, under_first_key
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network import topic_requests
from purgatorio_broker.network.cluster import Cluster
from purgatorio_broker.network.node import Node
from purgatorio_broker.topics import DelayedTopics, Metadata, Topics
from purgatorio_stress.mutant.patch import edited, wrapped

_GREW: Final[set[str]] = set()


def _grow_once(grow: Callable[..., None], self: Node, totals: Mapping[str, int]) -> None:
    grow(self, {name: total for name, total in totals.items() if name not in _GREW})
    _GREW.update(name for name, total in totals.items() if self.cluster.has(TopicPartition(name, total - 1)))


MUTANTS: Final = (
    felt("created-not-there", "a creation is answered and not made", "A1",
         edited(Node, "create", "accepted =",
                "return callback({topic.name: Error.NONE for topic in topics}); accepted =")),
    felt("created-again", "a second creation is answered without an error", "A1",
         edited(topic_requests, "_created", "values: dict",
                "code = 0 if code == ErrorCode.topic_already_exists.value else code; values: dict")),
    felt("deleted-still-there", "a deletion is answered and not made", "A2",
         edited(Node, "delete", "self.topics.delete(timeout_ms, names, callback)",
                "return callback(dict.fromkeys(names, Error.NONE))")),
    felt("deletion-left", "the deletion of a topic is answered at its time-out", "A2",
         edited(Metadata, "remove", "self._changed(TopicKey(topic))", "pass")),
    felt("first-topic-answers", "a request about two topics is answered when one is done", "A1 A2",
         edited(DelayedTopics, "try_complete", "any(", "all(")),
    felt("first-topic-watched", "a request about two topics waits for news of the first", "A1 A2",
         under_first_key("DelayedTopics")),
    felt("creation-refused", "no topic can be made", "A1",
         edited(topic_requests, "_new_topic", "if not _NAME", "if _NAME")),
    felt("growth-left", "a topic that shall grow does not, and the request is answered at its time-out", "A3",
         edited(Cluster, "grow", "topic.partitions >= partitions", "partitions")),
    felt("validated-growth", "a growth that is only to be validated is done", "A3",
         handled(topic_requests.create_partitions, 'request.fields.number("validate_only") or ', "")),
    felt("topics-by-id-stay", "the id of a topic that was deleted leads to the one that is made by its name", "A2",
         edited(Cluster, "remove", "del self._by_id[topic.topic_id]", "pass")),
    felt("no-leader-named", "metadata names no leader of a topic that leads", "A1",
         edited(topic_requests, "_partition", "-1 if leader is None else leader", "-1")),
    felt("grows-once", "a topic that has grown grows no more", "A3", wrapped(Node, "_grow", _grow_once)),
    felt("election-of-nothing-waits", "an election of a partition that the topic has not waits for its time-out",
         "E1",
         edited(Topics, "elect", "self.metadata.has_partition(partition)", "self.metadata.has(partition.topic)")),
    felt("one-topic-elected", "an election about several topics is answered for one of them", "X4 E1",
         handled(topic_requests.elect_leaders, "in results.items()}", "in [*results.items()][-1:]}")),
    felt("election-timed-out-at-once", "an election that is not needed is told that it timed out, at once", "E1",
         edited(Topics, "elect", "Error.ELECTION_NOT_NEEDED", "Error.REQUEST_TIMED_OUT")),
)  # fmt: skip
