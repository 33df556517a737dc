"""The pages `docs/clauses.md` and `docs/measured/clause-formulas.md`, made from the registry: `pytest
tests/tidy/test_docs.py --refresh-golden` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from purgatorio_pipeline.report.markdown_text import table
from purgatorio_spec.clause.declaration import Clause, Rule
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_spec.profile import PROFILES

_MADE = "<!-- Made from the registry by `pytest tests/tidy/test_docs.py --refresh-golden`. Do not edit by hand. -->\n"

_PROMISES = f"""# Clauses

{_MADE}
After this page you know what each clause promises. A *clause* is one promise with an id. Most clauses are judged
from a trace. The [clauses of the code](#clauses-of-the-code) are at the end. The clauses of brokers, such as F1,
are on [another page](wire.md#the-clauses). The [glossary](glossary.md) explains the general terms.

`purgatorio clause ID` prints one clause with its formulas, and says when the clause is not judged. The page [formulas
of the clauses](measured/clause-formulas.md) has the same text for all clauses.

## Words

- A *registration* is a call of `try_complete_else_watch`. It calls `try_complete` of the operation. If the operation
  is not ready, the operation then waits under each of its keys.
- A *check* is a call of `check_and_complete(key)`. It calls `try_complete` of each operation that waits under the
  key.
- An operation is *ready* when the event for which it waits has happened. `try_complete` then calls `force_complete`.
- `force_complete` completes the operation: it runs `on_complete` and returns true. Later calls of `force_complete`
  return false.
- An operation is also a task of the timer. The *expiry* is the run of this task at the end of the time-out. It calls
  `force_complete`. If this call returns true, the expiry also calls `on_expiration`.
- `cancel_for_key(key)` removes the operations that wait under the key, stops their time-outs, and returns them.
- An operation is *live* if it is registered and not completed. An *entry* is one operation under one key. A *purge*
  removes the entries of completed operations.
- In a pool, a semaphore or a queue (profile hand-over), each check brings one *unit* (a connection, a permit, an item)
  for one waiting operation.
- A task is *pending* from its add to its run or its cancel. It *fires* when the timer runs it. A *reset* gives a
  pending task a new deadline. The bounds `early_ns` and `late_ns` are in the header of the trace. In virtual time,
  the late bound lasts to the end of the `advance_clock` in which it passes.
- With some [profiles](#profiles), a cancel is a *barrier*: when it has returned true, the task must not run any more.
  If one thread makes all calls, each cancel that returned true is a barrier.
- The program is *at rest* when no work is in progress. It reports three sizes: `watched` is its count of entries,
  `delayed` is its count of tasks in the timer, and `keys` is its count of keys that have a list.
- There are three kinds of periodic tasks. *Fixed delay*: one period is between the end of a run and the start of the
  next run. *Fixed rate*: the runs have planned times, which are one period apart. *Restart*: one period is between the
  starts of two runs, so a late run delays all later runs.
- A task may add another task without a delay. The header's `turn` says when the new task runs: in the same call of
  `advance_clock`, or in the next call.

A word in parentheses before a rule, such as (locked), names the profiles, or the kind of task, that the rule is about.

"""

_FORMULAS = f"""# Formulas of the clauses

{_MADE}
This page has the exact text of each clause on [the page of clauses](../clauses.md). The parts of a section:

- *Terms*: words that only this clause uses.
- *Rule*: one sentence, and its formula after the colon.
- *Occasion*: a case that can break the clause. If the trace has no occasion, the clause is UNKNOWN. If the program
  never made the call that the clause is about, such as a cancel, the clause is SKIPPED instead.
- *Not judged when*: cases that the rules leave out.
- *Needs*: the functions that the trace must record, and the constants that its header must give. The *header* is the
  first record of the trace. It lists the functions that are recorded. If something is lacking, the clause is SKIPPED.
  A *whole trace* has an end record, and no record was dropped. On other traces, a clause that needs a whole trace is
  never PASS.

Some clauses are in a report only if the trace is about them: T8 to T10 are about periodic tasks, T11 about resets,
T12 about the header's `turn`, and P4 about readings of `keys`.

## The words of the formulas

- `x.call` is the start of the call x, and `x.ret` is its return. `x.t` is the time of the start, `x.ret.t` is the
  time of the return, and `x.out` is the result. `a < b` compares the places of two events in the trace. For example,
  `a.ret < b.call` means that a ended before b began.
- A *try* is a call of `try_complete`. A *force* is a call of `force_complete`. A *done* is a run of `on_complete`.
- The *claim* is the force that completes the operation. An operation is *live* if it is registered and not completed.
- `ready` is an event in the trace: the condition of the operation is true from there on. `ready.t_call` is a time
  before which the condition was not true.
- For each operation that `cancel_for_key` returns, the trace has an event `cancelled`.
- An *add* is a call of `timer_add`, a *reset* of `timer_reset`, and a *cancel* of `timer_cancel`. A *fire* is a run
  of a task (`timer_fire`).
- An add gives a delay, `delay_ns`. The trace has the deadline that follows from the delay, `deadline_t`. The timer
  may read its clock as late as the return of the add. So *due(add)*, the latest possible deadline, is
  max(`deadline_t`, add.ret.t + `delay_ns`).
- An event is *under check(k)* if it is inside a check of the key k, on the thread of the check.
- A *reading* is a `gauge` or `quiesce` event. A reading has the sizes `watched` (entries), `delayed` (tasks in the
  timer) and `keys` (keys with an entry or an empty list).
- A `quiesce` is recorded when no work is in progress. A reading is *at rest* if it is a `quiesce`. A `gauge` is at
  rest if no call is open, and if only readings were recorded in the last 200 ms.
- The start of a reading is *known* in three cases: the reading is at rest, its call is recorded, or its thread
  recorded an earlier event.

[A state machine](../models.md#the-operation-as-a-state-machine) shows the calls that O1, O2, O3 and O6 allow.

**Cause of a fire.** Each add that began before the fire is a cause of the fire, unless a later add or cancel
*replaced* it. A later call replaces an add if four things are true:

- The later call began after the add had returned.
- The later call returned before the fire began.
- The later call returned before (deadline of the add - `early_ns`).
- The later call did not return false, and raised no exception.

**Overdue at the end.** If the header has `late_ns`, an add is overdue in two cases:

- The trace ends after (deadline + `late_ns`).
- The trace has a `quiesce` at (deadline + the smaller of `late_ns` and 200 ms) or later. (At a `quiesce`, due tasks
  must have run. 200 ms are the period of Kafka's reaper.)

If the header has no `late_ns`, an add is overdue if the trace has a `quiesce` at least two ticks after the deadline.
If there is no such `quiesce`, and the trace ends more than 10 ms after the deadline, the clause is UNKNOWN. (A run
may stop just before a task fires. So 10 ms or less prove nothing, and the add is no occasion.)

**Late in virtual time.** Only the driver moves the clock. Tasks run only inside an `advance_clock`, and one
`advance_clock` may jump far past a deadline. A task is late only if it does not run inside the first `advance_clock`
that reaches (deadline + `late_ns`).

"""


def page() -> str:
    """The page that a person reads: titles, rules, an example each, and the profiles."""
    return _PROMISES + "\n".join([*map(_promise, CLAUSES.values()), _code(), _profiles()])


def formulas() -> str:
    """The exact text of all clauses."""
    return _FORMULAS + "\n".join(map(_section, CLAUSES.values()))


PAGES: Mapping[str, Callable[[], str]] = {"clauses.md": page, "measured/clause-formulas.md": formulas}
"""What makes each page, by its path in `docs`."""


def _heading(clause: Clause) -> str:
    return f'## {clause.id} · {clause.title} <a id="{clause.id.lower()}"></a>\n'


def _promise(clause: Clause) -> str:
    rules = [
        f"({rule.profiles}) {rule.sentence}" if rule.profiles else rule.sentence for rule in clause.rules
    ]
    numbered = [f"{number}. {_code_words(rule)}." for number, rule in enumerate(rules, 1)]
    said = numbered if len(rules) > 1 else [f"{_code_words(rules[0])}."]
    return "\n".join(
        [_heading(clause), *said, "", f"**Broken**, for example: {_code_words(clause.example)}", ""]
    )


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
        _heading(clause),
        *_listed("Terms", words),
        *(_rule(clause, number, one) for number, one in enumerate(clause.rules, 1)),
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


def _profiles() -> str:
    rows = [
        (f"`{profile.name}`", "yes" if profile.cancel_is_barrier else "no", profile.source)
        for profile in PROFILES.values()
    ]
    return (
        "## Profiles\n\nA profile is a set of clauses: the promises of one kind of timer or purgatory. The header of "
        "the trace names the profile. After a barrier, a cancelled task never runs, even if its deadline had "
        f"passed ([T4](#t4)).\n\n{table(('profile', 'barriers', 'the timer or purgatory, and what it promises'), rows)}"
    )
