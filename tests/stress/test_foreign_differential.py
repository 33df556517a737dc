"""Rewritten code behaves as the original: CPython's own tests have the same results."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

QUICK = "test_augassign test_except_star test_global test_named_expressions test_super test_userlist test_with".split()
SLOW = (
    "test_class test_collections test_compare test_contains test_coroutines test_dataclasses test_decorators "
    "test_descr test_dict test_enum test_generators test_grammar test_keywordonlyarg test_list test_patma "
    "test_positional_only_arg test_property test_raise test_scope test_set test_userdict".split()
)

SEES_THE_REWRITER = re.compile(
    # Line events; frames and the stack of a call; the life of an object that a location keeps; doctests, which search
    # for the module of their caller; warnings of the compiler; the `__hash__` of each class; real threads.
    r"TestTracing|OriginTracking|StackTrace|TestTracebackType|test_frame_resurrect|test_refcycle|CellLeak|__test__|"
    r"test_container_iterator|test_assert_warning|test_hash_no_args|test_hash_rules|test_missing_exceptions_reset|"
    r"test_unique_composite|DictProxyTests|test_subclass_propagation|^collections\."
)


def results(how: str, modules: list[str]) -> dict[str, str]:
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("differential_child.py")), how]
    done = subprocess.run([*command, *(f"test.{one}" for one in modules)], capture_output=True, text=True)
    assert done.stdout, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return {test: kind for test, kind in found.items() if not SEES_THE_REWRITER.search(test)}


@pytest.mark.parametrize("how", ["rewritten", "live"])
@pytest.mark.parametrize(
    "modules", [QUICK, *(pytest.param([one], marks=pytest.mark.slow) for one in SLOW)], ids=["quick", *SLOW]
)
def test_the_tests_of_cpython_have_the_same_results(modules: list[str], how: str) -> None:
    """`live` is a run without a switch of threads."""
    for one in modules:
        try:
            found = importlib.util.find_spec(f"test.{one}")
        except ImportError:
            found = None
        if found is None:
            pytest.skip(f"this Python has no package `test` with {one}")
    original = results("plain", modules)
    assert len(original) > 3
    assert results(how, modules) == original
