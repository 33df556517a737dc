"""The reference as foreign code: purgatorio explore --package purgatorio --adapter reference_adapter:Registration"""

from purgatorio import DelayedOperation, MockTimer, Purgatory


class Operation(DelayedOperation):
    def __init__(self):
        super().__init__(1 << 40)
        self.ready = False
        self.by = []

    def try_complete(self):
        return self.force_complete() if self.ready else False

    def on_complete(self):
        self.by.append(1)


class Registration:
    """An operation registers while the event that it waits for comes."""

    def __init__(self):
        self.purgatory = Purgatory("peer", MockTimer(), shards=1, reaper=False, timer_enabled=False)
        self.operation = Operation()
        self.registered = None

    def thread_register(self):
        self.registered = self.purgatory.try_complete_else_watch(self.operation, ["k"])

    def thread_event(self):
        self.operation.ready = True
        self.purgatory.check_and_complete("k")

    def check(self):
        assert self.operation.is_completed(), "the event is lost"
        assert len(self.operation.by) == 1

    def outcome(self):
        return "completed by the registration" if self.registered else "completed by the event"


class WithoutSecondTry(Registration):
    """With a known bug, KAFKA-1952: no second try after watching."""

    def __init__(self):
        super().__init__()
        type(self.operation.dialect).register = register_without_second_try


def register_without_second_try(self, operation, keys, watch, count):
    if operation.try_complete():
        return True
    for key in keys:
        if operation.is_completed():
            return False
        watch(key, operation)
    count()
    return False
