"""The decorator that makes a function a scene, and describes the scene: `@scene("fetch", "F1, F2 late")`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from purgatorio_wire.scene.play import Play
from purgatorio_wire.sentence import WAYS

Plays = Callable[[Play], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SceneSpec:
    """A scene: its name, its area, the clauses that it tests (`Scene.asked`), and its time limit in seconds."""

    name: str
    area: str
    asks: tuple[str, ...]
    """The clauses for which a decided row is due. Each may have a cause (the way in which the clause may break)."""
    play: Plays
    seconds: float = 40.0
    alone: bool = False
    """The scene runs when the others have ended: because it stops brokers, delays other responses by its many
    requests, or could not see a violation if other scenes send requests."""
    takes: float = 10.0
    """The approximate duration on an idle machine, in seconds."""

    def __post_init__(self) -> None:
        """Raises ValueError if the scene tests an unknown clause or kind, which would stay UNKNOWN forever."""
        for ask in self.asks:
            clause, _, way = ask.partition(" ")
            if clause not in WAYS:
                raise ValueError(f"scene {self.name} tests {clause}, which is no clause of the wire")
            if way not in WAYS[clause]:
                raise ValueError(f"scene {self.name} tests {clause} {way}: see `purgatorio clause {clause}`")

    @property
    def clauses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(ask.partition(" ")[0] for ask in self.asks))

    @property
    def promise(self) -> str:
        return " ".join((self.play.__doc__ or "").split())


FOUND: Final[list[SceneSpec]] = []
"""The scenes of the modules that are loaded."""


def scene(
    area: str, asks: str, *, seconds: float = 40.0, alone: bool = False, takes: float = 10.0, name: str = ""
) -> Callable[[Plays], Plays]:
    """A decorator that makes a function a scene of the plan (see `SceneSpec`). By default, the scene has the function's
    name."""

    def found(play: Plays) -> Plays:
        called = name or play.__name__.replace("_", "-")
        FOUND.append(SceneSpec(called, area, (*asks.split(", "),), play, seconds, alone, takes))
        return play

    return found
