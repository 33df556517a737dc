"""Makes scenes of fetches from `fetch.txt`, a paragraph for each scene. The head of the file has its form."""

import re
from functools import partial
from importlib.resources import files
from typing import Final

from purgatorio_wire.scene.random_scene import parsed, play_rounds
from purgatorio_wire.scene.spec import FOUND, Plays, SceneSpec

ROUNDS: Final[dict[str, Plays]] = {}
"""The functions that run the scenes, by name."""


_HEAD, *_SCENES = files(__package__).joinpath("fetch.txt").read_text(encoding="utf-8").strip().split("\n\n")
for paragraph in _SCENES:
    title, *lines = re.sub(r"([;,])\n {4,}", r"\1 ", paragraph).split("\n")
    name, _, asks = title.partition(": ")
    steps = [line for line in lines if line.startswith("    ") and line.strip()[0] != "#"]
    ROUNDS[name] = partial(play_rounds, rounds=[parsed(line) for line in steps])
    ROUNDS[name].__doc__ = " ".join(line for line in lines if not line.startswith("    "))
    if asks:
        FOUND.append(SceneSpec(name, "fetch", (*asks.split(", "),), ROUNDS[name]))
