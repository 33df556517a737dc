"""The generated parts of `docs/models.md` and `docs/measured/models.md`.

`pytest tests/spec/test_model_page.py --refresh-golden` writes them.

The state machine is drawn by walking the code, so the picture cannot say something else.
"""

from __future__ import annotations

from docs.makers.operation_machine import Event, Operation, Phase, next_events, step
from purgatorio_pipeline.report.markdown_text import table
from purgatorio_spec.campaign import claims_by_id, kills
from purgatorio_spec.claim_result import ClaimResult
from purgatorio_spec.known_bugs import KNOWN_BUGS

STORIES = ("C1", "C4", "L7")
"""The claims whose first negative control is shown on the page."""


def machine_block() -> str:
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
    rows: list[tuple[str, ...]] = []
    for number in sorted({number for number, _ in claims}):
        bug = KNOWN_BUGS[number]
        broken = ", ".join(clause for clause in bug.clauses if clause != "CHECK")
        by = (", ".join(claims.get((number, layer), [])) or "-" for layer in ("model", "proof"))
        rows.append((str(number), bug.name, broken, *by))
    return table(("#", "bug", "breaks", "models", "proofs"), rows).rstrip()


def claim_row(result: ClaimResult) -> str:
    """One row of the table of claims. No seconds: those are the machine's."""
    states = f"{result.states:,}" if result.states else "-"
    twins = ", ".join(twin.name for twin in result.twins)
    return (
        f"| {result.id} | {result.statement} | {result.bound} | {states} | {result.judged.value} | {twins} |"
    )


_THREADS = ("a", "b")
_DEPTH = 3


def edges() -> dict[tuple[str, str], dict[str, set[str]]]:
    """(from, to) -> event -> the clauses that forbid it (in some history; none if it is allowed).

    Only histories without a forbidden event are followed; a forbidden one ends in `forbidden`. Two threads, calls
    nested at most three deep; allowed events that change no phase are left out.
    """
    found: dict[tuple[str, str], dict[str, set[str]]] = {}
    seen = {Operation()}
    work = [Operation()]
    while work:
        state = work.pop()
        for event in next_events(state, _THREADS, _DEPTH):
            after, broken = step(state, event)
            target = "forbidden" if broken else after.phase.value
            if broken or after.phase is not state.phase:
                labels = found.setdefault((state.phase.value, target), {})
                labels.setdefault(_words(event), set()).update(broken)
            if not broken and after not in seen:
                seen.add(after)
                work.append(after)
    return found


def _words(event: Event) -> str:
    if event.phase == "call":
        return f"{event.function} starts"
    answer = {None: "ends", 0: "returns false", 1: "returns true"}[event.out]
    return f"{event.function} {answer}"


def mermaid() -> str:
    """The diagram: phases, what leads from one to the next, and what each phase forbids, by clause."""
    lines = ["stateDiagram-v2", f"    [*] --> {Phase.PENDING.value}"]
    phases = [phase.value for phase in Phase]
    found = edges()
    for source, target in sorted(found, key=lambda edge: (edge[1] == "forbidden", phases.index(edge[0]))):
        labels = found[source, target]
        shown = [_label(words, clauses) for words, clauses in sorted(labels.items())]
        lines.append(f"    {source} --> {target}: {'<br>'.join(shown)}")
    return "\n".join(lines)


def _label(words: str, clauses: set[str]) -> str:
    return f"{words} ({' or '.join(sorted(clauses))})" if clauses else words
