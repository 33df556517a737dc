"""`Asker`: opens the connections of a scene, waits, and sends requests in versions that client and broker support."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.client.connection import CLIENT, Address, Connection, Got, Sent, connect
from purgatorio_wire.client.recorder import UNNUMBERED, WireRecorder
from purgatorio_wire.history.history import integer, items
from purgatorio_wire.scene.broker import Broker, SceneLost, SceneSkipped, Second
from purgatorio_wire.trace.record import Body, WireEvent

OF_MEMBERS: Final = frozenset({"join_group", "sync_group", "heartbeat", "leave_group"})
"""The requests that extend a member's session."""
SESSION_MS: Final = 2000
SOFTWARE: Final = {"client_software_name": "purgatorio", "client_software_version": "1"}
"""The client name in ApiVersions: Kafka refuses an empty one (KIP-511)."""


@dataclass(slots=True)
class Asker:
    """One repetition of a scene: its connections, its waits, and its requests."""

    broker: Broker
    recorder: WireRecorder
    name: str
    rng: random.Random
    pace: float = field(init=False)
    """The pace of the run at the start of the scene. All waits and sessions of the scene use this pace."""
    oldest: bool = False
    """Whether the requests of members have the lowest versions that the broker supports."""
    unasked: dict[str, str] = field(default_factory=dict)
    """The clauses that this scene cannot test on this broker, each with the reason."""
    _opened: list[Connection] = field(default_factory=list)
    _admin: Connection | None = None
    _controllers: dict[Address, Connection] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self.pace = self.broker.pace

    def wait_ms(self, milliseconds: float) -> int:
        """A wait in milliseconds, multiplied by the pace."""
        return int(milliseconds * self.pace)

    @property
    def session_ms(self) -> int:
        """The session timeout of the members: the shortest that the broker accepts and that can be judged on a slow
        machine."""
        most_ms = self.broker.declared.session_most_ms
        wanted_ms = max(self.broker.session_ms, self.wait_ms(SESSION_MS))
        return wanted_ms if most_ms is None else min(wanted_ms, most_ms)

    @staticmethod
    async def pause(milliseconds: float) -> None:
        await asyncio.sleep(milliseconds / 1000)

    async def tries(self, pause_ms: float, times: int = 0, *, within_ms: float = 0) -> AsyncIterator[None]:
        """Yields this many times, or until `within_ms` has passed, with a pause after each."""
        ends_t = self.recorder.now() + within_ms * 1e6
        while times > 0 or self.recorder.now() < ends_t:
            times -= 1
            yield
            await self.pause(pause_ms)

    async def open(
        self,
        label: str = "c",
        second: Second | None = None,
        address: Address | None = None,
        client: str = CLIENT,
    ) -> Connection:
        """Opens a connection of the scene: to the second broker, to the given address, or to the broker of the run.
        Raises SceneLost above the limit of connections of the run."""
        if self.broker.connections >= self.broker.most_connections:
            why = self.broker.connections_setting or "the limit of this client"
            raise SceneLost(f"{self.broker.connections} connections are open, and no more are allowed: {why}")
        self.broker.connections += 1
        self._count += 1
        address = second.address if second is not None else address or self.broker.address
        try:
            name = f"{label}{self._count}@{self.name}"
            made = await connect(address, name, self.name, self.recorder, client)
        except BaseException:
            self.broker.connections -= 1
            raise
        self._opened.append(made)
        if second is not None:
            self.stimulus("at-second", conn=made.name)
        return made

    async def open_many(self, count: int, label: str = "c") -> list[Connection]:
        return list(await asyncio.gather(*(self.open(label) for _ in range(count))))

    def close_all(self) -> None:
        for one in self._opened:
            one.close()
        self.broker.connections -= len(self._opened)
        self._opened.clear()
        self._controllers.clear()
        self._admin = None

    async def admin(self) -> Connection:
        if self._admin is None or self._admin.closed:
            self._admin = await self.open("admin")
        return self._admin

    async def controller(self) -> Connection:
        there = await self.controller_address()
        if there == self.broker.address:
            return await self.admin()
        if there not in self._controllers or self._controllers[there].closed:
            self._controllers[there] = await self.open("controller", address=there)
        return self._controllers[there]

    async def controller_address(self) -> Address:
        """The address of the controller. (With ZooKeeper, another broker may be the controller, and a stop of that
        broker changes this.)"""
        if not self.broker.controllers:
            return self.broker.address
        asked = {"topics": [], "allow_auto_topic_creation": False}
        controls = integer((await self.ask(await self.admin(), "metadata", asked)).body, "controller_id", -1)
        return self.broker.controllers.get(controls, self.broker.address)

    def need(self, *apis: str, least: int = 0) -> None:
        """Raises SceneSkipped if the broker does not offer one of these APIs in a version that this client knows."""
        for api in apis:
            if not self.offers(api, least=least):
                raise SceneSkipped(self._lack(api))

    def offers(self, api: str, *clauses: str, least: int = 0) -> bool:
        """Returns whether the broker offers the API, in this version or a later version. If not, the scene cannot test
        these clauses."""
        version = self._spoken(api)
        if version is not None and version >= least:
            return True
        self.cannot(self._lack(api), *clauses)
        return False

    def _spoken(self, api: str) -> int | None:
        return self.broker.version(api, oldest=self.oldest and api in OF_MEMBERS)

    def _lack(self, api: str) -> str:
        offered = self.broker.offered.get(api)
        said = "does not offer it" if offered is None else f"offers v{offered[0]} to v{offered[1]} only"
        return f"{api}: {self.broker.refuses.get(api) or f'the broker {said}'}"

    def cannot(self, why: str, *clauses: str) -> None:
        """Records that this scene cannot test these clauses on this broker. Without a decided row, they are SKIPPED."""
        self.unasked = dict.fromkeys(clauses, why) | self.unasked

    def send(
        self, conn: Connection, api: str, values: Mapping[str, object], *, answered: bool = True
    ) -> Sent:
        """Sends a request in a version that the client and the broker support."""
        spoken = self._spoken(api)
        if spoken is None:
            self.need(api)
        assert spoken is not None
        return conn.send(api, spoken, values, answered=answered)

    async def ask(
        self, conn: Connection, api: str, values: Mapping[str, object], seconds: float | None = None
    ) -> Got:
        sent = self.send(conn, api, values)
        return await sent.within(sent.patience_s if seconds is None else seconds)

    @staticmethod
    async def ask_all(*sent: Sent) -> None:
        """Waits for the responses to sent requests. Raises NoAnswer if a response is missing."""
        await asyncio.gather(*sent)

    def question(self, conn: Connection) -> Sent:
        """Sends ApiVersions: a request that no broker delays."""
        return self.send(conn, "api_versions", SOFTWARE)

    def unique(self, what: str) -> str:
        self._count += 1
        return f"purgatorio-{self.broker.run}-{self.name.replace('#', '-')}-{what}{self._count}"

    def stimulus(self, what: str, **more: object) -> None:
        """Records an event that is not a request, such as a signal to a broker."""
        told = {"what": what, **more}
        self.recorder.add(WireEvent(UNNUMBERED, self.recorder.now(), "stimulus", scene=self.name, body=told))


async def settle(*sent: Sent, seconds: float | None = None) -> bool:
    """Waits for responses for at most this time. Returns whether all came."""
    waits = (one.within(one.patience_s if seconds is None else seconds) for one in sent)
    results = await asyncio.gather(*waits, return_exceptions=True)
    return not any(isinstance(one, BaseException) for one in results)


def codes(body: Body | None) -> int:
    """The error code of a response, or of a part of it."""
    return integer(body, "error_code")


def first_of(body: Body | None, name: str) -> Body | None:
    """The first element of a list in a response, or None."""
    return next(items(body, name), None)


def first_append(body: Body | None) -> Body | None:
    """The part of a Produce response about the first partition of the first topic."""
    return first_of(first_of(body, "responses"), "partition_responses")
