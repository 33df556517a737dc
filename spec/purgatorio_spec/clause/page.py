"""The page `docs/clauses.md`, made from the registry: `python -m purgatorio_spec.clause.page > docs/clauses.md`."""

from __future__ import annotations

from purgatorio_spec.clause.registry import CLAUSES, Clause
from purgatorio_spec.profile import PROFILES

_HEAD = """# Clauses

<!-- Made by `python -m purgatorio_spec.clause.page`; a test compares. Do not edit by hand. -->

Every promise that is judged from a trace, under the id that verdicts name. *Holds for*: the profiles that promise it.
*Needs*: the functions that the trace must record and the constants that its header must give; where one is missing the
clause is SKIPPED, never judged by a default. What counts as an occasion to fail stands in the text of the function.

"""


def page() -> str:
    """The whole page."""
    return _HEAD + "\n".join(_section(clause) for clause in CLAUSES.values()) + "\n" + _profiles()


def _section(clause: Clause) -> str:
    profiles = [name for name, profile in PROFILES.items() if clause.id in profile.clauses]
    judges = [
        judge for judge in (clause.of_operation, clause.of_check, clause.of_reading) if judge is not None
    ]
    needs = [f"`{name.replace('|', '` or `')}`" for name in clause.records]
    needs += [f"header `{name}`" for name in clause.constants]
    texts = [" ".join((judge.__doc__ or "").split()).removeprefix(f"{clause.id}. ") for judge in judges]
    whole = (
        "\n\nWithout an end record, or with dropped records, it cannot PASS." if clause.needs_whole else ""
    )
    return (
        f"## {clause.id}\n\n> {clause.promise}.\n\n"
        + "\n\n".join(texts)
        + f"\n\nHolds for: {', '.join(profiles)}. Needs: {', '.join(needs)}.{whole}\n"
    )


def _profiles() -> str:
    rows = "\n".join(f"| `{profile.name}` | {profile.source} |" for profile in PROFILES.values())
    return f"## Profiles\n\n| profile | what it is |\n| --- | --- |\n{rows}\n"


if __name__ == "__main__":
    print(page(), end="")
