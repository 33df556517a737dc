"""A broker with a group in it: the group is stored in one of its logs, and they share the queue of actions."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from wire.broker_machine import BrokerMachine
from wire.broker_scene import P1
from wire.group_machine import GroupMachine
from wire.group_scene import SESSION_MS, GroupScene

STORED_BYTES = 7


class WholeMachine(GroupMachine, BrokerMachine):
    """Both machines at once. A commit of the group, under its lock, may complete a fetch: at the end of the member's
    request, or at the time-out that stored it, not later."""

    def make_group(self) -> GroupScene:
        return GroupScene(self.scene.runtime, self.manager.actions, self.store)

    def store(self) -> None:
        """Append to the second partition, if it is led here."""
        if self.leads[P1]:
            self.sizes[P1].append(STORED_BYTES)
        self.manager.append_records(0, 1, {P1: (STORED_BYTES,)}, lambda results: None)

    def request_ends(self) -> None:
        self.manager.run_actions()

    @rule(by_ms=st.sampled_from((1, 4, 20, 50, SESSION_MS - 1, SESSION_MS)))
    def pass_time(self, by_ms: int) -> None:
        GroupMachine.pass_time(self, by_ms)

    def teardown(self) -> None:
        """In the end no request waits, and no member is left."""
        GroupMachine.teardown(self)
        BrokerMachine.teardown(self)
