"""The examples in docstrings say what the code does."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = (
    "purgatorio.arithmetic",
    "purgatorio.timer.intrusive.wheel",
    "purgatorio.timer.wheel",
    "purgatorio_spec.oracle.timer_set",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_right(name: str) -> None:
    """Each of these modules has some."""
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
