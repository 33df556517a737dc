"""The pytest fixture `purgatorio_interleavings`, with which a test explores the interleavings of a package.

    def test_loads_once(purgatorio_interleavings):
        purgatorio_interleavings("racy_cache", "cache_adapter:LoadsOnce")

Modules next to the test are found first. A violation fails the test with the counterexample and its token. With
UNKNOWN, the test is skipped, or fails with `--purgatorio-unknown=fail`. Until the fixture is used, this module imports
only pytest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from purgatorio_stress.foreign.explored import AdapterResult

_RIGHT: Final = (
    "write the packages one by one, then the adapter: "
    'purgatorio_interleavings("core", "store", "my_adapter:MyAdapter")'
)


@pytest.fixture
def purgatorio_interleavings(request: pytest.FixtureRequest) -> Callable[..., AdapterResult]:
    """`explore(*packages, adapter, strategy="dpor", schedules=20_000, seconds=60.0, early=0, races=False)`. The last
    name is the adapter, MODULE:CLASS. Returns the result if there is no violation."""

    def explore(
        *names: str,
        strategy: str = "dpor",
        schedules: int = 20_000,
        seconds: float = 60.0,
        early: int = 0,
        races: bool = False,
    ) -> AdapterResult:
        pytest.importorskip("greenlet", reason="the explorer needs the extra stress: purgatorio[stress]")
        from purgatorio_spec.verdict import Verdict
        from purgatorio_stress.explorer.result import Limits
        from purgatorio_stress.foreign.explored import explore_foreign, lines_of, table
        from purgatorio_stress.foreign.load import CannotLoad

        if len(names) < 2 or not all(isinstance(one, str) for one in names):
            pytest.fail(
                f"{_RIGHT}, not purgatorio_interleavings({', '.join(map(repr, names))})", pytrace=False
            )
        *packages, adapter = names
        try:
            done = explore_foreign(
                packages, adapter, Limits(schedules, seconds), strategy=strategy, early=early,
                path=[str(request.path.parent), ""], races_count=races,
            )  # fmt: skip
        except CannotLoad as error:
            pytest.fail(str(error), pytrace=False)
        text = "\n".join(lines_of(done))
        if done.verdict is Verdict.VIOLATED:
            folder = os.path.relpath(request.path.parent)
            pytest.fail(f"{text}\n\n{table(done, folder=folder)}", pytrace=False)
        if done.verdict is not Verdict.PASS:
            end = pytest.fail if request.config.getoption("--purgatorio-unknown") == "fail" else pytest.skip
            end(text)
        print(text)  # `pytest -rP` shows what a PASS covers
        return done

    return explore
