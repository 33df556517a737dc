"""The connections of a scene, its waits, and requests in versions that client and broker support."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from purgatorio_wire.client.connection import CLIENT, Address, Connection, Got, Sent, connect
from purgatorio_wire.client.recorder import Recorder
from purgatorio_wire.history.history import integer, items
from purgatorio_wire.scene.broker import Broker, SceneLost, SceneSkipped, Second
from purgatorio_wire.trace.record import Body

OF_MEMBERS: Final = frozenset({"join_group", "sync_group", "heartbeat", "leave_group"})
"""What a member lives by."""
SESSION_MS: Final = 2000
SOFTWARE: Final = {"client_software_name": "purgatorio", "client_software_version": "1"}
"""The client name in ApiVersions: Kafka refuses an empty one (KIP-511)."""


@dataclass(slots=True)
class Asker:
    """One scene in one repetition, and what every request of it takes."""

    broker: Broker
    recorder: Recorder
    name: str
    rng: random.Random
    pace: float = field(init=False)
    """The run's when the scene began: its waits and sessions fit together."""
    oldest: bool = False
    """Its members are as old as the broker takes them."""
    unasked: dict[str, str] = field(default_factory=dict)
    """The clauses of which this broker cannot be asked, and why."""
    _opened: list[Connection] = field(default_factory=list)
    _admin: Connection | None = None
    _controller: Connection | None = None
    _count: int = 0

    def __post_init__(self) -> None:
        self.pace = self.broker.pace

    def wait_ms(self, milliseconds: float) -> int:
        """A wait of the plan, in the run's pace."""
        return int(milliseconds * self.pace)

    @property
    def session_ms(self) -> int:
        """The session time-out of its members, the shortest that a slow machine lets us judge and the broker takes."""
        most_ms = self.broker.declared.session_most_ms
        wanted_ms = max(self.broker.session_ms, self.wait_ms(SESSION_MS))
        return wanted_ms if most_ms is None else min(wanted_ms, most_ms)

    @staticmethod
    async def pause(milliseconds: float) -> None:
        await asyncio.sleep(milliseconds / 1000)

    async def tries(self, pause_ms: float, times: int = 0, *, within_ms: float = 0) -> AsyncIterator[None]:
        """So many tries, or as many as begin within that time, with a pause after each."""
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
        """A new connection of the scene, to the second broker or the address that is given, as this client; SceneLost
        above the bound of the run."""
        if self.broker.connections >= self.broker.most_connections:
            raise SceneLost(f"{self.broker.connections} connections are open, which is the bound")
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
        self._admin = self._controller = None

    async def admin(self) -> Connection:
        """The scene's connection for topics and metadata."""
        if self._admin is None or self._admin.closed:
            self._admin = await self.open("admin")
        return self._admin

    async def controller(self) -> Connection:
        """The scene's connection for what the controller does with topics."""
        if self.broker.controller is None:
            return await self.admin()
        if self._controller is None or self._controller.closed:
            self._controller = await self.open("controller", address=self.broker.controller)
        return self._controller

    def need(self, *apis: str, least: int = 0) -> None:
        """SceneSkipped where the broker does not offer one of these, or in no such version that is known here."""
        for api in apis:
            if not self.offers(api, least=least):
                raise SceneSkipped(self._lack(api))

    def offers(self, api: str, *clauses: str, least: int = 0) -> bool:
        """Whether the broker offers it, in that version at least; if not, it cannot be asked of these clauses."""
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
        """This broker cannot be asked of these clauses here: nothing is open if no row decides them."""
        self.unasked = dict.fromkeys(clauses, why) | self.unasked

    def send(
        self, conn: Connection, api: str, values: Mapping[str, object], *, answered: bool = True
    ) -> Sent:
        """Send a request in a version that both sides speak."""
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
        """Wait for requests that are on their way. NoAnswer where one is not answered."""
        await asyncio.gather(*sent)

    def question(self, conn: Connection) -> Sent:
        """What no broker has to wait for with its answer: which versions it offers."""
        return self.send(conn, "api_versions", SOFTWARE)

    def unique(self, what: str) -> str:
        """A name that no other client has."""
        self._count += 1
        return f"purgatorio-{self.broker.run}-{self.name.replace('#', '-')}-{what}{self._count}"

    def stimulus(self, what: str, **more: object) -> None:
        """Record what is done next to the connections."""
        self.recorder.add("stimulus", scene=self.name, body={"what": what, **more})


async def settle(*sent: Sent, seconds: float | None = None) -> bool:
    """Wait for answers, so long at most; whether all came."""
    waits = (one.within(one.patience_s if seconds is None else seconds) for one in sent)
    results = await asyncio.gather(*waits, return_exceptions=True)
    return not any(isinstance(one, BaseException) for one in results)


def codes(body: Body | None) -> int:
    """The error code of an answer or a part of it."""
    return integer(body, "error_code")


def first_of(body: Body | None, name: str) -> Body | None:
    """The first of a list in an answer, or nothing."""
    return next(items(body, name), None)


def first_append(body: Body | None) -> Body | None:
    """What a produce is answered of the first partition of its first topic."""
    return first_of(first_of(body, "responses"), "partition_responses")
