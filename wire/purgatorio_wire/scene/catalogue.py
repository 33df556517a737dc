"""The scenes of the standard plan, from all modules of scenes, in order of execution."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from purgatorio_wire.scene import consumer_group, rounds, static_member, topic
from purgatorio_wire.scene import fetch as scene_fetch
from purgatorio_wire.scene import group as scene_group
from purgatorio_wire.scene import share_group as scene_share
from purgatorio_wire.scene import transaction as scene_transactions
from purgatorio_wire.scene.spec import FOUND, SceneSpec
from purgatorio_wire.trace.record import DRAWN

WARM_UPS: Final = (
    ("groups", "refusals"), ("groups", "static-protocols"), ("transactions", "overlapping"), ("shares", "share-woken"),
)  # fmt: skip
"""The areas and scenes that are played once without a recording, in addition to fetches: the first request of each kind
is slow."""
MODULES: Final = (
    scene_share, scene_transactions, scene_group, consumer_group, static_member, scene_fetch, rounds, topic,
)  # fmt: skip
SCENES: Final[Mapping[str, SceneSpec]] = {
    one.name: one
    for one in sorted(FOUND, key=lambda one: (one.alone, one.seconds if one.alone else -one.seconds))
}
"""The standard plan, by name. The long scenes come first, because scenes run concurrently; scenes that stop a broker
run alone and last."""
PATIENT: Final = SceneSpec("patient", DRAWN, ("F3 not-woken",), rounds.ROUNDS["patient"])
"""Run at the same time as the random programs."""


def chosen(only: Collection[str]) -> list[SceneSpec]:
    """The scenes of these areas, scene names or clause ids; all scenes if none is given. Raises KeyError with an
    unknown name."""
    if not only:
        return [*SCENES.values()]
    found: dict[str, SceneSpec] = {}
    for word in only:
        meant = [one for one in SCENES.values() if word in (one.name, one.area, *one.clauses)]
        if not meant:
            raise KeyError(word)
        found |= {one.name: one for one in meant}
    return [one for one in SCENES.values() if one.name in found]
