"""A check in the terminal: one row a run, one counterexample a cause, then what to do about broken traces.

Made for 80 columns and for logs without colour: every verdict is a word. Text out of traces is made visible and never
read as rich's markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from purgatorio_pipeline.report.grouped import ExampleOf, Group, grouped
from purgatorio_spec.clause.promises import promise_of
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.show.text import lines
from purgatorio_spec.show.visible import TEXT_LIMIT, visible
from purgatorio_spec.verdict import Verdict

RUNS_SHOWN: Final = 100
GROUPS_SHOWN: Final = 10
BROKEN_SHOWN: Final = 5

_STYLE: Final = {
    Verdict.PASS: "green",
    Verdict.VIOLATED: "bold red",
    Verdict.UNKNOWN: "yellow",
    Verdict.SKIPPED: "dim",
    Verdict.INVALID_TRACE: "bold yellow",
}
_ROLE_STYLE: Final = {
    "title": "bold",
    "head": "bold",
    "event": "",
    "witness": "yellow",
    "illegal": "bold red",
    "allowed": "green",
    "seen": "red",
    "replay": "cyan",
    "note": "dim",
}


def print_check(console: Console, result: CheckResult, examples: ExampleOf, *, verbose: bool = False) -> None:
    """Print a check. `verbose` adds what was skipped and why, and lifts the limits on runs, causes and lines."""
    groups = grouped(result, examples)
    console.print(_runs(result, verbose))
    _print_left_out(console, len(result.runs), RUNS_SHOWN, "runs", verbose)
    for group in groups if verbose else groups[:GROUPS_SHOWN]:
        _print_group(console, group)
    _print_left_out(console, len(groups), GROUPS_SHOWN, "causes", verbose)
    _print_problems(console, result, verbose)
    _print_sum(console, result, groups)


def _print_left_out(console: Console, total: int, limit: int, noun: str, verbose: bool) -> None:
    if total > limit and not verbose:
        _print(console, f"... {total - limit:,} more {noun}: use --verbose, or --json", "dim")


def _runs(result: CheckResult, verbose: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("run", ratio=3, overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("events", justify="right", no_wrap=True)
    table.add_column("clauses", ratio=3, overflow="fold")
    table.expand = True
    for run in result.runs if verbose else result.runs[:RUNS_SHOWN]:
        table.add_row(
            Text(visible(run.run)),
            Text(str(run.verdict), _STYLE[run.verdict]),
            f"{run.events:,}",
            Text("\n").join(_clauses(run, verbose)),
        )
    return table


def _clauses(run: RunResult, verbose: bool) -> Iterator[Text]:
    """What there is to say of a run's clauses: those broken, those unknown, those that nothing could have broken."""
    for clause in run.clauses.values():
        if clause.verdict is Verdict.VIOLATED:
            said = f"{clause.clause} {clause.violations:,} of {clause.occasions:,}"
            yield Text(said, _STYLE[Verdict.VIOLATED])
    unknown: dict[str, list[str]] = {}
    for clause in run.clauses.values():
        if clause.verdict is Verdict.UNKNOWN:
            unknown.setdefault(clause.reason, []).append(clause.clause)
    for reason, names in unknown.items():
        said = f"{', '.join(names)} unknown: {visible(reason, TEXT_LIMIT)}"
        yield Text(said, _STYLE[Verdict.UNKNOWN])
    idle = [one for one in run.clauses.values() if one.verdict is Verdict.PASS and not one.occasions]
    if idle:
        yield Text(f"occasions: 0 for {', '.join(one.clause for one in idle)}", "dim")
    if verbose:
        for clause in run.clauses.values():
            if clause.verdict is Verdict.SKIPPED:
                yield Text(f"{clause.clause} skipped: {visible(clause.reason, TEXT_LIMIT)}", "dim")


def _print_group(console: Console, group: Group) -> None:
    _print(console, "")
    _print(console, _headline(group), "bold red")
    if group.example is not None:
        for line in lines(group.example, min(console.width, 120)):
            _print(console, line.text, _ROLE_STYLE[line.role])
        return
    violation = group.violation
    _print(console, f"{group.clause}  {promise_of(group.clause, group.profile)}", "bold")
    _print(console, f"    {visible(group.cause)}: first {visible(violation.subject)}", "dim")
    _print(console, f"allowed  {visible(violation.allowed, TEXT_LIMIT)}", "green")
    _print(console, f"seen     {visible(violation.seen, TEXT_LIMIT)}", "red")


def _headline(group: Group) -> str:
    runs = len(group.counts)
    where = f" in {runs:,} runs" if runs > 1 else ""
    return f"{group.clause} VIOLATED: {group.counted} of {visible(group.subject)}{where}"


def _print_problems(console: Console, result: CheckResult, verbose: bool) -> None:
    problems = [(run.file, problem) for run in result.runs for problem in run.problems]
    if problems:
        _print(console, "")
    for file, problem in problems if verbose else problems[:RUNS_SHOWN]:
        _print(console, f"{visible(file, 200)}: {visible(problem, TEXT_LIMIT)}", "yellow")
    if not result.quarantined:
        return
    _print(console, "")
    _print(console, f"quarantined lines: {result.quarantined:,}", "bold")
    told = " ".join(problem for _, problem in problems)
    shown = list(islice(result.broken, None if verbose else BROKEN_SHOWN))
    for line in shown:
        if str(line) not in told:  # the first of a file stands above
            _print(console, visible(str(line), TEXT_LIMIT), "yellow")
    left = result.quarantined - len(shown)
    if left > 0:
        _print(console, f"... {left:,} more", "dim")


def _print_sum(console: Console, result: CheckResult, groups: list[Group]) -> None:
    counts = [(verdict, sum(run.verdict is verdict for run in result.runs)) for verdict in _STYLE]
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in counts if count) or "no runs"
    violations = sum(group.count for group in groups)
    if groups:
        said += f"; {_counted(violations, 'violation')} of {_counted(len(groups), 'cause')}"
    skipped = {
        one.clause for run in result.runs for one in run.clauses.values() if one.verdict is Verdict.SKIPPED
    }
    if skipped:
        said += f"; {_counted(len(skipped), 'clause')} SKIPPED ({', '.join(sorted(skipped))})"
    _print(console, "")
    _print(console, f"{result.verdict}: {said}", _STYLE[result.verdict])


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _print(console: Console, text: str, style: str = "") -> None:
    """One line as it is: no markup, no highlighting; soft-wrapped, so that what is to be pasted stays whole."""
    console.print(Text(text, style), soft_wrap=True, highlight=False)
