"""The outcomes that the explorer reaches in each scenario: all there are, where it searched completely.

Written from `explored_outcomes`; a test makes it anew. A scenario that is missing was too large to be searched, and
its outcomes are not held against any list.
"""

from collections.abc import Mapping
from typing import Final

__all__ = ["REACHABLE"]

REACHABLE: Final[Mapping[str, frozenset[str]]] = {
    "registration-against-event/pending-flag": frozenset(
        {
            "completed by the event",
            "completed by the registration",
        }
    ),
    "registration-against-event/locked": frozenset(
        {
            "completed by the event",
            "completed by the registration",
        }
    ),
    "two-events/pending-flag": frozenset(
        {
            "the early event saw it ready",
            "the event completed it",
        }
    ),
    "two-events/locked": frozenset(
        {
            "the early event saw it ready",
            "the event completed it",
        }
    ),
    "three-events/pending-flag": frozenset(
        {
            "an early event completed it",
            "none of its marks",
        }
    ),
    "three-events/locked": frozenset(
        {
            "an early event completed it",
            "none of its marks",
        }
    ),
    "not-completable/pending-flag": frozenset(
        {
            "nobody completed it",
        }
    ),
    "not-completable/locked": frozenset(
        {
            "nobody completed it",
        }
    ),
    "force-against-force/pending-flag": frozenset(
        {
            "one won",
            "two won",
        }
    ),
    "force-against-force/locked": frozenset(
        {
            "one won",
            "two won",
        }
    ),
    "event-against-expiry/pending-flag": frozenset(
        {
            "completed by the event",
            "expired",
        }
    ),
    "event-against-expiry/locked": frozenset(
        {
            "completed by the event",
            "expired",
        }
    ),
    "emptying-key/locked": frozenset(
        {
            "both completed",
        }
    ),
    "purge-against-watch/pending-flag": frozenset(
        {
            "none of its marks",
            "the purge unlinked one",
        }
    ),
    "purge-against-watch/locked": frozenset(
        {
            "none of its marks",
            "the purge unlinked one",
        }
    ),
    "key-cancel-against-completion/pending-flag": frozenset(
        {
            "completed",
            "completed, given back",
            "given back",
        }
    ),
    "key-cancel-against-completion/locked": frozenset(
        {
            "completed",
            "completed, given back",
            "given back",
        }
    ),
    "re-entrant-completion/pending-flag": frozenset(
        {
            "both completed",
        }
    ),
    "re-entrant-completion/locked": frozenset(
        {
            "both completed",
        }
    ),
    "completed-while-watching/pending-flag": frozenset(
        {
            "completed between two keys",
            "none of its marks",
        }
    ),
    "foreign-lock-holder/locked": frozenset(
        {
            "completed",
        }
    ),
    "two-groups/locked": frozenset(
        {
            "both completed",
        }
    ),
    "callback-needs-group/pending-flag": frozenset(
        {
            "answered",
        }
    ),
    "callback-needs-group/locked": frozenset(
        {
            "answered",
        }
    ),
    "registration-under-group/pending-flag": frozenset(
        {
            "completed",
        }
    ),
    "registration-under-group/locked": frozenset(
        {
            "completed",
        }
    ),
    "try-needs-group/pending-flag": frozenset(
        {
            "completed",
        }
    ),
    "try-needs-group/locked": frozenset(
        {
            "completed",
        }
    ),
    "reader-writer-chain/pending-flag": frozenset(
        {
            "both completed",
        }
    ),
    "reader-writer-chain/locked": frozenset(
        {
            "both completed",
        }
    ),
    "cancel-against-flush/pending-flag": frozenset(
        {
            "did not fire",
        }
    ),
    "add-against-flush/pending-flag": frozenset(
        {
            "added after the flush",
            "flushed both",
        }
    ),
    "remove-against-move/pending-flag": frozenset(
        {
            "removed after the move, removed before the move",
            "removed before the move",
        }
    ),
    "overflow-twice/pending-flag": frozenset(
        {
            "both fired",
        }
    ),
    "add-against-drain/pending-flag": frozenset(
        {
            "both fired",
        }
    ),
    "moved-twice/pending-flag": frozenset(
        {
            "fired",
        }
    ),
    "completed-before-timer/pending-flag": frozenset(
        {
            "completed",
        }
    ),
    "completed-before-timer/locked": frozenset(
        {
            "completed",
        }
    ),
    "shutdown-against-registration/pending-flag": frozenset(
        {
            "completed",
        }
    ),
    "shutdown-against-registration/locked": frozenset(
        {
            "completed",
        }
    ),
    "offer-against-poll/pending-flag": frozenset(
        {
            "polled",
        }
    ),
    "earlier-offer-against-poll/pending-flag": frozenset(
        {
            "polled",
        }
    ),
    "cancel-against-add/pending-flag": frozenset(
        {
            "cancelled",
            "waits",
        }
    ),
}
