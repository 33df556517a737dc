"""The generated parts of the page about models and proofs: one text each, compared with the page by a test."""

from __future__ import annotations

from purgatorio_spec.claim_result import ClaimResult
from purgatorio_spec.known_bugs import KNOWN_BUGS
from purgatorio_spec.model.campaign import claims_by_id
from purgatorio_spec.model.kills import kills
from spec.machine_drawing import mermaid

STORIES = ("C1", "C4", "L7")
"""The claims whose first twin is told on the page."""


def machine_block() -> str:
    """The operation's state machine."""
    return f"```mermaid\n{mermaid()}\n```"


def story_block() -> str:
    """The shortest paths of a few historical protocols."""
    parts = []
    for name in STORIES:
        twin = claims_by_id()[name].twins[0]
        parts.append(
            f'**{twin.name}** ({name}) breaks "{twin.property}":\n\n```\n{twin.examine().story}\n```'
        )
    return "\n\n".join(parts)


def kill_block() -> str:
    """Known bugs and the claims that kill them."""
    claims: dict[tuple[int, str], list[str]] = {}
    for kill in kills():
        claims.setdefault((kill.number, kill.layer), []).append(kill.claim)
    rows = ["| # | bug | breaks | models | proofs |", "| --- | --- | --- | --- | --- |"]
    for number in sorted({number for number, _ in claims}):
        bug = KNOWN_BUGS[number]
        broken = ", ".join(clause for clause in bug.clauses if clause != "CHECK")
        by = (", ".join(claims.get((number, layer), [])) or "-" for layer in ("model", "proof"))
        rows.append(f"| {number} | {bug.name} | {broken} | {' | '.join(by)} |")
    return "\n".join(rows)


def claim_row(result: ClaimResult) -> str:
    """One row of the table of claims. No seconds: those are the machine's."""
    states = f"{result.states:,}" if result.states else "-"
    twins = ", ".join(twin.name for twin in result.twins)
    return (
        f"| {result.id} | {result.statement} | {result.bound} | {states} | {result.judged.value} | {twins} |"
    )


def claim_block(results: list[ClaimResult]) -> str:
    """The table of claims."""
    head = [
        "| id | claim | bound | states | verdict | twins that fail |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *(claim_row(result) for result in results)])


def block(page: str, name: str) -> str:
    """What stands between the markers of a block. ValueError if the page has no such block."""
    start, end = _bounds(page, name)
    return page[start:end].strip("\n")


def replace_block(page: str, name: str, text: str) -> str:
    """The page with that block replaced."""
    start, end = _bounds(page, name)
    return f"{page[:start]}\n{text}\n{page[end:]}"


def _bounds(page: str, name: str) -> tuple[int, int]:
    opening, closing = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    if page.count(opening) != 1 or page.count(closing) != 1:
        raise ValueError(f"the page needs exactly one {opening} and one {closing}")
    return page.index(opening) + len(opening) + 1, page.index(closing)
