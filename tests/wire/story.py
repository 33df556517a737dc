"""Wire histories in short notation: requests and responses with their times in ms, as a trace that can be judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from purgatorio_spec.judge.result import ClauseResult
from purgatorio_wire.history.bound import MS
from purgatorio_wire.judge import judge_trace
from purgatorio_wire.trace.file import WireTrace
from purgatorio_wire.trace.record import Declared, Kind, WireEnd, WireEvent, WireHeader

SIZE = 100
"""Bytes of an append of one record."""
END_MS = 60_000.0
Bodies = list[dict[str, object]]


def batch(base: int, last: int | None = None, **more: object) -> dict[str, object]:
    """A batch, of one record unless it has a last one."""
    count = 1 if last is None else last - base + 1
    return {"base": base, "last": base + count - 1, "count": count, "bytes": SIZE * count, **more}


def sent(one: Mapping[str, object], name: str = "t", number: int = 0) -> Bodies:
    """The topics of a produce of one batch."""
    return [{"name": name, "partition_data": [{"index": number, "records": [one]}]}]


def appended(base: int, error: int = 0, name: str = "t", number: int = 0, **more: object) -> Bodies:
    """And of its answer."""
    said = {"index": number, "error_code": error, "base_offset": base, **more}
    return [{"name": name, "partition_responses": [said]}]


def of_t(**part: object) -> Bodies:
    """The topic t, with this said of its partition 0, in the requests and answers that name both so."""
    return [{"name": "t", "partitions": [{"partition_index": 0, **part}]}]


@dataclass
class Story:
    """Events in any order; `judged` puts them in the order of time."""

    declared: Declared = field(default_factory=lambda: Declared(initial_delay_ms=1000))
    offered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    late_ms: float = 0
    scene: str = "told#1"
    _events: list[tuple[float, int, dict[str, object]]] = field(default_factory=list)
    _asked: int = 0
    _times: int = 1
    written: dict[tuple[int, int], dict[str, object]] = field(default_factory=dict)
    """The producers of batches of the topic t, by partition and offset."""

    def brought(self, came: Sequence[int] | int, number: int = 0, **more: object) -> Bodies:
        """A batch at each of these offsets; none where an error came."""
        bases = () if isinstance(came, int) else came
        return [{**batch(base), **self.written.get((number, base), {}), **more} for base in bases]

    def event(self, t: float, ev: Kind, **fields: object) -> int:
        """Any event. Returns its number in the order of writing."""
        number = len(self._events)
        self._events.append((t, number, {"ev": ev, "scene": self.scene, **fields}))
        return number

    def ask(
        self, t: float, api: str, body: Mapping[str, object], answer: float | None = None, got: object = None,
        *, conn: str = "", version: int = 9, **more: object,
    ) -> int:  # fmt: skip
        """A request, on a connection of its own unless one is named, and its answer."""
        self._asked += 1
        conn = conn or f"c{self._asked}"
        asked = self.event(t, "request", conn=conn, corr=self._asked, api=api, version=version, body=body)
        if answer is not None:
            self.event(
                answer,
                "answer",
                conn=conn,
                corr=self._asked,
                c=asked,
                api=api,
                version=version,
                body=got,
                **more,
            )
        return asked

    def topic(self, name: str = "t", partitions: int = 1, replicas: int = 1, **configs: str) -> None:
        """A topic that was made and has been fetched: it leads."""
        asked = {
            "name": name, "num_partitions": partitions, "replication_factor": replicas,
            "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
        }  # fmt: skip
        made = {"name": name, "error_code": 0, "topic_id": "id" if name == "t" else f"id of {name}"}
        self.ask(0, "create_topics", {"topics": [asked]}, 1, {"topics": [made]})
        for number in range(partitions):
            self.fetch(2, 3, [(name, number, 0, [])], wait=0, least=0)

    def fetch(
        self, t: float, answer: float | None, parts: Sequence[tuple[str, int, int, Sequence[int] | int]],
        *, wait: int = 500, least: int = 1, conn: str = "", epoch: int = -1, last_epoch: int = -1,
        room: int = 1 << 20, most: int = 1 << 20, mark: int = -1, corrupt: bool = False,
        batch_epoch: int = 0, batches: Mapping[str, object] | None = None, **more: object,
    ) -> int:  # fmt: skip
        """A fetch. Each part: topic, partition, offset, and the base offsets of the batches that came, or an error."""
        topics = [
            {"topic": name, "partitions": [
                {"partition": number, "fetch_offset": offset, "current_leader_epoch": epoch,
                 "last_fetched_epoch": last_epoch, "partition_max_bytes": room}]}
            for name, number, offset, _ in parts
        ]  # fmt: skip
        responses = [
            {"topic": name, "partitions": [
                {"partition_index": number, "error_code": came if isinstance(came, int) else 0,
                 "high_watermark": mark, **more, "records": self.brought(
                     came, number, corrupt=corrupt, leader_epoch=batch_epoch, **(batches or {}))}]}
            for name, number, _, came in parts
        ]  # fmt: skip
        body = {"max_wait_ms": wait, "min_bytes": least, "max_bytes": most, "topics": topics}
        return self.ask(t, "fetch", body, answer, {"error_code": 0, "responses": responses}, conn=conn)

    def produce(
        self, t: float, answer: float | None, base: int, *, name: str = "t", number: int = 0, acks: int = 1,
        error: int = 0, timeout: int = 1000, conn: str = "", start: int = -1, corrupt: bool = False,
    ) -> int:  # fmt: skip
        body = {
            "acks": acks,
            "timeout_ms": timeout,
            "topic_data": sent(batch(0, corrupt=corrupt), name, number),
        }
        told = appended(base, error, name, number, log_start_offset=start)
        return self.ask(t, "produce", body, answer, {"responses": told}, conn=conn)

    def metadata(self, t: float, error: int = 0, *, name: str = "t", in_sync: int = 1, epoch: int = 0) -> int:
        part = {"partition_index": 0, "leader_epoch": epoch, "isr_nodes": list(range(in_sync))}
        said = {"name": name, "error_code": error, "partitions": [part] if not error else []}
        asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        return self.ask(t, "metadata", asked, t + 1, {"topics": [said]})

    def join(
        self, t: float, answer: float | None, member: str, generation: int = -1, *, error: int = 0, leader: str = "",
        told: Sequence[str] = (), given: str = "", rebalance: int = 3000, session: int = 6000, instance: str = "",
        protocol: str = "range", subscriptions: Mapping[str, str] | None = None, subscribed: str = "",
        skips: bool = False, kind: str = "consumer", version: int = 9,
    ) -> int:  # fmt: skip
        """A join, and the generation that it is answered with."""
        own = subscribed or given or member
        body = {
            "group_id": "g",
            "member_id": member,
            "session_timeout_ms": session,
            "rebalance_timeout_ms": rebalance,
            "group_instance_id": instance or None,
            "protocol_type": kind,
            "protocols": [{"name": name, "metadata": f"of {own}"} for name in ("range", f"own {own}")],
        }
        says = {one: f"of {one}" for one in told} | dict(subscriptions or {})
        got = {
            "error_code": error, "generation_id": generation, "leader": leader, "member_id": given or member,
            "protocol_name": protocol, "skip_assignment": skips,
            "members": [
                {"member_id": one, "metadata": says[one], "group_instance_id": f"i{one}" if instance else None}
                for one in told
            ],
        }  # fmt: skip
        return self.ask(t, "join_group", body, answer, got, version=version)

    def sync(
        self, t: float, answer: float | None, member: str, generation: int, share: str = "", *, error: int = 0,
        gives: Mapping[str, str] | None = None, instance: str = "",
    ) -> int:  # fmt: skip
        """A sync, with what the leader gives, and the share that came back."""
        assignments = [{"member_id": one, "assignment": given} for one, given in (gives or {}).items()]
        body = {
            "group_id": "g", "member_id": member, "generation_id": generation, "assignments": assignments,
            "group_instance_id": instance or None,
        }  # fmt: skip
        return self.ask(t, "sync_group", body, answer, {"error_code": error, "assignment": share})

    def beat(
        self, t: float, member: str, generation: int, error: int = 0, answer: float | None = None,
        instance: str = "",
    ) -> int:  # fmt: skip
        body = {
            "group_id": "g", "member_id": member, "generation_id": generation, "group_instance_id": instance or None,
        }  # fmt: skip
        return self.ask(t, "heartbeat", body, t + 1 if answer is None else answer, {"error_code": error})

    def commit(
        self, t: float, member: str, generation: int, error: int = 0, at: int = 0, instance: str = "",
        api: str = "offset_commit", epoch: int = -1,
    ) -> int:  # fmt: skip
        what = of_t(committed_offset=at, committed_metadata="", committed_leader_epoch=epoch)
        body = {
            "group_id": "g", "member_id": member, "generation_id_or_member_epoch": generation,
            "group_instance_id": instance or None, "topics": what,
        }  # fmt: skip
        return self.ask(t, api, body, t + 1, {"topics": of_t(error_code=error)})

    def offset(self, t: float, at: int, epoch: int = -1) -> int:
        """The committed offset of the group in a response."""
        told = of_t(committed_offset=at, metadata="", committed_leader_epoch=epoch, error_code=0)
        got = {"groups": [{"group_id": "g", "error_code": 0, "topics": told}]}
        return self.ask(t, "offset_fetch", {"groups": [{"group_id": "g"}]}, t + 1, got)

    def leave(self, t: float, member: str, error: int = 0, instance: str = "") -> int:
        named = {"member_id": member, "group_instance_id": instance or None}
        said = {"error_code": 0, "members": [{**named, "error_code": error}]}
        return self.ask(t, "leave_group", {"group_id": "g", "members": [named]}, t + 1, said)

    def gathered(
        self, members: str = "ab", at: float = 10, joins: float = 2000, rebalance: int = 3000, *,
        protocol: str = "range", subscriptions: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Generation 1 with these members; the first leads. They wait `joins` ms for it, and no member has sent
        SyncGroup."""
        for one in members:
            self.join(at, at + 1, "", error=79, given=one)
            self.join(
                at + 5, at + 5 + joins, one, 1, leader=members[0], told=members if one == members[0] else "",
                rebalance=rebalance, protocol=protocol, subscriptions=subscriptions,
            )  # fmt: skip

    def pair(self, at: float = 10, joins: float = 2000, rebalance: int = 3000) -> None:
        """A stable group of `a`, who leads, and `b`, in generation 1, from 2,020 ms after on; or `joins` for 2,000."""
        self.gathered("ab", at, joins, rebalance)
        self.sync(at + 6 + joins, at + 9 + joins, "b", 1, "sb")
        self.sync(at + 7 + joins, at + 8 + joins, "a", 1, "sa", gives={"a": "sa", "b": "sb"})

    def close(self, t: float, conn: str, by: str = "us", err: str = "") -> int:
        return self.event(t, "close", conn=conn, by=by, err=err or None)

    def set(self, **fields: object) -> None:
        """Sets the constants of the run, or the scene of the next lines."""
        for name, value in fields.items():
            setattr(self, name, value)

    def declare(self, **constants: int) -> None:
        self.declared = Declared(**constants)

    def repeat(self) -> None:
        """All of it once more, as the scene's repetition, a minute later."""
        first = list(self._events)
        self._times += 1
        for t, _, fields in first:
            again = {**fields, "scene": f"{fields['scene']}-again"}
            if isinstance(again.get("c"), int):
                again["c"] = first.index(next(one for one in first if one[1] == fields["c"])) + len(first)
            self._events.append((t + END_MS, len(self._events), again))

    def judged(self, clause: str) -> ClauseResult:
        return self.results()[clause]

    def results(self) -> dict[str, ClauseResult]:
        end_ms = self._times * END_MS
        self.event(end_ms, "stimulus", body={"what": "the end"})
        control = {"t_from": 0, "late_ns": int(self.late_ms * MS), "rtt_ns": MS // 10}
        self._events.append((end_ms, len(self._events), {"ev": "control", "scene": "", **control}))
        order = sorted(self._events, key=lambda one: (one[0], one[1]))
        place = {number: i for i, (_, number, _) in enumerate(order)}
        events: list[WireEvent] = []
        for i, (t, _, fields) in enumerate(order):
            c = fields.get("c")
            told = {**fields, "c": place[c]} if isinstance(c, int) else fields
            events.append(WireEvent(i=i, t=int(t * MS), **told))  # type: ignore[arg-type] # fields by name
        header = WireHeader("story", {"address": "nowhere"}, self.offered, self.declared)
        return judge_trace(WireTrace("story", header, events, WireEnd(len(events)))).clauses
