"""The page `docs/clauses.md`, made from the registry: `pytest tests/tidy/test_docs.py --refresh-golden` writes it.

And the decision tables, as they stand in `docs/measured/broker-tables.md`.
"""

from __future__ import annotations

from collections.abc import Iterable

from purgatorio_pipeline.report.markdown_text import table
from purgatorio_spec.clause.declaration import Clause
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_spec.profile import PROFILES
from purgatorio_wire.table.catalogue import BROKER_CLAUSES, TABLES, Table

_HEAD = """# Clauses

<!-- Made from the registry by `pytest tests/tidy/test_docs.py --refresh-golden`. Do not edit by hand. -->

After this page you know what each clause promises, and when the clause is judged. A *clause* is one promise with an id.
The [glossary](glossary.md) explains the other terms. `purgatorio clause ID` prints one clause.

The clauses with a section of their own (O1 to O7, P1, P2, P4, T1 to T5, T8 to T12) are judged from a trace. Below each
clause, *Profiles* names the profiles (sets of clauses) that contain the clause. *Needs* lists the functions that the
trace must record, and the constants that the header must give. If a function or a constant is missing, the clause is
SKIPPED. The *header* is the first record of a trace. The *end record* is the last: a trace without an end record was
cut off. The end record says how many records the recorder dropped. `advance_clock` is the call that runs the due tasks
of a timer. T8 to T10 are judged only if the trace declares periodic tasks. T11 is judged only if the trace declares
resets. T12 is judged only if the header has the field `turn`. (If a task adds another task without a delay, `turn` says
when this new task runs: in the same `advance_clock`, or in the next.)

An *occasion* is a case in which the clause could be broken. If a run has no occasion of a clause, the clause is
UNKNOWN. But if a clause is about a call that the program never made, such as a cancel, the clause is SKIPPED.

In virtual time, only the driver moves the clock, and a task can run only inside an `advance_clock`. So the clock may
pass the deadline of a task before the task can run. The task is not late if it runs inside the first `advance_clock`
that moves the clock to (deadline + `late_ns`) or beyond. The formulas use these words:

| word | meaning |
| --- | --- |
| `x.call`, `x.ret`, `x.out`, `x.t` | call, return, result and time of x; `a.ret < b.call`: a ended before b began |
| `ready`, `ready.t_call` | the event that makes the operation ready; the earliest time at which the operation can \
have become ready |
| registration | a call of `try_complete_else_watch` |
| check | a call of `check_and_complete` |
| try, force | a call of `try_complete`; a call of `force_complete` |
| done, fire | a run of `on_complete`; a run of a task (`timer_fire`) |
| expiry | the `timer_fire` of the task that is the time-out of an operation. If fires are not recorded: a completion \
after which `on_expiration` runs on the same thread |
| add, cancel | a call of `timer_add`; a call of `timer_cancel` |
| claim | the `force_complete` that completes the operation |
| `early_ns`, `late_ns` | two durations in the header: a task may fire at most `early_ns` before its deadline, and at \
most `late_ns` after its deadline |
| cause (of a fire) | an add A that began before the fire, if no later add or cancel replaces A. A later call \
replaces A if three things are true: the later call began after A had returned; the later call returned before the \
fire; the later call returned before (deadline of A - `early_ns`). A cancel that returned 0 replaces nothing |
| under check(k) | inside the call of the check, and on its thread. *Directly* under: under the check, and not inside \
another purgatory call that is itself inside the check |
| live operation | an operation that is registered and not completed |
| entry | one operation in the list of one key |
| `f(n)`, P | the n-th fire of a periodic task (counted from 0), and the period of the task |
| reading | a `gauge` or `quiesce` event. A reading has the sizes `watched` (number of entries), `delayed` (tasks \
in the timer) and `keys` (keys that have a list). A `quiesce` is recorded when no work is in progress |
| at rest | at a `quiesce`; or at a `gauge`, if no other call is open and no other event was recorded in the 200 ms \
before |
| overdue at the end | If the header has `late_ns`, a task is overdue in two cases: the trace ends after (deadline + \
`late_ns`), or a `quiesce` came at or after (deadline + d), where d is the smaller of `late_ns` and 200 ms. If the \
header has no `late_ns`, a task is overdue if a `quiesce` came at least two ticks after the deadline. If the header \
has no `late_ns`, there is no such `quiesce`, and the trace ends more than 10 ms after the deadline, the clause is \
UNKNOWN. In all other cases, the task is not overdue |

[A state machine](models.md#the-operation-as-a-state-machine) shows the calls that O1, O2, O3 and O6 allow in each
state. Two groups of clauses are judged without a trace: the [clauses of the code](#clauses-of-the-code) and the
[clauses of the broker](#clauses-of-the-broker).

"""


def page() -> str:
    sections = [_section(clause) for clause in CLAUSES.values()]
    return _HEAD + "\n".join([*sections, _code(), _broker(), _profiles()])


def _section(clause: Clause) -> str:
    without = [name for name, profile in PROFILES.items() if clause.id not in profile.clauses]
    profiles = [name for name in PROFILES if name not in without]
    few = len(profiles) < len(without)
    holds = ", ".join(profiles) if few else "all" + (f" except {', '.join(without)}" if without else "")
    needs = [f"`{name.replace('|', '` or `')}`" for name in clause.records]
    needs += [f"header `{name}`" for name in clause.constants]
    texts = [" ".join((judge.__doc__ or "").split()) for judge in clause.judges.values()]
    formula = clause.formula.replace(";  ", "\n")
    whole = (
        " If the end record is missing or records were dropped, the clause is VIOLATED or UNKNOWN, never PASS."
        if clause.needs_whole
        else ""
    )
    return (
        f"## {clause.id}\n\n> {clause.promise}.\n\n```text\n{formula}\n```\n\n"
        + " ".join(texts)
        + f"\n\nProfiles: {holds}. Needs: {', '.join(needs)}.{whole}\n"
    )


def _code() -> str:
    return (
        "## Clauses of the code\n\nThe [explorer](explorer.md), the [models](models.md), and tests of the data "
        "structures judge these clauses. `purgatorio verify` judges P3 too, if a program "
        "[hangs or ends a call with an error](subject-protocol.md#misbehavior).\n\n"
        + table(("clause", "promise"), list(CODE_CLAUSES.items()))
    )


def _broker() -> str:
    return (
        "## Clauses of the broker\n\nPurgatorio has [a small broker of its own](broker.md). For each kind of delayed "
        "operation in this broker, a [decision table](measured/broker-tables.md) says what happens in each situation. "
        f"These tables have {len(BROKER_CLAUSES)} more clauses. Tests put this broker into every situation. The "
        "clauses for any broker over the network, such as F1, are on [another page](wire.md#the-clauses).\n"
    )


def _profiles() -> str:
    rows = [(f"`{profile.name}`", profile.source) for profile in PROFILES.values()]
    return f"## Profiles\n\n{table(('profile', 'who makes these promises'), rows)}"


def _by_owner(clauses: Iterable[tuple[str, str]]) -> str:
    return table(
        ("clause", "of", "promise"), [(clause, whose(clause), promise) for clause, promise in clauses]
    )


_OF = (
    ("B1", "DelayedProduce"),
    ("B2", "DelayedFetch"),
    ("B3", "DelayedDeleteRecords"),
    ("B4", "consumer groups"),
    ("B75", "DelayedFuture"),
    ("B8", "request layer"),
    ("B95", "SharePartition"),
    ("B9", "DelayedShareFetch"),
)
"""The owners of the clauses beyond the tables, by the beginning of the id. The first that matches counts."""


def whose(clause: str) -> str:
    """The operation, or the part of the broker, that promises the clause. Raises KeyError for an unknown clause."""
    for one in TABLES:
        if clause in one.check():
            return one.operation
    if clause not in BROKER_CLAUSES:
        raise KeyError(clause)
    return next(owner for prefix, owner in _OF if clause.startswith(prefix))


def tables() -> str:
    """The decision tables, and the clauses beyond them, a section each."""
    sections = [f"### {one.operation}\n\n{_decisions(one)}" for one in TABLES]
    decided = {clause for one in TABLES for clause in one.check()}
    beyond = [(clause, promise) for clause, promise in BROKER_CLAUSES.items() if clause not in decided]
    return "\n".join([*sections, f"### Beyond the tables\n\n{_by_owner(beyond)}"])


def _decisions(of: Table) -> str:
    """Clause, promise and the number of situations."""
    rows = [(clause, BROKER_CLAUSES[clause], str(count)) for clause, count in of.check().items()]
    return table(("clause", "promise", "situations"), rows)
