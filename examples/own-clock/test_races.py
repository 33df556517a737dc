"""Runs the programs of `timer_races`. To test your timer, name its package before the module of your adapter."""

import pytest
import timer_races
from test_own_clock import Adapter

PROGRAMS = [
    program.__name__
    for program in timer_races.Program.__subclasses__()
    if hasattr(Adapter, "reset") or "reset" not in {call for call, *_ in program.first}
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_races(program, purgatorio_interleavings):
    purgatorio_interleavings("test_own_clock", f"timer_races:{program}")
