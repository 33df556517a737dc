"""Bugs of what groups have committed, and of what is told of groups (G12, G13)."""

from collections.abc import Callable, Mapping
from typing import Final

from mutants.broker.client_visible_mutant import felt, handled, nothing
from purgatorio_broker.error import Error
from purgatorio_broker.group import Group
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network import group_requests
from purgatorio_broker.network.node import Node, Note
from purgatorio_stress.mutant.patch import Patch, edited, wrapped

_OFFSETS_LEFT: Final[dict[str, dict[TopicPartition, int]]] = {}


def _deleted_but_for_its_offsets(
    delete: Callable[..., Error], self: GroupCoordinator, group_id: str
) -> Error:
    group = self.known(group_id)
    error = delete(self, group_id)
    if group is not None and error is Error.NONE:
        _OFFSETS_LEFT[group_id] = dict(group._offsets.get())
    return error


def _made_with_the_offsets_left(made: Callable[..., Group], self: GroupCoordinator, group_id: str) -> Group:
    group = made(self, group_id)
    group.commit(_OFFSETS_LEFT.pop(group_id, {}))
    return group


_COMMITTED_ANEW: Final[set[TopicPartition]] = set()


def _commit_noted(commit: Callable[..., None], self: Group, offsets: Mapping[TopicPartition, int]) -> None:
    _COMMITTED_ANEW.clear()
    _COMMITTED_ANEW.update(partition for partition, at in offsets.items() if self.committed(partition) != at)
    commit(self, offsets)


def _kept_beside_its_offset(
    keep: Callable[..., None], self: Node, group_id: str, notes: Mapping[TopicPartition, Note]
) -> None:
    keep(self, group_id, {one: note for one, note in notes.items() if one in _COMMITTED_ANEW})


MUTANTS: Final = (
    felt("commit-unchecked", "a commit of any generation is taken", "G9",
         edited(GroupCoordinator, "commit", "refusal is not Error.NONE or member is None", "member is None")),
    felt("nobody-commits", "a commit without a generation is taken in a group with members", "G9",
         edited(GroupCoordinator, "commit", "generation < 0 and group.state() is GroupState.EMPTY",
                "generation < 0")),
    felt("commit-refused-in-rebalance", "a member that is told of a rebalance cannot commit what it has read",
         "G12",
         edited(GroupCoordinator, "commit", "is GroupState.COMPLETING", "is not GroupState.STABLE")),
    felt("commit-dropped", "a commit is answered and not kept", "G12", Patch(Group, "commit", nothing)),
    felt("offsets-outlive-the-topic",
         "what was committed of a topic that is deleted is told when another is made by its name", "G12",
         Patch(GroupCoordinator, "forget_topic", nothing),
         Patch(Node, "_forget_notes", nothing)),
    felt("offsets-of-the-first-group", "who asks for the offsets of several groups is told those of the first",
         "G12",
         handled(group_requests.offset_fetch, "_committed(node, entry, stable=stable) for",
                 '{**_committed(node, asked[0], stable=stable), "group_id": entry.text("group_id")} for')),
    felt("offsets-of-one-partition", "who asks for all offsets of a group is told those of one partition", "G12",
         edited(group_requests, "_committed", "[*offsets]", "[*offsets][:1]")),
    felt("offsets-left-out", "who asks for the offsets of several partitions by their names is told one of them",
         "X4 G12",
         edited(group_requests, "_committed", "(wanted if", "(wanted[:1] if")),
    felt("first-group-described", "who asks about several groups is told of the first", "G13",
         handled(group_requests.describe_groups, "_described(node, name, request.version) for",
                 '{**_described(node, request.fields.texts("groups")[0], request.version), "group_id": name} for')),
    felt("groups-of-any-state-listed", "who asks for the groups in some states is told of all", "G13",
         handled(group_requests.list_groups, "if not wanted or", "if True or")),
    felt("first-coordinator-told", "who asks for the coordinators of several groups is told of the first", "X4 G13",
         handled(group_requests.find_coordinator, 'texts("coordinator_keys")', 'texts("coordinator_keys")[:1]')),
    felt("note-kept", "a commit of the offset that stands keeps the note that stands beside it", "G12",
         wrapped(Node, "keep_notes", _kept_beside_its_offset),
         wrapped(Group, "commit", _commit_noted)),
    felt("offsets-outlive-the-group", "a group that is made by the name of one that was deleted has its offsets",
         "G12",
         wrapped(GroupCoordinator, "delete", _deleted_but_for_its_offsets),
         wrapped(GroupCoordinator, "group", _made_with_the_offsets_left)),
    felt("once-with-members", "who commits without a generation is refused in an empty group that had members",
         "G12",
         edited(GroupCoordinator, "commit", "generation < 0 and group.state()",
                "generation < 0 and not group.generation() and group.state()")),
)  # fmt: skip
