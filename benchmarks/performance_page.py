"""docs/measured/performance.md, made from the figures of one run. The words are here, the numbers are the run's."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks import purgatory
from benchmarks.aims import aims_table
from benchmarks.empty_wheel import EmptyWheel
from benchmarks.figures import Figure
from benchmarks.guard import Guarded
from benchmarks.purgatory_bench import PurgatoryFigures
from benchmarks.suite import IDS
from benchmarks.tables import Table, markdown, short
from benchmarks.timer_bench import TimerBench
from benchmarks.timer_tables import best_own, tables
from purgatorio.timer.intrusive.timer import DEFAULT_WHEEL_SIZE

COMMAND: Final = "python -m benchmarks timer --write docs/measured/performance.md"
_BASELINE: Final = "heapq-int"
_WIDTH: Final = 118


@dataclass(slots=True)
class Run:
    """All that the page tells. `load` at the start and at the end, `cpu_s` of the process and its children."""

    timer: TimerBench
    sizes: TimerBench
    empty: list[EmptyWheel]
    steps: TimerBench
    purgatory: PurgatoryFigures
    guarded: list[Guarded]
    machine: dict[str, object]
    load: tuple[float, float]
    builds: str
    cpu_s: float
    skipped: list[str] = field(default_factory=list)


def page(run: Run) -> str:
    own = best_own(run.timer.figures) or "interpreted"
    parts = [
        "# What the timers and the purgatory cost",
        _made_by(run),
        *_how(run),
        *_aims(run),
        *_when_not(run.timer),
        *_jvm(run.timer, own),
        *_every(run.timer),
        *_sizes(run.sizes, run.empty),
        *_steps(run.steps, _collector(run.timer)),
        *_purgatory(run.purgatory),
        *_guards(run.guarded),
        "## Left out",
        "\n".join(_item(line) for line in run.skipped),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _made_by(run: Run) -> str:
    return _paragraph(f"""Made by `{COMMAND}`; every figure is of that one run (scale {run.timer.scale},
        {run.cpu_s:,.0f} CPU seconds). `--scale quick` shows in seconds that it works, `python -m benchmarks timer
        --help` what there is.""")


def _paragraph(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _item(text: str) -> str:
    words = " ".join(text.split())
    return textwrap.fill(
        words, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )  # fmt: skip


def _how(run: Run) -> list[str]:
    machine = run.machine
    items = [
        f"""{machine["implementation"]} {machine["python"]}, {machine["system"]}, {machine["processors"]} processors
        shared with other work: load {run.load[0]:g} at the start, {run.load[1]:g} at the end. So what counts is CPU
        time and the quotients of one round, never the wall (P5 and P6 have the wall beside it).""",
        run.builds,
        """All in one process and one run, in rounds whose order rotates and reverses; inputs are made before and
        frozen; `ns` is the median of the rounds. The workload's own loop is in every figure (`loop`, below).""",
        f"""Ours have their lock; no heap has one, nor has asyncio. `{_BASELINE}`, a heap of integers beside a
        dictionary, is the honest baseline: the fastest timer in plain Python that we know.""",
        f"""All candidates with a virtual clock fired the same timers at the same times: {run.timer.compared:,} firings
        were compared in small versions of the workloads, and the count in each round. The command fails if not.""",
        """uvloop's clock cannot be set, so it only adds and cancels. The JVM's timers run in a child with the same
        delays in the same order, warmed up; the CPU time of its compiler and its collector is not counted.""",
    ]
    return ["## How it is measured", "\n".join(_item(item) for item in items)]


def _aims(run: Run) -> list[str]:
    table = aims_table([*run.timer.figures, *run.purgatory.figures], run.timer.observed)
    said = """A quotient is peer / subject: above 1 the subject is faster. In brackets the least and the greatest
        round. An aim whose subject is not here (see above) is not in the table."""
    return ["## Aims", _paragraph(said), _without_title(table)]


def _when_not(bench: TimerBench) -> list[str]:
    items: list[str] = []
    for own in ("compiled", "interpreted"):
        mine = [figure for figure in bench.figures if figure.subject == own and _BASELINE in figure.ratios]
        if not mine:
            continue
        items.append(_few(own, [one for one in mine if (one.id, one.title) == ("U2", "uniform")]))
        items += [
            f"**{what}**, {own} ({figure.id}, {short(figure.size)}): {_times(figure.ratios[_BASELINE].median)} of the "
            "heap of integers."
            for which, what in (("X2", "One timer at a time"), ("X1", "Timers few and far apart"))
            for figure in mine
            if (figure.id, figure.operation) == (which, "expire")
        ]
    items += _wakes(bench, best_own(bench.figures) or "interpreted")
    rule = """The rule: a wheel is for many timers of which most are cancelled or moved before they are due, with
        delays within a few minutes of one another: time-outs, sessions, retries. For a handful of timers, or some
        that are hours apart, use `heapq`, or `HeapTimer` behind the same interface."""
    why = """Why an interpreted wheel is not ahead of a heap of integers with few pending: an add is a call, the
        arithmetic of a level and a dictionary, in bytecode, and a lock; `heappush` of an integer is one call into C.
        The wheel wins where the heap pays: cancelled entries that stay, rebuilding, and expiry among many."""
    return [
        "## When not to use a wheel",
        "\n".join(_item(item) for item in items),
        _paragraph(rule),
        _paragraph(why),
    ]


def _few(own: str, churn: Sequence[Figure]) -> str:
    """From where on a wheel is ahead of the heap of integers for good."""
    ahead: list[int] = []
    for figure in sorted(churn, key=lambda figure: -figure.size):
        if figure.ratios[_BASELINE].low <= 1:
            break
        ahead.append(figure.size)
    if not ahead:
        return f"""**Plain churn**, {own}: in U2 it is not ahead of the heap of integers in every round at the largest
            size: a push is one call into C and costs a heap next to nothing, an add to a wheel is bytecode
            and a lock."""
    if len(ahead) == len(churn):
        return f"""**Plain churn**, {own}: in U2 it is ahead of the heap of integers in every round from
            {short(ahead[-1])} pending on, the smallest size that was measured."""
    return f"""**Fewer than {short(ahead[-1])} pending**, {own}: from there on it is ahead of the heap of integers in
        every round of U2."""


def _jvm(bench: TimerBench, own: str) -> list[str]:
    items = [
        f"""At {short(figure.size)} pending a cancel and an add cost {figure.ns:,.0f} ns here ({own}, locked) and
        {ratio.median * figure.ns:,.0f} ns with `jvm-kafka`, a port of the structure of Kafka's own wheel with its
        locks: {_times(ratio.median)}."""
        for figure in bench.figures
        if (figure.id, figure.subject, figure.title) == ("U2", own, "uniform")
        if (ratio := figure.ratios.get("jvm-kafka")) is not None
    ]
    if not items:
        return []
    said = """With many pending both wait for memory more than they compute. The next step would be fewer bytes and
        fewer places to touch for a timer (columns of integers instead of linked objects: 40 bytes instead of 64 in a
        prototype, and no faster with 88,000 pending), or C; it has not been done here."""
    return ["## Beside the JVM", "\n".join(_item(item) for item in items), _paragraph(said)]


def _wakes(bench: TimerBench, own: str) -> list[str]:
    wakes = {
        (seen.subject, seen.size): seen.values["wakes_per_timer"]
        for seen in bench.observed
        if "wakes_per_timer" in seen.values
    }
    return [
        f"""**Wake-ups**: a driver that sleeps until it is needed wakes {value:.2f} times a timer with
        {short(size)} sparse timers, with a heap {wakes[_BASELINE, size]:.2f} times: what lies far off has to be moved
        nearer."""
        for (subject, size), value in wakes.items()
        if subject == own and (_BASELINE, size) in wakes
    ]


def _times(ratio: float) -> str:
    return f"{1 / ratio:.1f} times the cost" if ratio < 1 else f"1 / {ratio:.1f} of the cost"


def _every(bench: TimerBench) -> list[str]:
    ids = "\n".join(_item(f"**{which}** {what}") for which, what in IDS.items())
    return ["## Every workload", ids, *(markdown(table) for table in tables(bench))]


def _sizes(bench: TimerBench, empty: Sequence[EmptyWheel]) -> list[str]:
    said = """Slots of a level, at a tick of 1 ms; more levels are made when a delay needs them. Few slots mean many
        levels and more moves from one to the next; many mean a longer worst tick and more memory for an empty wheel.
        `python -m benchmarks timer --sizes` measures this alone, and prints the tables."""
    items = [_ahead_of_default(bench.figures, *which) for which in dict.fromkeys(
        (figure.id, figure.operation, figure.size) for figure in bench.figures
    )]  # fmt: skip
    weight = {one.wheel_size: one for one in empty}
    chosen = f"""The default is {DEFAULT_WHEEL_SIZE} slots and two levels made beforehand (65 s at 1 ms), which is what
        time-outs need; a third is made by the first delay beyond."""
    paid = [
        f"{one.wheel_size} slots take {one.bytes / 1e3:,.0f} kB and {one.make_us / 1e3:,.2f} ms to make"
        for size in (DEFAULT_WHEEL_SIZE, 1_024, 4_096)
        if (one := weight.get(size)) is not None
    ]
    if paid:
        chosen += f""" More slots are ahead where the list says so; what they are paid for with is an empty wheel that
            weighs more and worst ticks that are longer: {", ".join(paid)}."""
    return [
        "## The size of the wheel",
        _paragraph(said),
        _paragraph(chosen),
        "\n".join(_item(item) for item in items),
    ]


def _ahead_of_default(figures: Sequence[Figure], which: str, operation: str, size: int) -> str:
    default = f"wheel-{DEFAULT_WHEEL_SIZE}"
    ahead = [
        f"{figure.subject} ({ratio.low:.2f}-{ratio.high:.2f})"
        for figure in figures
        if (figure.id, figure.operation, figure.size) == (which, operation, size)
        if (ratio := figure.ratios.get(default)) is not None and ratio.low > 1
    ]
    said = ", ".join(ahead) if ahead else "none"
    return f"{which} {operation}, {short(size)}: ahead of {DEFAULT_WHEEL_SIZE} slots in every round: {said}."


def _collector(bench: TimerBench) -> list[str]:
    """The collector's part, with many pending timers. Nothing for a build that was not measured."""
    seen = {(one.workload, one.subject): one.values for one in bench.observed}
    items: list[str] = []
    for own in ("compiled", "interpreted"):
        added, ticks = seen.get(("X5", own)), seen.get(("K2", own))
        if added is None or ticks is None:
            continue
        items.append(
            f"""The garbage collector, {own}: {added["collector_ns_per_timer"]:,.0f} ns a timer that is added and kept
            (X5); the worst tick of K2 takes {ticks["worst_tick_ms"]:.3g} ms with its pauses and
            {ticks["worst_tick_apart_from_collector_ms"]:.3g} ms without."""
        )
    if items:
        items.append(
            """It walks nothing of what waits: neither the handles of the compiled build nor the numbers of the
            interpreted one. The table shows why each has its own: what an object costs to make, to link and to walk in
            bytecode, a dictionary does in C; compiled, the links cost less than the dictionary."""
        )
    return items


def _steps(bench: TimerBench, collector: Sequence[str]) -> list[str]:
    said = """The same workload on no timer (`loop`), with a lock taken for each add and each cancel, and on the whole
        wheel in both builds: each with what it does by default, and with what the other does. A function waits under a
        number in a dictionary of its bucket (the default where the wheel is interpreted), or as a handle that is linked
        into the bucket's ring (where it is compiled); `tasks` are a `TimerTask` each. `--steps` measures this alone."""
    task = """A task costs more than a function, for it is three objects: itself, the pointer to its entry, which is
        exchanged in one step, and the node that a timer makes for it and links. Counted by valgrind, interpreted, an
        add and a cancel of one task take 11,300 instructions: the links 3,400, the node 2,400, the timer's lock 2,200,
        the two exchanges 1,600 (each is one call into C; under a small lock it would take 3,400). That is the price of
        a task that means the same for every timer."""
    shown = [markdown(table) for table in tables(bench)]
    items = "\n".join(_item(item) for item in collector)
    return ["## Where the cost goes", _paragraph(said), *shown, _paragraph(task), items]


def _purgatory(found: PurgatoryFigures) -> list[str]:
    said = """`compiled` and `interpreted` stand on the wheel for use, `faithful` on Kafka's classes. P1 to P4 are one
        operation from its making to its completion with 2,000 waiting; the operations are subclasses in plain Python.
        P5 and P6 are real threads, P6 in real time: its achieved rate is the machine's as much as the purgatory's.
        `python -m benchmarks purgatory` measures this alone."""
    return ["## The purgatory", _paragraph(said), *(markdown(table) for table in purgatory.tables(found))]


def _guards(guarded: Sequence[Guarded]) -> list[str]:
    said = """`python -m benchmarks timer --guard` fails where the interval (95 %, bootstrap) of a quotient lies below
        its floor; `--instructions` counts instructions under valgrind instead, which repeats exactly."""
    rows = [
        (
            f"{one.guard.peer} / {one.guard.subject}, {one.guard.operation}",
            f"{one.guard.floor:g}",
            f"{one.median:.2f} ({one.low:.2f}-{one.high:.2f})" if one.rounds else "-",
            one.verdict.value,
        )
        for one in guarded
    ]
    table = Table("", ("quotient", "floor", "measured", "verdict"), rows)
    return ["## The guard", _paragraph(said), _without_title(table)]


def _without_title(table: Table) -> str:
    return markdown(table).partition("\n\n")[2]
