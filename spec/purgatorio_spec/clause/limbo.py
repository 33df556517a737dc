"""O5: nothing stays in limbo.

registration.out = 0, with a time-out, not cancelled, its time-out over at the end  =>  a force claimed it
"""

from __future__ import annotations

from purgatorio_spec.clause.declaration import Broken, Clause, Finding
from purgatorio_spec.clause.due import Due, at_the_end, latest_due_t
from purgatorio_spec.clause.lost import may_have_been_given_back
from purgatorio_spec.history.operation import Call, OperationHistory
from purgatorio_spec.history.run import Run
from purgatorio_spec.verdict import KEPT, NO_BOUND, NO_OCCASION, STILL_OPEN, WANT_OF_RECORDS

O5 = Clause(
    "O5",
    "nothing stays in limbo: at the end every operation with a time-out is completed, "
    "unless cancelled by key or shut down",
    formula="registration.out = 0, with a time-out, not cancelled, overdue at the end => some force claimed it",
    records=("try_complete_else_watch", "force_complete"),
    needs_whole=True,
)


@O5.of_operation
def nothing_in_limbo(run: Run, history: OperationHistory) -> Finding:
    """An occasion is an operation with a time-out whose registration returned false, and which was completed or
    overdue at the end. Its time-out counts from the return of its last add, or, where none is recorded, of its
    registration."""
    registration = history.registration
    if registration is None or registration.out != 0 or registration.delay_ns is None or history.cancelled:
        return NO_OCCASION
    if history.claim is not None:
        return KEPT
    if not run.whole:
        return WANT_OF_RECORDS
    due_t = _due_t(history, registration)
    due = Due.NOT_YET if due_t is None else at_the_end(run, due_t)
    if due is Due.NOT_YET or due_t is None:
        return NO_OCCASION
    if history.may_be_claimed or may_have_been_given_back(run, history, registration.keys):
        return STILL_OPEN
    if due is Due.UNBOUNDED:
        return NO_BOUND
    return Broken(
        "never-completed",
        (registration.call_i, registration.end_i),
        "at the end every operation with a time-out is completed, unless cancelled by key or shut down",
        f"its time-out was over at t = {due_t}, {run.facts.end_t - due_t} ns before the end, "
        "and nothing completed it",
    )


def _due_t(history: OperationHistory, registration: Call) -> int | None:
    if history.adds:
        dues = [latest_due_t(add) for add in history.adds]
        known = [due_t for due_t in dues if due_t is not None]
        return max(known) if len(known) == len(dues) else None
    if registration.ret_t is None:
        return None
    return registration.ret_t + max(registration.delay_ns or 0, 0)
