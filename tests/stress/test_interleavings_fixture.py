"""The pytest fixture that explores a package: tests that fail, that pass, and that are UNKNOWN."""

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "racy_cache"

TEST = """
def test_cache(purgatorio_interleavings):
    purgatorio_interleavings("racy_cache", "cache_adapter:LoadsOnce"{more})
"""


def _outcome(pytester: pytest.Pytester, *args: str, more: str = "", cache: str = "") -> pytest.RunResult:
    for path in EXAMPLE.glob("*.py"):
        shutil.copy(path, pytester.path)
    if cache:
        pytester.makepyfile(racy_cache=cache)
    pytester.makepyfile(TEST.replace("{more}", more))
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", *args)


def test_a_violation_fails_with_the_counterexample(pytester: pytest.Pytester) -> None:
    result = _outcome(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*loaded 2 times*", "*purgatorio explore --replay foreign/racy_cache+*"])


def test_sound_code_passes(pytester: pytest.Pytester) -> None:
    sound = """
        import threading

        class Cache:
            def __init__(self, load):
                self.load, self.items, self.loads, self.lock = load, {}, 0, threading.Lock()

            def get(self, key):
                with self.lock:
                    if key not in self.items:
                        self.loads += 1
                        self.items[key] = self.load(key)
                    return self.items[key]
    """
    _outcome(pytester, cache=sound).assert_outcomes(passed=1)


def test_a_limit_is_unknown_and_no_pass(pytester: pytest.Pytester) -> None:
    sample = ", strategy='random', schedules=1"
    _outcome(pytester, more=sample).assert_outcomes(skipped=1)


def test_unknown_may_fail(pytester: pytest.Pytester) -> None:
    sample = ", strategy='random', schedules=0"
    _outcome(pytester, "--purgatorio-unknown", "fail", more=sample).assert_outcomes(failed=1)
