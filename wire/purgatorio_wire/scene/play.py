"""Methods of a scene that send requests about groups. (For requests about topics, see `data_asker`.)"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.client.connection import Connection, NoAnswer, Sent
from purgatorio_wire.history.history import OTHERS, Part, integer, items, parts, text
from purgatorio_wire.scene.asker import codes, first_of
from purgatorio_wire.scene.broker import POLL_SECONDS
from purgatorio_wire.scene.data_asker import DataAsker
from purgatorio_wire.trace.record import Body

BLIND_SECONDS: Final = 2.0
MUTE_SECONDS: Final = 2.0
"""A broker that does not answer the first heartbeat for this time answers no heartbeat."""
CONSUMER: Final = "consumer"
PROTOCOL: Final = "range"
"""The protocol that all members support."""


@dataclass(slots=True)
class Play(DataAsker):
    async def group(self) -> str:
        """A name of a group whose coordinator is this broker, and has loaded the group."""
        self.need("find_coordinator", "join_group", "sync_group", "heartbeat", "leave_group")
        conn = await self.admin()
        name = self.unique("g")
        blind, groups = 0, self.broker.groups
        groups.need()
        for _ in groups.tries():
            keys = [name, f"{name}-nobody"]
            await self.ask(conn, "find_coordinator", {"key": name, "key_type": 0, "coordinator_keys": keys})
            beat = {"group_id": name, "generation_id": 1, "member_id": "nobody"}
            try:
                error = codes((await self.ask(conn, "heartbeat", beat, MUTE_SECONDS)).body)
            except NoAnswer:
                break  # a broker without answers to heartbeats can still be judged by its joins
            if error == 16 and self.broker.nodes > 1:
                name = self.unique("g")  # the coordinator is another broker
            elif error == 0:
                # Kafka answers heartbeats of any member while the group is loading. Another broker may always do so.
                blind += 1
                if blind * POLL_SECONDS > BLIND_SECONDS:
                    break
            elif error not in (14, 15, 16):
                break
            await asyncio.sleep(POLL_SECONDS)
        else:
            raise groups.none(f"none within {groups.seconds:g} s")
        self.broker.made.groups[name] = set()
        return name

    async def coordinator(self, conn: Connection, name: str, kind: int = 0) -> tuple[int, bool]:
        """Sends FindCoordinator for a group (kind 0) or a transactional id (1). Returns the error, and whether the
        coordinator is another broker."""
        asked = {"key": name, "key_type": kind, "coordinator_keys": [name]}
        got = await self.ask(conn, "find_coordinator", asked)
        found = first_of(got.body, "coordinators") or got.body
        return codes(found), self.broker.node not in (None, integer(found, "node_id"))

    def join(
        self, conn: Connection, group: str, member: str, *, session_ms: int | None = None, rebalance_ms: int = 3000,
        instance: str | None = None, protocols: Sequence[str] = (PROTOCOL,), says: str = "", kind: str = CONSUMER,
        topics: Sequence[str] = (),
    ) -> Sent:  # fmt: skip
        """Sends JoinGroup in the classic protocol, with a subscription to these topics. `says`: for each protocol, the
        part of the subscription that only this member has."""
        values = {
            "group_id": group, "session_timeout_ms": self.session_ms if session_ms is None else session_ms,
            "rebalance_timeout_ms": rebalance_ms, "member_id": member, "group_instance_id": instance,
            "protocol_type": kind,
            "protocols": [{"name": name, "metadata": consumer_data(f"{says} {name}", topics)} for name in protocols],
        }  # fmt: skip
        return self.send(conn, "join_group", values)

    def sync(
        self, conn: Connection, group: str, member: str, generation: int, shares: Mapping[str, str] | None = None,
        instance: str | None = None, protocol: str = PROTOCOL, kind: str = CONSUMER,
    ) -> Sent:  # fmt: skip
        """Sends SyncGroup. The leader's request has the `shares`: a different text for each member."""
        given = (shares or {}).items()
        values = {
            "group_id": group, "generation_id": generation, "member_id": member, "group_instance_id": instance,
            "protocol_type": kind, "protocol_name": protocol,
            "assignments": [{"member_id": name, "assignment": consumer_data(share)} for name, share in given],
        }  # fmt: skip
        return self.send(conn, "sync_group", values)

    def heartbeat(
        self, conn: Connection, group: str, member: str, generation: int, instance: str | None = None
    ) -> Sent:
        values = {
            "group_id": group, "generation_id": generation, "member_id": member, "group_instance_id": instance,
        }  # fmt: skip
        return self.send(conn, "heartbeat", values)

    def commit(
        self, conn: Connection, group: str, member: str, generation: int, topics: Iterable[str],
        instance: str | None = None, numbers: Sequence[int] = (0,), note_bytes: int = 0, at: int | None = None,
    ) -> Sent:  # fmt: skip
        """Sends OffsetCommit for these partitions of each topic, with a given or random offset, and random
        metadata or none. The metadata of the last partition has at least this length."""
        made: list[dict[str, object]] = [
            {"name": topic, "partitions": [
                {"partition_index": number, "committed_offset": at if at is not None else drawn,
                 "committed_leader_epoch": drawn % 5 - 1,
                 "committed_metadata": f"note {drawn}".ljust(note_bytes * (number == numbers[-1]), ".")
                 if drawn % 4 or note_bytes else None}
                for number in numbers for drawn in (self.rng.randrange(1 << 40),)
            ]}
            for topic in topics
        ]  # fmt: skip
        values = {
            "group_id": group, "generation_id_or_member_epoch": generation, "member_id": member,
            "group_instance_id": instance, "topics": made,
        }  # fmt: skip
        return self.send_about(conn, "offset_commit", values, made, "name")

    async def ask_offsets(
        self, conn: Connection, group: str, topics: Iterable[str] | None, *, stable: bool = False
    ) -> list[tuple[Part, Body]]:
        """The committed offsets of a group for two partitions of these topics (None: of all topics). Empty if
        the broker does not offer the request. If one request can name several groups, it also names an unknown group.
        `stable`: require_stable."""
        if not self.offers("offset_fetch", "G12"):
            return []
        if topics is None and not self.offers("offset_fetch", least=2):
            return []
        numbers = self.rng.sample((0, 1), 2)
        named: list[dict[str, object]] = [{"name": one, "partition_indexes": numbers} for one in topics or ()]
        asked: Mapping[str, object] = {"group_id": group, "topics": None if topics is None else named}
        if self.offers("offset_fetch", least=8):
            names = self.rng.sample((group, f"{group}-nobody"), 2)
            asked = {
                "groups": [
                    {**asked, "group_id": name, "member_id": None, "member_epoch": -1} for name in names
                ]
            }
        got = await self.send_about(conn, "offset_fetch", {**asked, "require_stable": stable}, named, "name")
        told = [one for one in items(got.body, "groups") if text(one, "group_id") == group]
        return [*parts(told[0] if told else got.body, OTHERS[1])]

    async def delete_offsets(self, conn: Connection, group: str, topics: Iterable[str]) -> None:
        """Deletes the committed offsets of partition 0 of these topics."""
        gone = [{"name": topic, "partitions": [{"partition_index": 0}]} for topic in topics]
        await self.ask(conn, "offset_delete", {"group_id": group, "topics": gone})

    def leave(self, conn: Connection, group: str, *members: str) -> Sent:
        """Sends LeaveGroup for these members, or for the first one if the version allows only one."""
        named: list[Mapping[str, object]] = [{"member_id": member} for member in members]
        return self.send(conn, "leave_group", {"group_id": group, **named[0], "members": named})


def consumer_data(own: str, topics: Sequence[str] = (), numbers: Sequence[int] = ()) -> str:
    """The subscription or assignment of a consumer: version 0, these topics (in an assignment with these partitions),
    and this user data."""
    parts = struct.pack(f">i{len(numbers)}i", len(numbers), *numbers) if numbers else b""
    names = b"".join(struct.pack(">h", len(one)) + one.encode() + parts for one in topics)
    data = own.encode()
    return (struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", len(data)) + data).hex()
