"""Mutants of committed offsets and of the descriptions of groups (G12, G13)."""

from collections.abc import Callable, Mapping
from typing import Final

from mutants.broker.client_visible_mutant import felt, nothing, told
from purgatorio_broker.error import Error
from purgatorio_broker.group import Committed, Group
from purgatorio_broker.group_coordinator import GroupCoordinator
from purgatorio_broker.key import TopicPartition
from purgatorio_stress.mutant.patch import Patch, wrapped

_OFFSETS_LEFT: Final[dict[str, dict[TopicPartition, Committed]]] = {}


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


def _noted_once(
    commit: Callable[..., None], self: Group, offsets: Mapping[TopicPartition, Committed]
) -> None:
    there = self.committed()
    commit(self, {p: one for p, one in offsets.items() if p not in there or there[p].offset != one.offset})


MUTANTS: Final = (
    *told("committed_offsets"),
    felt("commit-dropped", "an OffsetCommit is answered, but not stored", "G12", Patch(Group, "commit", nothing)),
    felt("offsets-outlive-the-topic",
         "a new topic has the committed offsets of a deleted topic with the same name", "G12",
         Patch(GroupCoordinator, "forget_topic", nothing)),
    felt("note-kept", "an OffsetCommit of the same offset keeps the old metadata", "G12",
         wrapped(Group, "commit", _noted_once)),
    felt("offsets-outlive-the-group", "a new group has the offsets of a deleted group with the same name",
         "G12",
         wrapped(GroupCoordinator, "delete", _deleted_but_for_its_offsets),
         wrapped(GroupCoordinator, "group", _made_with_the_offsets_left)),
)  # fmt: skip
