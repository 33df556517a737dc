"""A counterexample as text: one column a thread, one row a step, the repeating part marked."""

from __future__ import annotations

from collections.abc import Sequence

from purgatorio_spec.model.shape import Step, Trace


def render(trace: Trace, columns: Sequence[str]) -> str:
    """The table; columns without a step are left out, so a short story stays narrow."""
    acting = {step.column for step in (*trace.steps, *trace.loop)}
    shown = [column for column in columns if column in acting]
    widths = [_width(column, trace) for column in shown]
    lines = [_row("", shown, widths), _row("", ["-" * width for width in widths], widths)]
    lines += [_step_row(number, step, shown, widths) for number, step in enumerate(trace.steps, 1)]
    if trace.loop:
        lines.append("    and then for ever:")
        first = len(trace.steps) + 1
        lines += [_step_row(number, step, shown, widths) for number, step in enumerate(trace.loop, first)]
    return "\n".join(lines)


def _width(column: str, trace: Trace) -> int:
    texts = [step.text for step in (*trace.steps, *trace.loop) if step.column == column]
    return max(len(text) for text in (column, *texts))


def _step_row(number: int, step: Step, shown: Sequence[str], widths: Sequence[int]) -> str:
    return _row(str(number), [step.text if column == step.column else "" for column in shown], widths)


def _row(number: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"{number:>3} {padded}".rstrip()
