"""`GroupCoordinator`: consumer groups in the classic protocol, like the coordinator of Kafka up to 3.x, which uses
delayed operations.

A rebalance has four steps. (1) Members join, and `DelayedJoin` waits for all joins. (2) The generation begins, and all
JoinGroup requests are answered. (3) Members sync, the leader with the assignments, and `DelayedSync` waits for all
syncs. (4) The group is stable, and heartbeats keep the members in the group (`DelayedHeartbeat`).

Each call is answered through its callback exactly once, under the group's lock. So a callback must not block, and must
not take another group's lock. If a member joins or syncs twice, the first request is answered with
REBALANCE_IN_PROGRESS. (Kafka does not answer the first request.)

The callback `persist` stores a group. It may append to a log, and so make operations ready. These operations must be
completed from the action queue, not under the group's lock. So the caller of each method must run the action queue
afterwards.

The waiting operations (Kafka's DelayedJoin, DelayedSync and DelayedHeartbeat) keep the clauses in `clauses.txt`:

* A rebalance waits for the joins of the members. A member that has not rejoined at the rebalance time-out is removed,
  and the rebalance ends with the other members. The first rebalance of an empty group waits for the initial delay, and
  again as long as new members join, up to the rebalance time-out. Clauses B401 to B407.
* A generation waits for the syncs of its members. A member that does not sync is removed at the rebalance time-out
  (KAFKA-12890). The completion of `DelayedSync` does nothing: the leader's SyncGroup answers the SyncGroup requests.
  Clauses B501 to B504.
* The session of a member waits for a heartbeat or another request of the member. The expiry removes the member. A
  heartbeat sets `satisfied` of the member and checks the member's key, which completes the waiting operation. Then it
  resets `satisfied`, and registers the next operation. Without the reset, the next operation would complete at once,
  and no operation would watch the session (KAFKA-9752). Clauses B601 to B608.

These operations use the group's lock, which other code holds too. So they need a purgatory of the dialect `locked`.
With `pending-flag`, an event would be lost while other code holds the lock (KAFKA-8334).

Not implemented: the retention of offsets, sizes and limits of groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from purgatorio.delayed.action_queue import ActionQueue
from purgatorio.delayed.locked import LOCKED
from purgatorio.delayed.operation import DelayedOperation
from purgatorio.delayed.purgatory import Purgatory
from purgatorio.sync import Cell, Lock
from purgatorio_broker.error import Error
from purgatorio_broker.group import (
    Committed,
    Group,
    GroupState,
    JoinCallback,
    JoinResult,
    Member,
    SyncCallback,
    SyncResult,
)
from purgatorio_broker.key import GroupJoinKey, GroupSyncKey, MemberKey, TopicPartition
from purgatorio_broker.runtime import Runtime

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""The longest wait of a new member for the answer to its first join. Its session timeout counts from then on."""


class _InGroup(DelayedOperation):
    """An operation under the group's lock. By default it does nothing on completion."""

    def __init__(self, timeout_ms: int, group: Group, coordinator: "GroupCoordinator") -> None:
        runtime = coordinator._runtime
        super().__init__(
            timeout_ms, dialect=LOCKED, lock=group.lock, faults=runtime.faults, sync=runtime.sync
        )
        self._group = group
        self._coordinator = coordinator

    def on_complete(self) -> None:
        """Nothing."""


class DelayedJoin(_InGroup):
    """Waits until all members have joined. At its time-out, the rebalance continues without the missing members."""

    def try_complete(self) -> bool:
        """Completes if every member has joined, and no member is pending."""
        return self._group.all_have_joined() and self.force_complete()  # [B401] [B402] [B403]

    def on_complete(self) -> None:
        self._coordinator._end_rebalance(self._group)

    def on_expiration(self) -> None:
        """Run the action queue, because no request does (KAFKA-8334)."""
        self._coordinator.actions.run_all()  # [B408]


class InitialDelayedJoin(DelayedJoin):
    """The first rebalance of an empty group. It waits for its delay, and again if a member joined meanwhile.
    `remaining_ms`: the largest further delay."""

    def __init__(
        self, delay_ms: int, remaining_ms: int, group: Group, coordinator: "GroupCoordinator"
    ) -> None:
        super().__init__(delay_ms, group, coordinator)
        self._remaining_ms = remaining_ms

    def try_complete(self) -> bool:
        """Never completes: only the time-out ends the delay."""
        return False

    def on_complete(self) -> None:
        """Waits again if a member joined meanwhile and there is time left. Otherwise ends the rebalance."""
        if self._group.new_member_added.get() and self._remaining_ms > 0:
            self._group.new_member_added.set(False)
            delay_ms = min(self._coordinator._initial_delay_ms, self._remaining_ms)
            self._coordinator._wait_initially(self._group, delay_ms, max(self._remaining_ms - delay_ms, 0))
        else:
            self._coordinator._end_rebalance(self._group)


class DelayedSync(_InGroup):
    """Waits until all members of a generation have synced. At its time-out, other members are removed, without the
    lock."""

    def __init__(self, timeout_ms: int, group: Group, coordinator: "GroupCoordinator") -> None:
        super().__init__(timeout_ms, group, coordinator)
        self._generation = group.generation()

    def try_complete(self) -> bool:
        """Completes if the generation has ended, or no sync is missing."""
        over = self._generation != self._group.generation()  # [B501]
        settled = self._group.state() in (GroupState.COMPLETING, GroupState.STABLE)  # [B502]
        if settled and not over and self._group.pending_sync():  # [B503] [B504]
            return False
        return self.force_complete()

    def on_expiration(self) -> None:
        self._coordinator._syncs_expired(self._group, self._generation)


class DelayedHeartbeat(_InGroup):
    """The session of a member. A request of the member completes the operation. Its expiry removes the member.
    `pending`: the member has an id and has not joined."""

    def __init__(
        self, timeout_ms: int, group: Group, coordinator: "GroupCoordinator", member: str, *, pending: bool = False
    ) -> None:  # fmt: skip
        super().__init__(timeout_ms, group, coordinator)
        self._member = member
        self._pending = pending

    def try_complete(self) -> bool:
        """Completes if a request of the member has arrived, or if the session needs no heartbeat (any more)."""
        member = self._group.get(self._member)
        if self._group.state() is GroupState.DEAD:  # [B601]
            return self.force_complete()
        if self._pending:
            return member is not None and self.force_complete()  # [B602] [B603]
        return (member is None or member.has_satisfied_heartbeat()) and self.force_complete()  # [B604]

    def on_expiration(self) -> None:
        """Remove the member, because its session has expired."""
        self._coordinator._session_expired(self._group, self._member, self._pending)


class GroupCoordinator:
    """Joins, syncs, heartbeats and leaves of the groups of one broker. Every call is answered once. `persist(group id,
    generation)`: called to store a group. `session_bounds_ms`: the shortest and the longest session that a member may
    request. `new_id` creates the ids of members (default: a counter)."""

    def __init__(
        self,
        runtime: Runtime,
        actions: ActionQueue,
        *,
        initial_delay_ms: int = 3000,
        session_bounds_ms: tuple[int, int] = (1, 30 * 60 * 1000),
        persist: Callable[[str, int], None] | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self._runtime = runtime
        self.actions = actions
        self._initial_delay_ms = initial_delay_ms
        self._session_bounds_ms = session_bounds_ms
        self._persist = persist
        self._lock: Lock = runtime.sync.lock("groups")
        self._groups: Cell[dict[str, Group]] = runtime.sync.cell({}, "groups")
        self._ids = runtime.sync.atomic_int(0, "member-ids")
        self._closed = runtime.sync.atomic_flag(False, "group-coordinator.closed")
        self._new_id = new_id or (lambda: f"member-{self._ids.add(1)}")
        self._rebalances: Purgatory[DelayedJoin | DelayedSync] = runtime.purgatory("Rebalance")
        self._heartbeats: Purgatory[DelayedHeartbeat] = runtime.purgatory("Heartbeat")

    def group(self, group_id: str) -> Group:
        """The group, created if there is none."""
        with self._lock:
            found = self._groups.get().get(group_id)
            if found is None:
                found = self._groups.mutate()[group_id] = Group(group_id, self._runtime.sync)
            return found

    def join(
        self,
        group_id: str,
        member_id: str,
        protocols: tuple[str, ...],
        callback: JoinCallback,
        *,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        instance: str = "",
        id_required: bool = False,
        metadata: tuple[bytes, ...] = (),
        protocol_type: str = "",
        may_skip: bool = False,
    ) -> None:
        """Join with a member id, or "" for a new member id. `id_required`: a new member must join again with its new
        id. `instance`: the id of a static member, which returns without a member id, gets a new one, and keeps its
        place (KIP-345). `metadata`: the metadata for each protocol. `may_skip`: a returning leader need not assign
        (KIP-814). Two errors have no effect on the group [B410]: INVALID_SESSION_TIMEOUT outside of the bounds, and
        INCONSISTENT_GROUP_PROTOCOL for another protocol type, or without a protocol that all other members have. The
        former member id of a static member gets FENCED_INSTANCE_ID."""
        group = self.group(group_id)
        with group.lock:
            known = group.get(member_id)
            static = group.instance(instance)
            refusal = self._refuses_join(
                group, member_id, protocols, session_timeout_ms, instance, protocol_type
            )
            if refusal is not Error.NONE:
                callback(JoinResult(refusal, member_id))
            elif static is not None and not member_id:
                come_back = replace(
                    static, id=self._new_id(), session_timeout_ms=session_timeout_ms, protocols=protocols,
                    rebalance_timeout_ms=rebalance_timeout_ms, metadata=metadata, awaiting_join=None,
                    awaiting_sync=None,
                )  # fmt: skip
                self._replace(group, static, come_back, callback, may_skip)
            elif not member_id and id_required and not instance:
                self._expect(group, session_timeout_ms, callback)
            elif not member_id or group.is_pending(member_id):
                new = Member(
                    member_id or self._new_id(), session_timeout_ms, rebalance_timeout_ms, protocols, instance,
                    is_new=True, metadata=metadata, awaiting_join=callback,
                )  # fmt: skip
                if not group.members():
                    group.protocol_type.set(protocol_type)
                self._add(group, new)
            elif known is None:
                callback(JoinResult(Error.UNKNOWN_MEMBER_ID, member_id))
            else:
                asked = replace(
                    known, session_timeout_ms=session_timeout_ms, rebalance_timeout_ms=rebalance_timeout_ms,
                    protocols=protocols, metadata=metadata,
                )  # fmt: skip
                self._rejoin(group, known, asked, callback)
            if group.state() is GroupState.PREPARING:
                self._rebalances.check_and_complete(GroupJoinKey(group.id))

    def sync(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        assignments: Mapping[str, bytes],
        callback: SyncCallback,
        *,
        instance: str = "",
        protocol: str = "",
        protocol_type: str = "",
    ) -> None:
        """Requests this member's assignment. The leader's request has all assignments. INCONSISTENT_GROUP_PROTOCOL if
        the request names another protocol or protocol type than the group has (KIP-559)."""
        group = self.group(group_id)
        with group.lock:
            member = group.get(member_id)
            refusal = _refusal(group, member, generation, instance, member_id)
            if refusal is Error.NONE and group.state() is GroupState.PREPARING:
                refusal = Error.REBALANCE_IN_PROGRESS
            elif refusal is Error.NONE and (
                protocol not in ("", group.protocol()) or protocol_type not in ("", group.protocol_type.get())
            ):
                refusal = Error.INCONSISTENT_GROUP_PROTOCOL
            if refusal is not Error.NONE or member is None:
                callback(SyncResult(refusal))
                return
            group.has_synced(member_id)
            if member.awaiting_sync is not None:
                member.awaiting_sync(SyncResult(Error.REBALANCE_IN_PROGRESS))
            member = group.update(member.id, awaiting_sync=callback)
            if group.state() is GroupState.STABLE:
                self._answer_sync(group, member)
            elif member_id == group.leader():
                self._assign(group, assignments)
            self._rebalances.check_and_complete(GroupSyncKey(group.id))

    def heartbeat(self, group_id: str, generation: int, member_id: str, *, instance: str = "") -> Error:
        """Begin the session of the member again. REBALANCE_IN_PROGRESS: the member must rejoin."""
        group = self.group(group_id)
        with group.lock:
            member = group.get(member_id)
            refusal = _refusal(group, member, generation, instance, member_id)
            if refusal is not Error.NONE or member is None:
                return refusal
            self._heard_of(group, member, member.session_timeout_ms)
            return Error.REBALANCE_IN_PROGRESS if group.state() is GroupState.PREPARING else Error.NONE

    def commit(
        self,
        group_id: str,
        generation: int,
        member_id: str,
        offsets: Mapping[TopicPartition, Committed],
        *,
        instance: str = "",
    ) -> Error:
        """Commit the member's offsets; this extends its session. REBALANCE_IN_PROGRESS if the generation has begun and
        has no assignments yet [B409]. A commit with a negative generation comes from a client that is no member. It is
        accepted if the group has no members."""
        group = self.group(group_id)
        with group.lock:
            if generation < 0 and group.state() is GroupState.EMPTY:
                group.commit(offsets)
                self._store(group)
                return Error.NONE
            member = group.get(member_id)
            refusal = _refusal(group, member, generation, instance, member_id)
            if refusal is not Error.NONE or member is None:
                return refusal
            if group.state() is GroupState.COMPLETING:
                return Error.REBALANCE_IN_PROGRESS
            group.commit(offsets)
            self._store(group)
            self._heard_of(group, member, member.session_timeout_ms)
            return Error.NONE

    def leave(self, group_id: str, member_id: str) -> Error:
        """Removes the member. Its waiting requests get UNKNOWN_MEMBER_ID."""
        group = self.group(group_id)
        with group.lock:
            if group.is_pending(member_id):
                self._drop_pending(group, member_id)
            elif group.get(member_id) is not None:
                self._drop(group, member_id)
            else:
                return Error.UNKNOWN_MEMBER_ID
            return Error.NONE

    def known(self, group_id: str) -> Group | None:
        with self._lock:
            return self._groups.get().get(group_id)

    def groups(self) -> list[Group]:
        """All groups, in the order of their creation."""
        with self._lock:
            return list(self._groups.get().values())

    def delete(self, group_id: str) -> Error:
        """Delete the group and its offsets. GROUP_ID_NOT_FOUND for an unknown group; NON_EMPTY_GROUP if it has
        members."""
        group = self.known(group_id)
        if group is None:
            return Error.GROUP_ID_NOT_FOUND
        with group.lock:
            if group.state() is not GroupState.EMPTY:
                return Error.NON_EMPTY_GROUP
            group.enter(GroupState.DEAD)
        with self._lock:
            self._groups.mutate().pop(group_id, None)
        return Error.NONE

    def forget_topic(self, topic: str) -> None:
        """Removes the committed offsets of a deleted topic."""
        for group in self.groups():
            with group.lock:
                group.forget(topic)
                self._store(group)

    def kill(self, group_id: str) -> None:
        """Give up the group, because another coordinator has it: answer every waiting call, complete every
        operation."""
        group = self.group(group_id)
        with group.lock:
            group.enter(GroupState.DEAD)
            members = group.members()
            for member in members:
                self._answer_waiting(group, member, Error.COORDINATOR_NOT_AVAILABLE)
            self._rebalances.check_and_complete(GroupSyncKey(group.id))
            for member in members:
                self._heartbeats.check_and_complete(MemberKey(group.id, member.id))

    def shutdown(self) -> None:
        """Shut the purgatories down. Waiting requests are answered as at their time-outs."""
        self._closed.set(True)
        self._rebalances.close()
        self._heartbeats.close()

    def waiting(self) -> tuple[int, int]:
        """The numbers of operations in the timers: of rebalances and of heartbeats."""
        return self._rebalances.num_delayed(), self._heartbeats.num_delayed()

    def check(self) -> None:
        for group in self.groups():
            group.check()
        self._rebalances.check()
        self._heartbeats.check()

    def _refuses_join(
        self,
        group: Group,
        member_id: str,
        protocols: tuple[str, ...],
        session_timeout_ms: int,
        instance: str,
        protocol_type: str,
    ) -> Error:
        shortest_ms, longest_ms = self._session_bounds_ms
        if group.state() is GroupState.DEAD:
            return Error.COORDINATOR_NOT_AVAILABLE
        if not shortest_ms <= session_timeout_ms <= longest_ms:
            return Error.INVALID_SESSION_TIMEOUT
        if _fenced(group, instance, member_id):
            return Error.FENCED_INSTANCE_ID
        other_type = bool(group.members()) and protocol_type != group.protocol_type.get()
        if other_type or not group.shares_a_protocol(member_id or _id(group.instance(instance)), protocols):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        return Error.NONE

    def _expect(self, group: Group, session_timeout_ms: int, callback: JoinCallback) -> None:
        member_id = self._new_id()
        group.add_pending(member_id)
        callback(JoinResult(Error.MEMBER_ID_REQUIRED, member_id))
        session = DelayedHeartbeat(session_timeout_ms, group, self, member_id, pending=True)
        self._heartbeats.try_complete_else_watch(session, [MemberKey(group.id, member_id)])

    def _add(self, group: Group, member: Member) -> None:
        if group.state() is GroupState.PREPARING and group.generation() == 0:
            group.new_member_added.set(True)
        group.put(member)
        # This also completes the session of the pending member, which is a member now.
        self._heard_of(group, member, NEW_MEMBER_TIMEOUT_MS)
        self._maybe_rebalance(group)

    def _rejoin(self, group: Group, member: Member, asked: Member, callback: JoinCallback) -> None:
        """Handle the join of a known member. `asked`: the member as this join describes it."""
        changed = asked.protocols != member.protocols or asked.metadata != member.metadata
        settled = group.state() is GroupState.COMPLETING or (
            group.state() is GroupState.STABLE and member.id != group.leader()
        )
        if settled and not changed:
            callback(_joined(group, member))
            return
        if member.awaiting_join is not None:
            member.awaiting_join(JoinResult(Error.REBALANCE_IN_PROGRESS, member.id))
        self._answer_sync_with(group, member, Error.REBALANCE_IN_PROGRESS)
        group.update(
            member.id, session_timeout_ms=asked.session_timeout_ms, rebalance_timeout_ms=asked.rebalance_timeout_ms,
            protocols=asked.protocols, metadata=asked.metadata, awaiting_join=callback,
        )  # fmt: skip
        self._maybe_rebalance(group)

    def _replace(
        self, group: Group, old: Member, new: Member, callback: JoinCallback, may_skip: bool
    ) -> None:
        """A static member has returned. If nothing changes, it continues with the current generation. If it led, and
        the response cannot tell it to skip the assignment, it continues as a follower."""
        before = group.protocol()
        led = group.leader()
        self._answer_waiting(group, old, Error.FENCED_INSTANCE_ID)
        group.swap(old.id, new)
        self._heartbeats.check_and_complete(MemberKey(group.id, old.id))
        self._heard_of(group, new, new.session_timeout_ms)
        if group.state() is GroupState.STABLE and group.protocol() == before:
            back = _joined(group, new)
            unled = replace(back, leader=led, members=(), metadata=())
            callback(replace(back, skips=led == old.id) if may_skip else unled)
            return
        group.update(new.id, awaiting_join=callback)
        self._maybe_rebalance(group)

    def _maybe_rebalance(self, group: Group) -> None:
        if group.state() in (GroupState.EMPTY, GroupState.COMPLETING, GroupState.STABLE):
            self._prepare_rebalance(group)

    def _prepare_rebalance(self, group: Group) -> None:
        first = group.state() is GroupState.EMPTY
        for member in group.members():
            self._answer_sync_with(group, member, Error.REBALANCE_IN_PROGRESS)
        group.forget_pending_sync()
        group.enter(GroupState.PREPARING)
        self._rebalances.check_and_complete(GroupSyncKey(group.id))
        timeout_ms = group.rebalance_timeout_ms()
        if first:
            delay_ms = self._initial_delay_ms
            self._wait_initially(group, delay_ms, max(timeout_ms - delay_ms, 0))
        else:
            self._wait_for_joins(group, timeout_ms)

    def _wait_for_joins(self, group: Group, timeout_ms: int) -> None:
        joins = DelayedJoin(timeout_ms, group, self)
        self._rebalances.try_complete_else_watch(joins, [GroupJoinKey(group.id)])

    def _wait_initially(self, group: Group, delay_ms: int, remaining_ms: int) -> None:
        joins = InitialDelayedJoin(delay_ms, remaining_ms, group, self)
        self._rebalances.try_complete_else_watch(joins, [GroupJoinKey(group.id)])

    def _end_rebalance(self, group: Group) -> None:
        """End the rebalance: called under the lock, when the joins are complete."""
        for member in group.members():
            if member.awaiting_join is None and not member.instance and group.state() is not GroupState.DEAD:
                self._remove(group, member)
        if group.state() is GroupState.DEAD:
            return  # [B404]
        if group.members() and not group.elect_joined_leader() and not self._closed.get():
            # (After a shutdown, no operation waits: another wait would end at once, and lead here again.)
            self._wait_for_joins(group, group.rebalance_timeout_ms())  # [B406]
            return
        group.next_generation()
        if not group.members():
            self._store(group)  # [B405]
            return
        for member in group.members():
            answer = member.awaiting_join
            settled = group.update(member.id, awaiting_join=None, is_new=False)
            if answer is not None:
                answer(_joined(group, settled))  # [B407]
            self._heard_of(group, settled, settled.session_timeout_ms)
        syncs = DelayedSync(group.rebalance_timeout_ms(), group, self)
        self._rebalances.try_complete_else_watch(syncs, [GroupSyncKey(group.id)])

    def _assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        group.enter(GroupState.STABLE)
        self._store(group)
        for member in group.members():
            assigned = group.update(member.id, assignment=assignments.get(member.id, b""))
            if assigned.awaiting_sync is not None:
                self._answer_sync(group, assigned)

    def _answer_sync(self, group: Group, member: Member) -> None:
        answer = member.awaiting_sync
        member = group.update(member.id, awaiting_sync=None)
        if answer is not None:
            answer(SyncResult(Error.NONE, member.assignment))
        self._heard_of(group, member, member.session_timeout_ms)

    def _answer_sync_with(self, group: Group, member: Member, error: Error) -> None:
        if member.awaiting_sync is not None:
            group.update(member.id, awaiting_sync=None)
            member.awaiting_sync(SyncResult(error))
            self._heard_of(group, member, member.session_timeout_ms)

    def _answer_waiting(self, group: Group, member: Member, error: Error) -> None:
        if group.get(member.id) is not None:
            group.update(member.id, awaiting_join=None, awaiting_sync=None)
        if member.awaiting_join is not None:
            member.awaiting_join(JoinResult(error, member.id))
        if member.awaiting_sync is not None:
            member.awaiting_sync(SyncResult(error))

    def _heard_of(self, group: Group, member: Member, timeout_ms: int) -> None:
        """A request of the member arrived: complete the waiting operation of its session, and register the next one."""
        key = MemberKey(group.id, member.id)
        group.update(member.id, satisfied=True)
        self._heartbeats.check_and_complete(key)
        group.update(member.id, satisfied=False)
        session = DelayedHeartbeat(timeout_ms, group, self, member.id)
        self._heartbeats.try_complete_else_watch(session, [key])

    def _remove(self, group: Group, member: Member) -> None:
        """Remove the member, and complete the operation of its session. Otherwise this operation would expire for a
        missing member (KAFKA-7196)."""
        group.remove(member.id)
        self._answer_waiting(group, member, Error.UNKNOWN_MEMBER_ID)
        self._heartbeats.check_and_complete(MemberKey(group.id, member.id))

    def _drop(self, group: Group, member_id: str) -> None:
        member = group.get(member_id)
        if member is not None:
            self._remove(group, member)
        if group.state() is GroupState.PREPARING:
            self._rebalances.check_and_complete(GroupJoinKey(group.id))
        else:
            self._maybe_rebalance(group)

    def _drop_pending(self, group: Group, member_id: str) -> None:
        group.remove_pending(member_id)
        if group.state() is GroupState.PREPARING:
            self._rebalances.check_and_complete(GroupJoinKey(group.id))

    def _session_expired(self, group: Group, member_id: str, pending: bool) -> None:
        with group.lock:
            member = group.get(member_id)
            if group.state() is GroupState.DEAD:
                return
            if pending:
                self._drop_pending(group, member_id)
            elif member is not None and not member.has_satisfied_heartbeat():
                self._drop(group, member_id)  # [B608]
        self.actions.run_all()  # [B408]

    def _syncs_expired(self, group: Group, generation: int) -> None:
        with group.lock:
            settled = group.state() in (GroupState.COMPLETING, GroupState.STABLE)
            missing = group.pending_sync() if settled and generation == group.generation() else frozenset()
            for member_id in sorted(missing):
                member = group.get(member_id)
                if member is not None:
                    self._remove(group, member)
            if missing:
                self._prepare_rebalance(group)  # [B504]
        self.actions.run_all()

    def _store(self, group: Group) -> None:
        if self._persist is not None:
            self._persist(group.id, group.generation())


def _refusal(group: Group, member: Member | None, generation: int, instance: str, member_id: str) -> Error:
    """The error for a member's call, or NONE."""
    if group.state() is GroupState.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    if _fenced(group, instance, member_id):
        return Error.FENCED_INSTANCE_ID
    if member is None or group.state() is GroupState.EMPTY:
        return Error.UNKNOWN_MEMBER_ID
    return Error.NONE if generation == group.generation() else Error.ILLEGAL_GENERATION


def _joined(group: Group, member: Member) -> JoinResult:
    leads = member.id == group.leader()
    told = group.members() if leads else []
    members = tuple(m.id for m in told)
    metadata = tuple(group.metadata(m) for m in told)
    generation, leader, protocol = group.generation(), group.leader(), group.protocol()
    return JoinResult(Error.NONE, member.id, generation, leader, protocol, members, metadata)


def _fenced(group: Group, instance: str, member_id: str) -> bool:
    """Whether the instance has another member id now."""
    static = group.instance(instance)
    return bool(member_id) and static is not None and static.id != member_id


def _id(member: Member | None) -> str:
    return "" if member is None else member.id
