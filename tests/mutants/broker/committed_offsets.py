"""Bugs of what groups have committed, and of what is told of groups (G12, G13)."""

from collections.abc import Callable, Mapping
from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing, told
from purgatorio_broker.error import Error
from purgatorio_broker.group import Group
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.network.node import Node, Note
from purgatorio_stress.mutant.patch import Patch, wrapped

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
    *told("committed_offsets"),
    felt("commit-dropped", "a commit is answered and not kept", "G12", Patch(Group, "commit", nothing)),
    felt("offsets-outlive-the-topic",
         "what was committed of a topic that is deleted is told when another is made by its name", "G12",
         Patch(GroupCoordinator, "forget_topic", nothing),
         Patch(Node, "_forget_notes", nothing)),
    felt("note-kept", "a commit of the offset that stands keeps the note that stands beside it", "G12",
         wrapped(Node, "keep_notes", _kept_beside_its_offset),
         wrapped(Group, "commit", _commit_noted)),
    felt("offsets-outlive-the-group", "a group that is made by the name of one that was deleted has its offsets",
         "G12",
         wrapped(GroupCoordinator, "delete", _deleted_but_for_its_offsets),
         wrapped(GroupCoordinator, "group", _made_with_the_offsets_left)),
)  # fmt: skip
