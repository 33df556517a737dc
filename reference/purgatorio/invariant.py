"""`check()`: every structure of this package can be asked whether its invariants hold.

A `check()` is for quiet moments: tests and explorers call it when no other thread is inside the structure. It
costs time proportional to the size, changes nothing, and raises `InvariantBroken` with the values.
"""


class InvariantBroken(AssertionError):
    """A structure is not what its module promises; the text has the values."""


def require(holds: bool, text: str) -> None:
    if not holds:
        raise InvariantBroken(text)
