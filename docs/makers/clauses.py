"""The page `docs/clauses.md`, made from the registry: `pytest tests/tidy/test_docs.py --refresh-golden` writes it.

And the decision tables, as they stand in `docs/measured/broker-tables.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from purgatorio_pipeline.report.markdown_text import table
from purgatorio_spec.clause.declaration import Clause, Rule
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_spec.profile import PROFILES
from purgatorio_wire.table.catalogue import BROKER_CLAUSES, TABLES, Table

_HEAD = """# Clauses

<!-- Made from the registry by `pytest tests/tidy/test_docs.py --refresh-golden`. Do not edit by hand. -->

After this page you know what each clause promises. A *clause* is one promise with an id. The [glossary](glossary.md)
explains the other terms. `purgatorio clause ID` prints one clause, with the exact conditions of the judging code.

The clauses O1 to T12 are judged from a trace. Each clause has a section with these parts:

- *Terms* are words of the formulas that only this clause uses.
- *Rule*: one sentence, and its formula after the colon.
- *Broken* is a history that breaks the clause.
- *Occasion* is a case in which the clause could be broken. A clause without an occasion is UNKNOWN. If the program
  never made the call that the clause is about, such as a cancel, the clause is SKIPPED.
- *Not judged when* lists the cases that the rules leave out.
- *Profiles* are the [sets of clauses](#profiles) that contain the clause.
- *Needs* lists functions and constants. The trace must record these functions, and the header (the first record of the
  trace) must give these constants. Otherwise, the clause is SKIPPED.
- A *whole trace* has an end record, and no record was dropped. If a clause needs a whole trace, the verdict on any
  other trace is never PASS.

T8 to T10 appear in a report only if the trace declares periodic tasks, T11 only if the trace declares resets, T12 only
if the header has `turn`, and P4 only if readings have `keys`.

## The words of the formulas

- `x.call` is the call of x, and `x.ret` is its return. `x.out` is the result, and `x.t` is the time. `a.ret < b.call`
  means that a ended before b began.
- A *registration* is a call of `try_complete_else_watch`. A *check* is a call of `check_and_complete`.
- A *try* is a call of `try_complete`. A *force* is a call of `force_complete`. A *done* is a run of `on_complete`.
- The *claim* is the force that completes the operation. An operation is *live* if it is registered and not completed.
- `ready` is the event that makes the operation ready. `ready.t_call` is the earliest possible time of this event.
- `cancel_for_key(k)` removes the operations that wait under the key k, and returns them. The event `cancelled` records
  one of these operations, and the keys from whose lists it was removed.
- An *add* is a call of `timer_add`. A *cancel* is a call of `timer_cancel`. A *fire* is a run of a task (`timer_fire`).
- An *expiry* is the fire of the time-out of an operation.
- A task may fire from (deadline - `early_ns`) to (deadline + `late_ns`). Both are constants of the header.
- *due(add)* is the latest deadline that the add may have set: max(its `deadline_t`, add.ret.t + its `delay_ns`).
- `f(n)` is the n-th fire of a periodic task, counted from 0. P is the period of the task.
- An event is *under check(k)* if it is inside a check of the key k, on the thread of the check. It is *directly* under
  the check if it is in no other call of the purgatory inside the check.
- An operation waits in the list of each of its keys. An *entry* is one operation in one list.
- A *reading* is a `gauge` or `quiesce` event. A reading has the sizes `watched` (entries), `delayed` (tasks in the
  timer) and `keys` (keys with a list).
- A `quiesce` is recorded when no work is in progress. A reading is *at rest* if it is a `quiesce`. A `gauge` is at rest
  if no call is open, and if only readings were recorded in the last 200 ms.

**Cause of a fire.** Each add that began before the fire is a cause of the fire, unless a later add or cancel
*replaced* it. A later call replaces the add if four things are true:

- The later call began after the add had returned.
- The later call returned before the fire began.
- The later call returned before (deadline of the add - `early_ns`).
- The later call raised no exception, and did not return 0.

**Overdue at the end.** If the header has `late_ns`, a task is overdue in two cases:

- The trace ends after (deadline + `late_ns`). For example, 1,000 ms + 500 ms: the trace ends at 1,501 ms.
- A `quiesce` came at (deadline + the smaller of `late_ns` and 200 ms) or later. In the example: at 1,200 ms.

If the header has no `late_ns`, a task is overdue if a `quiesce` came at least two ticks after the deadline. Without
such a `quiesce`: if the trace ends more than 10 ms after the deadline, the clause is UNKNOWN. If the trace ends sooner,
the task is not overdue.

**Late in virtual time.** The *driver* is the part of Purgatorio that makes the calls to the subject. Only the driver
moves the clock, and tasks run only inside an `advance_clock`. So one call may move the clock past a deadline. A task is
not late if it runs inside the first `advance_clock` that reaches (deadline + `late_ns`).

[A state machine](models.md#the-operation-as-a-state-machine) shows the calls that O1, O2, O3 and O6 allow.

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
    needs += ["a whole trace"] if clause.needs_whole else []
    words = [_code_words(f"{word}: {meaning}") for word, meaning in clause.words]
    lines = [
        f'## {clause.id} · {clause.title} <a id="{clause.id.lower()}"></a>',
        "",
        *_listed("Terms", words),
        *(_rule(clause, number, one) for number, one in enumerate(clause.rules, 1)),
        f"- Broken: {_code_words(clause.example)}",
        f"- Occasion: {_code_words(clause.occasion)}.",
        *_unless(clause.unless),
        f"- Profiles: {holds}. Needs: {', '.join(needs)}.",
        "",
    ]
    return "\n".join(lines)


def _rule(clause: Clause, number: int, rule: Rule) -> str:
    name = f"Rule {number}" if len(clause.rules) > 1 else "Rule"
    name += f" ({rule.profiles})" if rule.profiles else ""
    return f"- {name}: {_code_words(rule.sentence)}" + (f": `{rule.formula}`" if rule.formula else ".")


def _listed(title: str, items: Sequence[str]) -> list[str]:
    if len(items) == 1:
        return [f"- {title}: {items[0]}"]
    return [f"- {title}:", *(f"    - {item}" for item in items)] if items else []


def _unless(conditions: Iterable[str]) -> list[str]:
    """The conditions, as one list for each group of rules. Two conditions share a line."""
    groups: dict[str, list[str]] = {}
    for condition in conditions:
        rules, _, about = condition.rpartition(": ")
        groups.setdefault(rules, []).append(_code_words(about[0].upper() + about[1:]))
    return [
        line
        for rules, items in groups.items()
        for line in _listed(
            f"{rules} {_verb(rules)}not judged when".strip().capitalize(),
            [f"(a) {items[0].removesuffix('.')}; or (b) {items[1]}"] if len(items) == 2 else items,
        )
    ]


def _verb(rules: str) -> str:
    return "" if not rules else "is " if rules.startswith("Rule ") else "are "


def _code_words(text: str) -> str:
    """The text with the names of functions and fields, such as `try_complete`, set as code."""
    return re.sub(r"\b(?:[a-z]+(?:_[a-z]+)+|size(?=\())(?:\(\w*\))?", r"`\g<0>`", text)


def _code() -> str:
    rows = [(f"{name} · {title}", _code_words(promise)) for name, (title, promise) in CODE_CLAUSES.items()]
    return (
        "## Clauses of the code\n\nThe [explorer](explorer.md), the [models](models.md), and tests of the data "
        "structures judge these clauses. `purgatorio verify` judges P3 too, if a program "
        "[hangs or ends a call with an error](subject-protocol.md#misbehavior).\n\n"
        + table(("clause", "promise"), rows)
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
    without = [f"`{profile.name}`" for profile in PROFILES.values() if not profile.cancel_is_barrier]
    return (
        "## Profiles\n\nIn a trace with several threads, no cancel is a barrier (T4) with these profiles: "
        f"{', '.join(without)}.\n\n{table(('profile', 'who makes these promises'), rows)}"
    )


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
