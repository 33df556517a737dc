"""A module with an object whose state cannot be restored, so that it is loaded again for each run."""

from array import array

KEPT = array("b", [0])
NUMBER = id(KEPT)


class Numbered:
    def thread_a(self) -> None:
        KEPT[0] += 1

    thread_b = thread_a

    def outcome(self) -> int:
        return NUMBER
