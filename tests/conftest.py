"""Options and fixtures that all tests share."""

import gc
import logging
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from golden import Golden
from hypothesis_profiles import CI, SLOW
from purgatorio_conformance import recording
from purgatorio_conformance.protocol.driver import CommandSubject

# `pytest --hypothesis-profile deep` chooses another. `ci` is derandomised, so a red build is red for its change; `deep`
# is many examples a test; `nightly` takes fewer and longer ones, anew each time.
settings.register_profile("ci", CI)
settings.register_profile(
    "deep", deadline=None, max_examples=20_000, stateful_step_count=40, suppress_health_check=SLOW
)
settings.register_profile(
    "nightly", deadline=None, max_examples=3_000, stateful_step_count=80, suppress_health_check=SLOW
)
settings.load_profile("ci")

# Hypothesis tries constants of all modules that happen to be imported, so the examples of a test would depend on the
# files that run beside it. Without them they are the same alone and in the suite. (There is no setting for it.)
providers._get_local_constants = lambda: Constants()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--refresh-golden` writes the golden files instead of comparing them. `--slow` runs the long tests too."""
    parser.addoption("--refresh-golden", action="store_true", help="write golden files anew; read the diff")
    parser.addoption("--slow", action="store_true", help="run the long sets too")


# Workers and the some two hundred processes of the tests write bytecode as Python does by default: where images of
# containers forbid it, each would compile all that it imports, and each worker all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What the collection makes stays: the collector would only look through it again and again.
gc.disable()

# No text is wrapped or cut by the terminal in which the tests run.
os.environ["COLUMNS"] = "80"


SLOW_CASES = Path(__file__).with_name("slow_cases.txt")
"""The ids of slow tests, mostly cases of a parametrized test that has quicker cases too."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests of `slow_cases.txt`, and skips slow tests unless --slow is given.

    Raises: `UsageError`, if whole files were collected and an id of `slow_cases.txt` is no test of them.
    """
    cases = {line for line in SLOW_CASES.read_text().splitlines() if not line.startswith("#")}
    if not any("::" in argument for argument in config.args):
        files = {item.nodeid.split("::")[0] for item in items}
        lost = {one for one in cases if one.split("::")[0] in files} - {item.nodeid for item in items}
        if lost:
            raise pytest.UsageError(f"tests/slow_cases.txt: no such test: {', '.join(sorted(lost))}")
    for item in items:
        if item.nodeid in cases:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") and not config.getoption("--slow"):
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


def pytest_collection_finish() -> None:
    """The collector works from here on."""
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def looked_through_once() -> None:
    """Excludes the objects that exist before the tests of a module from garbage collections. (By module, because a
    benchmark unfreezes all objects.)"""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def driven_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are driven by this interpreter, not by one each that would import all of it again, and hear of what a
    test patches (`stress/test_apart.py` has them driven as the command does)."""
    monkeypatch.setattr(recording, "run_apart", CommandSubject.run_seeded)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with its golden file."""
    return Golden(bool(request.config.getoption("--refresh-golden")))


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: some tests wait, for a timer, a JVM or a child. Each worker collects all tests."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def _log_of_the_reference() -> None:
    """The kill matrix silences this logger in its process: the next test hears it again."""
    logging.getLogger("purgatorio").disabled = False
