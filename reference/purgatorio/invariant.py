"""`check()`: the method of each data structure that checks the invariants of the structure.

Call `check()` only when no other thread is inside the structure, as tests and the explorer do. The cost is
proportional to the size. `check()` changes nothing, and raises `InvariantBroken` with the values.
"""


class InvariantBroken(AssertionError):
    """A structure breaks an invariant of its module. The text has the values."""


def require(holds: bool, text: str) -> None:
    if not holds:
        raise InvariantBroken(text)
