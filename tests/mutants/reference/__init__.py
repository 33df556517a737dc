"""Known bugs of timers and purgatories, each brought back into the reference: what the kill matrix is about.

Also the rows whose mechanism this reference does not have.
"""

from typing import Final

from mutants.reference.completion import COMPLETION_MUTANTS
from mutants.reference.mutant import Mutant
from mutants.reference.timer import TIMER_MUTANTS

MUTANTS: Final[dict[int, Mutant]] = {
    mutant.number: mutant
    for mutant in sorted((*COMPLETION_MUTANTS, *TIMER_MUTANTS), key=lambda mutant: mutant.number)
}
"""By number."""

NOT_APPLICABLE: Final[dict[int, tuple[str, str]]] = {
    43: ("watched-counter-missed-dec", "there is no separate counter: the gauge counts the lists"),
    47: (
        "get-and-set-lost-increment",
        "tolerated: an increment lost in a purge delays the next one by an operation",
    ),
    48: ("interrupt-to-purge", "nothing here interrupts a thread"),
    86: ("run-after-cancel", "not promised: exactly once is the operation's business, as in Kafka"),
    89: ("empty-bit-before-unlink", "there is no occupancy bitmap"),
    91: ("finest-level-first", "there is one queue over the buckets of all levels"),
    100: ("periodic-rearm-in-past", "a period begins when the last run has ended: never in the past"),
}
"""Number: name, reason."""

EQUIVALENT: Final = (
    "offer a bucket to the queue only if it is empty",
    "do not reset a bucket's expiration when it is flushed",
    "start an overflow wheel at the original start instead of the present clock",
    "`expiration <= clock` for `expiration < clock + tick` at a tick of 1",
)
"""Changes that no promise can tell from the reference; they are no mutants."""
