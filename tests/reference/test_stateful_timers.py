"""Every timer of the reference against the dictionary of deadlines, step by step; its reaper; the queue of actions.

Named tests of a wheel try what their author thought of; most bugs of wheels need a boundary, a lag and a third task at
once (interval-inclusive: six steps). Here Hypothesis looks for the program, and prints the shortest.
"""

from __future__ import annotations

from hypothesis import given, settings

from purgatorio_stress.stateful.action_queue_machine import ActionQueueMachine
from purgatorio_stress.stateful.reaper_machine import ReaperMachine
from purgatorio_stress.stateful.timer_machine import (
    HASHED,
    HEAP,
    INTRUSIVE,
    INTRUSIVE_CALLS,
    INTRUSIVE_MIXED,
    WHEEL,
    machine_for,
)
from purgatorio_stress.stateful.timer_programs import Program, aligned_programs, run_program

TestSystemTimer = machine_for(WHEEL).TestCase
TestHeapTimer = machine_for(HEAP).TestCase
TestHashedWheel = machine_for(HASHED).TestCase
TestIntrusiveTimer = machine_for(INTRUSIVE).TestCase
TestIntrusiveTimerCalls = machine_for(INTRUSIVE_CALLS).TestCase
TestIntrusiveTimerMixed = machine_for(INTRUSIVE_MIXED).TestCase
TestReaperTimer = ReaperMachine.TestCase
TestActionQueue = ActionQueueMachine.TestCase


@settings(max_examples=500)
@given(program=aligned_programs())
def test_aligned_programs(program: Program) -> None:
    """Programs whose every time lies on the end of a level: the one place where `<=` for `<` in a level shows."""
    run_program(program)


@settings(max_examples=500)
@given(program=aligned_programs())
def test_aligned_programs_on_the_wheel_for_use(program: Program) -> None:
    """The same on its levels, of 2 and of 4 buckets: tasks, and every other one a function."""
    run_program(program, INTRUSIVE[1])
    run_program(program, INTRUSIVE_MIXED[1])
