"""All scenarios, by name."""

from collections.abc import Callable
from typing import Final

from purgatorio_stress.scenario.completion import COMPLETION
from purgatorio_stress.scenario.contract import Scenario
from purgatorio_stress.scenario.locking import LOCKING
from purgatorio_stress.scenario.timing import TIMING

SCENARIOS: Final[dict[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        *COMPLETION,
        *LOCKING,
        *TIMING,
    )
}
"""In the order in which they are shown."""


def dialects_named(
    text: str, named: Callable[[str], Scenario] = SCENARIOS.__getitem__
) -> list[tuple[str, str]]:
    """`NAME`, in each of its dialects, or `NAME/DIALECT`. KeyError, with the reason, where there is none such."""
    name, _, dialect = text.partition("/")
    try:
        known = named(name).dialects
    except KeyError:
        raise KeyError(f"no scenario {name!r}; see `purgatorio explore --list`") from None
    if dialect and dialect not in known:
        raise KeyError(f"{name} has the dialects {', '.join(known)}, not {dialect!r}")
    return [(name, one) for one in ((dialect,) if dialect else known)]
