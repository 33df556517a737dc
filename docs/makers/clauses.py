"""The page `docs/clauses.md`, made from the registry: `pytest tests/tidy/test_docs.py --refresh-golden` writes it.

And the decision tables, as they stand in `docs/measured/broker-tables.md`.
"""

from __future__ import annotations

from collections.abc import Iterable

from purgatorio_pipeline.report.markdown_text import table
from purgatorio_spec.clause.declaration import Clause
from purgatorio_spec.clause.registry import CLAUSES, CODE_CLAUSES
from purgatorio_spec.profile import PROFILES
from purgatorio_wire.table.catalogue import OTHER_CLAUSES, TABLES, Table, broker_clauses

_HEAD = """# Clauses

<!-- Made from the registry by `pytest tests/tidy/test_docs.py --refresh-golden`. Do not edit by hand. -->

Every promise that is judged from a trace, under the id that verdicts name. *Holds for*: the profiles that promise it.
*Needs*: the functions that the trace must record and the constants that its header must give; where one is missing the
clause is SKIPPED, never judged by a default. `purgatorio clause ID` prints one of them.
T8 to T12 are not even SKIPPED for a trace that declares none of the functions and constants that ask for them.
If a run gave a clause no *occasion*, nothing in it could have broken the clause, and the clause is UNKNOWN; or SKIPPED,
if every occasion needs a call that the program never made, such as a cancel.
What O1, O2, O3 and O6 allow next, call by call, is drawn as
[the state machine of an operation](models.md#the-operation-as-a-state-machine).
After them, under [clauses of the code](#clauses-of-the-code) and [clauses of the broker](#clauses-of-the-broker), the
promises that no trace can show.

"""


def page() -> str:
    sections = [_section(clause) for clause in CLAUSES.values()]
    return _HEAD + "\n".join([*sections, _code(), _broker(), _profiles()])


def _section(clause: Clause) -> str:
    profiles = [name for name, profile in PROFILES.items() if clause.id in profile.clauses]
    needs = [f"`{name.replace('|', '` or `')}`" for name in clause.records]
    needs += [f"header `{name}`" for name in clause.constants]
    texts = [" ".join((judge.__doc__ or "").split()) for judge in clause.judges.values()]
    formula = clause.formula.replace(";  ", "\n")
    whole = (
        "\n\nWithout an end record, or with dropped records, it cannot PASS." if clause.needs_whole else ""
    )
    return (
        f"## {clause.id}\n\n> {clause.promise}.\n\n```text\n{formula}\n```\n\n"
        + "\n\n".join(texts)
        + f"\n\nHolds for: {', '.join(profiles)}. Needs: {', '.join(needs)}.{whole}\n"
    )


def _code() -> str:
    return (
        "## Clauses of the code\n\nJudged by the explorer, which runs the reference through its interleavings "
        "([explorer.md](explorer.md)), by the models ([models.md](models.md)), and by tests of the structures. "
        "Of a subject that hangs, or ends a call with an error, P3 is judged as told in "
        "[subject-protocol.md](subject-protocol.md#misbehavior).\n\n"
        + table(("clause", "promise"), list(CODE_CLAUSES.items()))
    )


def _broker() -> str:
    return (
        "## Clauses of the broker\n\n[The decision tables](measured/broker-tables.md) of the concrete operations have "
        f"{len(broker_clauses())} more clauses. Tests put the reference into every situation of every table; scenarios "
        "of the explorer name these clauses.\n"
    )


def _profiles() -> str:
    rows = [(f"`{profile.name}`", profile.source) for profile in PROFILES.values()]
    return f"## Profiles\n\n{table(('profile', 'what it is'), rows)}"


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
"""Whose the clauses beyond the tables are, by the beginning of their ids; the first that fits counts."""


def whose(clause: str) -> str:
    """The operation, or the part of the broker, that promises it. KeyError for what is no clause."""
    for one in TABLES:
        if clause in one.sentences():
            return one.operation
    if clause not in OTHER_CLAUSES:
        raise KeyError(clause)
    return next(owner for prefix, owner in _OF if clause.startswith(prefix))


def tables() -> str:
    """The decision tables, and the clauses beyond them, a section each."""
    sections = [f"### {one.operation}\n\n{_decisions(one)}" for one in TABLES]
    return "\n".join([*sections, f"### Beyond the tables\n\n{_by_owner(sorted(OTHER_CLAUSES.items()))}"])


def _decisions(of: Table) -> str:
    """Clause, promise and the number of situations."""
    counts = of.check()
    rows = [(clause, promise, str(counts[clause])) for clause, promise in of.sentences().items()]
    return table(("clause", "promise", "situations"), rows)
