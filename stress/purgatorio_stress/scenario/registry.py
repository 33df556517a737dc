"""All scenarios, by name."""

import tomllib
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from importlib.resources import files
from typing import Any, Final

from purgatorio_stress.scenario.buckets import BUCKETS
from purgatorio_stress.scenario.contract import Scenario
from purgatorio_stress.scenario.player import play

_PLAYED: Final = frozenset(
    "operations locks read_write_locks timer_tasks wheel_size reaper before tasks reach finally".split()
)
"""The entries that `player` reads."""


def _scenario(name: str, said: dict[str, Any]) -> Scenario:
    known = {field.name: said[field.name] for field in fields(Scenario) if field.name in said}
    if unknown := said.keys() - known.keys() - _PLAYED:
        raise ValueError(f"scenario {name}: unknown entries {', '.join(sorted(unknown))}")
    for several in ("clauses", "dialects"):
        if several in said:
            known[several] = tuple(said[several].split())
    known["stepping"] = frozenset(said.get("stepping", "").split())
    known.setdefault("threads", len(said.get("tasks", ())) or 2)
    build = BUCKETS.get(name) or partial(play, said)
    return Scenario(name=name, build=build, labels=tuple(said["reach"]), **known)


SCENARIOS: Final[dict[str, Scenario]] = {
    name: _scenario(name, said)
    for name, said in tomllib.loads(files(__package__).joinpath("scenarios.toml").read_text("utf-8")).items()
}
"""In the order in which they are shown."""


def dialects_named(
    text: str, named: Callable[[str], Scenario] = SCENARIOS.__getitem__
) -> list[tuple[str, str]]:
    """`NAME`, in each of its dialects, or `NAME/DIALECT`. Raises KeyError, with the reason, if there is no such
    scenario."""
    name, _, dialect = text.partition("/")
    try:
        known = named(name).dialects
    except KeyError:
        raise KeyError(f"no scenario {name!r}; see `purgatorio explore --list`") from None
    if dialect and dialect not in known:
        raise KeyError(f"{name} has the dialects {', '.join(known)}, not {dialect!r}")
    return [(name, one) for one in ((dialect,) if dialect else known)]
