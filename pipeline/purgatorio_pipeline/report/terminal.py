"""The report in the terminal: one line for each run, one counterexample for each cause, then the problems with traces.

The output fits into 80 columns and into logs without color: every verdict is a word. Text from traces is escaped, and
`rich` never reads such text as markup.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby, islice, takewhile
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from purgatorio_pipeline.report.grouped import (
    CauseGroup,
    ExampleOf,
    grouped,
    run_titles,
    skipped_everywhere,
    verdicts_in_words,
    why_skipped,
)
from purgatorio_spec.judge.result import CheckResult, RunResult
from purgatorio_spec.show.selection import wording_of
from purgatorio_spec.show.text import allowed_and_seen, lines
from purgatorio_spec.show.visible import TEXT_LIMIT, counted, visible
from purgatorio_spec.trace.reader import CUT
from purgatorio_spec.verdict import Verdict

RUNS_SHOWN: Final = 100
GROUPS_SHOWN: Final = 10
BROKEN_SHOWN: Final = 5
CLAUSES_LEAST: Final = 10
CLAUSES_WIDE: Final = 30
"""The minimum number of columns for the clauses of a run with a long name."""
NAME_LEAST: Final = 20
_GAP: Final = "  "
_HARD: Final = "\N{NO-BREAK SPACE}"

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


def print_check(console: Console, result: CheckResult, examples: ExampleOf, *, verbose: bool) -> None:
    """Print a check. `verbose` adds skipped clauses with reasons, and removes the limits on runs, causes and lines."""
    groups = grouped(result, examples)
    last = result.runs if groups and len(result.runs) == 1 else ()  # the remarks come after the violations
    _print_runs(console, result, verbose, besides=not last)
    _print_left_out(console, len(result.runs), RUNS_SHOWN, "runs", verbose)
    for group in groups if verbose else groups[:GROUPS_SHOWN]:
        _print_group(console, group)
    _print_left_out(console, len(groups), GROUPS_SHOWN, "causes", verbose)
    for run in last:
        _print_besides(console, run, verbose, "", above="\n")
    _print_problems(console, result, verbose)
    _print_sum(console, result, groups, verbose)


def _print_left_out(console: Console, total: int, limit: int, noun: str, verbose: bool) -> None:
    if total > limit and not verbose:
        print_line(console, f"... {total - limit:,} more {noun}: use --verbose, or --json", "dim")


def _print_runs(console: Console, result: CheckResult, verbose: bool, *, besides: bool) -> None:
    """Print one line for each run, with indented remarks below if `besides`."""
    runs = result.runs if verbose else result.runs[:RUNS_SHOWN]
    kept = [_kept(run) for run in runs]
    verdict = max((len(run.verdict) for run in runs), default=0)
    verdict = max(verdict, len("verdict"))
    events = max([len("events"), *(len(f"{run.events:,}") for run in runs)])
    last = min(max(map(len, kept), default=0), CLAUSES_WIDE)
    room = max(console.width - verdict - events - last - 3 * len(_GAP), NAME_LEAST)
    titles = run_titles(result.runs)
    names = under_headings([visible(titles[run.file, run.run]) for run in runs], room)
    wide = min(max((cell_len(name) for _, name in names), default=0), room)
    print_line(
        console,
        _GAP.join(("run".ljust(wide), "verdict".ljust(verdict), "events".rjust(events), "clauses")),
        "bold",
    )
    left = wide + verdict + events + 3 * len(_GAP)
    before = ""
    for run, said, (heading, name) in zip(runs, kept, names, strict=True):
        if heading != before and heading:
            print_line(console, heading)
        before = heading
        if cell_len(name) > wide:
            print_line(console, name)
            name = ""
        first, *more = [
            one.replace(_HARD, " ")
            for one in textwrap.wrap(said, max(console.width - left, CLAUSES_LEAST)) or [""]
        ]
        line = Text(name + " " * (wide - cell_len(name)) + _GAP)
        line.append(str(run.verdict).ljust(verdict), _STYLE[run.verdict])
        line.append(f"{_GAP}{run.events:>{events},}{_GAP}")
        line.append(first, _STYLE[Verdict.VIOLATED] if run.verdict is Verdict.VIOLATED else "")
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)
        for one in more:
            print_line(console, " " * left + one, _STYLE[run.verdict])
        if besides:
            _print_besides(console, run, verbose, "    ")


def _print_besides(console: Console, run: RunResult, verbose: bool, indent: str, above: str = "") -> None:
    for text, style in _besides(run, verbose):
        for one in textwrap.wrap(text, console.width, initial_indent=indent, subsequent_indent=f"{indent}  "):
            print_line(console, f"{above}{one}", style)
            above = ""


def under_headings(names: list[str], room: int) -> list[tuple[str, str]]:
    """For each name, the heading above it, and the rest of the name. If all names fit into `room`, there are no
    headings. Otherwise consecutive names with a common beginning have a heading such as `reference-*-seed1`."""
    if all(cell_len(name) <= room for name in names):
        return [("", name) for name in names]
    found: list[tuple[str, str]] = []
    for _, group in groupby(names, key=lambda name: name.partition("-")[0]):
        alike = list(group)
        head = _common(alike)
        head = head[: head.rfind("-") + 1]
        tail = _common([name[len(head) :][::-1] for name in alike])[::-1]
        tail = tail[tail.find("-") :] if "-" in tail else ""
        if len(alike) == 1 or any(len(name) <= len(head) + len(tail) for name in alike):
            found += [("", name) for name in alike]
        else:
            found += [(f"{head}*{tail}", f"  {name[len(head) : len(name) - len(tail)]}") for name in alike]
    return found


def _common(names: list[str]) -> str:
    first, last = min(names), max(names)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return "".join(one for one, _ in same)


def _kept(run: RunResult) -> str:
    """The violated clauses with their counts. If there are none, the number of passed clauses, and of their
    occasions."""
    broken = [one for one in run.clauses.values() if one.verdict is Verdict.VIOLATED]
    if broken:
        said = [f"{one.clause} {one.violations:,} of {one.occasions:,}" for one in broken]
        return ", ".join(one.replace(" ", _HARD) for one in said)  # a line ends between two, not within one
    kept = [one for one in run.clauses.values() if one.verdict is Verdict.PASS and one.occasions]
    return f"{len(kept)} kept, {counted(sum(one.occasions for one in kept), 'occasion')}" if kept else ""


def _besides(run: RunResult, verbose: bool) -> Iterator[tuple[str, str]]:
    """Remarks on the clauses of a run: UNKNOWN clauses, clauses without an occasion, and if `verbose`, SKIPPED
    clauses."""
    unknown: dict[str, list[str]] = {}
    for clause in run.clauses.values():
        if clause.verdict is Verdict.UNKNOWN:
            unknown.setdefault(clause.reason, []).append(clause.clause)
    for reason, names in unknown.items():
        yield f"{', '.join(names)} unknown: {visible(reason, TEXT_LIMIT)}", _STYLE[Verdict.UNKNOWN]
    idle = [one for one in run.clauses.values() if one.verdict is Verdict.PASS and not one.occasions]
    if idle:
        yield f"occasions: 0 for {', '.join(one.clause for one in idle)}", "dim"
    for said in why_skipped(run.clauses.values()) if verbose else ():
        yield said, "dim"


def _print_group(console: Console, group: CauseGroup) -> None:
    print_line(console, "")
    print_line(console, _headline(group), "bold red")
    width = min(console.width, 120)
    if group.example is not None:
        shown = lines(group.example, width)
    else:
        wording = wording_of(group.clause, group.profile, group.cause)
        print_line(console, f"{group.clause}  {wording.title}", "bold")
        for text in (wording.promise, f"{visible(group.cause)}: first {visible(group.violation.subject)}"):
            _print_folded(console, f"    {text}", "dim", indent="    ")
        shown = allowed_and_seen(group.violation, width)
    for line in shown:
        print_line(console, line.text, _ROLE_STYLE[line.role])
    if group.named:
        _print_folded(console, f"{'all':<9}{group.named}", "dim", indent=" " * 9)


def _headline(group: CauseGroup) -> str:
    runs = len(group.counts)
    where = f" in {runs:,} runs" if runs > 1 else ""
    return f"{group.clause} VIOLATED: {group.counted} of {visible(group.subject)}{where}"


def _print_problems(console: Console, result: CheckResult, verbose: bool) -> None:
    problems = [(run.file, problem) for run in result.runs for problem in run.problems]
    if problems:
        print_line(console, "")
    for file, problem in problems if verbose else problems[:RUNS_SHOWN]:
        # The limit is high, because a deadlock has a proof, a trace, and the position of each thread.
        _print_folded(console, f"{visible(file, 200)}: {visible(problem, 4 * TEXT_LIMIT)}", "yellow")
    told = " ".join(f"{file}: {problem}" for file, problem in problems)
    shown = list(islice(result.broken, None if verbose else BROKEN_SHOWN))
    # The first broken line of a file, and a last line that is cut, are already printed.
    untold = [line for line in shown if str(line) not in told and line.why != CUT]
    left = result.quarantined - len(shown)
    if not untold and left <= 0:
        return
    print_line(console, "")
    print_line(console, f"quarantined lines: {result.quarantined:,}", "bold")
    for line in untold:
        print_line(console, visible(str(line), TEXT_LIMIT), "yellow")
    if left > 0:
        print_line(console, f"... {left:,} more", "dim")


def _print_sum(console: Console, result: CheckResult, groups: list[CauseGroup], verbose: bool) -> None:
    """Print the verdict. For PASS or SKIPPED, also the reasons of clauses that were skipped in all runs, unless
    `verbose` has printed them."""
    said = verdicts_in_words(result)
    violations = sum(group.count for group in groups)
    if groups:
        said += f"; {counted(violations, 'violation')} of {counted(len(groups), 'kind')}"
    skipped = {
        one.clause for run in result.runs for one in run.clauses.values() if one.verdict is Verdict.SKIPPED
    }
    never = skipped_everywhere(result)
    nowhere = sorted({one.clause for one in never})
    reasons = result.verdict in (Verdict.PASS, Verdict.SKIPPED) and not verbose
    if nowhere:
        said += f"; {counted(len(nowhere), 'clause')} SKIPPED" + (
            "" if reasons else f" ({', '.join(nowhere)})"
        )
    if somewhere := skipped.difference(nowhere):
        said += (
            f"; {', '.join(sorted(somewhere))} SKIPPED in some runs{'' if verbose else ' (why: --verbose)'}"
        )
    print_line(console, "")
    _print_folded(console, f"{result.verdict}: {said}", _STYLE[result.verdict])
    if result.verdict is Verdict.PASS:
        unseen = "; SKIPPED clauses were not tested" if skipped else ""
        _print_folded(console, f"This PASS holds for these runs only{unseen}", "dim")
    for line in why_skipped(never if reasons else ()):
        _print_folded(console, line, "dim")


def _print_folded(console: Console, text: str, style: str, indent: str = "  ") -> None:
    for line in textwrap.wrap(
        text, console.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ):
        print_line(console, line, style)


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print one line without markup and highlighting. The line is soft-wrapped, so a pasted command stays whole."""
    console.print(Text(text, style), soft_wrap=True, highlight=False)
