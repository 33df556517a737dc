"""Draws the operation's state machine as Mermaid by walking the code, so the picture cannot say something else."""

from __future__ import annotations

from purgatorio_spec.model.operation_machine import Event, Operation, Phase, next_events, step

THREADS = ("a", "b")
DEPTH = 3


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
        for event in next_events(state, THREADS, DEPTH):
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
