"""Every timer of the reference against the dictionary of deadlines, step by step; its reaper; the queue of actions.

Named tests of a wheel try what their author thought of; most bugs of wheels need a boundary, a lag and a third task at
once (interval-inclusive: six steps). Here Hypothesis looks for the program, and prints the shortest.
"""

from reference.stateful.action_queue_machine import ActionQueueMachine
from reference.stateful.reaper_machine import ReaperMachine
from reference.stateful.timer_machine import (
    HASHED,
    HEAP,
    INTRUSIVE,
    INTRUSIVE_CALLS,
    INTRUSIVE_MIXED,
    WHEEL,
    machine_for,
)

TestSystemTimer = machine_for(WHEEL).TestCase
TestHeapTimer = machine_for(HEAP).TestCase
TestHashedWheel = machine_for(HASHED).TestCase
TestIntrusiveTimer = machine_for(INTRUSIVE).TestCase
TestIntrusiveTimerCalls = machine_for(INTRUSIVE_CALLS).TestCase
TestIntrusiveTimerMixed = machine_for(INTRUSIVE_MIXED).TestCase
TestReaperTimer = ReaperMachine.TestCase
TestActionQueue = ActionQueueMachine.TestCase
