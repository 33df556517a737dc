"""Mutants of transactions: visibility, the end, and the committed offsets (R1 to R8)."""

from collections.abc import Callable
from functools import partial
from typing import Final

from mutants.broker.client_visible_mutant import felt, later, nothing, told
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.sequences import Sequences
from purgatorio_broker.network.transactions import Ending, Transactions
from purgatorio_stress.mutant.patch import Patch, edited, wrapped


def _ended_before_its_markers(write: Callable[..., None], self: Node, ending: Ending) -> None:
    self.transactions.ended(ending)
    later(1.0, partial(write, self, ending))


MUTANTS: Final = (
    *told("transactions"),
    felt("ended-before-its-markers", "EndTxn is answered a second before the markers are written",
         "R2 R3 R4",
         wrapped(Node, "_write_markers", _ended_before_its_markers)),
    felt("former-appends", "a fenced producer can append", "R5",
         edited(Transactions, "writes", "if written.producer_epoch != producer.epoch:",
                "if written.producer_epoch < producer.epoch:\n"
                "            producer.appending += 1\n"
                "            return ErrorCode.none\n"
                "        if written.producer_epoch != producer.epoch:"),
         Patch(Sequences, "fence", nothing)),
    felt("unstable-not-told", "OffsetFetch with require_stable returns old offsets while a transaction is open", "R7",
         Patch(Transactions, "unstable", lambda self, group: set())),
    felt("never-timed-out", "an open transaction is never aborted at its timeout", "R2 R4",
         Patch(Transactions, "abort_overdue", nothing)),
)  # fmt: skip
