"""The description of a scene, written above its function: `@scene("fetch", "F1, F2 late")`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.clause.registry import WIRE_CLAUSES
from purgatorio_wire.history.violation_kind import WAYS
from purgatorio_wire.scene.play import Play

Plays = Callable[[Play], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """A scene: what it is called, its area, what it asks (`Scene.asked`), and its bound in seconds."""

    name: str
    area: str
    asks: tuple[str, ...]
    """Clauses, each alone or with the way in which it may break, of which a row is due."""
    play: Plays
    seconds: float = 40.0
    alone: bool = False
    """Played when the others have ended: it stops brokers, its crowd of requests would delay their answers, or their
    requests would make good what it must see."""
    takes: float = 10.0
    """Seconds that it takes on a quiet machine, about."""

    def __post_init__(self) -> None:
        """ValueError where it asks what no judge knows: that would stay UNKNOWN for ever."""
        for ask in self.asks:
            clause, _, way = ask.partition(" ")
            if clause not in WIRE_CLAUSES:
                raise ValueError(f"scene {self.name} asks for {clause}, which is no clause of the wire")
            if way not in WAYS:
                raise ValueError(f"scene {self.name} asks for {clause} {way}, which is no way to break it")

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(ask.partition(" ")[0] for ask in self.asks))

    @property
    def promise(self) -> str:
        """What it plays, in its own words."""
        return " ".join((self.play.__doc__ or "").split())


FOUND: Final[list[SceneSpec]] = []
"""The scenes of the modules that are loaded."""


def scene(
    area: str, asks: str, *, seconds: float = 40.0, alone: bool = False, takes: float = 10.0, name: str = ""
) -> Callable[[Plays], Plays]:
    """Make a function a scene of the plan, by its own name unless it has another: see `SceneSpec`."""

    def found(play: Plays) -> Plays:
        called = name or play.__name__.replace("_", "-")
        FOUND.append(SceneSpec(called, area, (*asks.split(", "),), play, seconds, alone, takes))
        return play

    return found
