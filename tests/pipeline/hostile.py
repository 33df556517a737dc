"""Names that try to become markup, script, an attribute, a command of a terminal or a CI system; and a check and
findings whose every text is one."""

from dataclasses import replace

from pipeline.made_results import LONG_COMMAND, findings_of, outcome, raced, stress_of
from purgatorio_pipeline.finding import Finding
from purgatorio_spec.judge.result import Cause, CheckResult
from purgatorio_spec.lateness import Lateness
from purgatorio_spec.show.counterexample import Counterexample
from purgatorio_spec.show.selection import CauseKey
from purgatorio_spec.trace.parse import BrokenLine
from spec.trace_builder import MS, Trace

HOSTILE = (
    "<script>document.title='pwned'</script>",
    '"><img src=x onerror="document.title=\'pwned\'">',
    "' onmouseover='document.title=1' x='",
    "</title></style></svg><script>document.title='pwned'</script>",
    "<!--",
    "]]><svg/onload=document.title=1>",
    "&lt;b&gt;&#60;i&#62;",
    "[red]rich[/red] [link=http://example.org]x[/link]",
    "http://example.org/x.js",
    "`` ``` ````",
    "| a | b |",
    "@somebody #1 www.example.org",
    "*b* _i_",
)
"""Markup."""
COMMANDS = (
    "\x1b]0;pwned\x07\x1b[2J",
    "a\n::error file=x::pwned",
    "a\r::error::pwned",
    "::error::pwned",
    "  ::warning file=a,line=1::pwned",
    "a ##vso[task.setvariable variable=PATH]pwned",
    "##[add-path]pwned",
    "a\u202egnp.exe",
    "a\u2066b\u2028c\u0085d",
    "::error::" + "pwned " * 2_000,
)
"""Characters that a terminal or a CI system would obey, or could not show."""


def hostile_check(text: str) -> tuple[CheckResult, dict[CauseKey, Counterexample], list[Lateness]]:
    """A violated check in which run, file, subject, ids, keys, threads, errors and problems are all `text`."""
    made = Trace(run=text, late_ns=None)
    made.file = text
    call = made.start("try_complete_else_watch", text, keys=[text, text], delay_ns=17 * MS, th=text)
    made.end(made.start("try_complete", text, th=text), err=text)
    made.add(text, delay_ns=17 * MS, th=text)
    made.end(call, 0)
    made.wait(14 * MS)
    made.start("timer_fire", text, th=text + "2")
    examples = made.examples()
    (run,) = made.result().runs
    clauses = {name: replace(one, reason=text) for name, one in run.clauses.items()}
    for clause in clauses.values():
        for cause in clause.causes.values():
            cause.examples[:] = [replace(one, allowed=text, seen=text) for one in cause.examples]
    examples = {
        key: replace(one, violation=replace(one.violation, allowed=text, seen=text))
        for key, one in examples.items()
    }
    hostile = replace(run, subject=text, profile=text, problems=(text,), clauses=clauses)
    broken = BrokenLine(text, 3, text, text, text, text)
    late = Lateness(text, ((0, 1000, 3),), 1, 2, 3, 4, 0)
    return CheckResult((hostile,), 1, (broken,)), examples, [late]


def hostile_findings(text: str) -> list[Finding]:
    line = outcome(text, 3, "forbidden", text, text)
    shape = raced(text) | {"outcomes": [line]}
    long = raced(text) | {"outcomes": [outcome("x", 1, "forbidden", "O4", LONG_COMMAND)]}
    return findings_of(stress_of(shape, long, problem=text))


def many_violations(count: int) -> CheckResult:
    """One run in which one cause broke a clause so often."""
    made = Trace()
    made.register("op-13", ["k35"], delay_ns=17 * MS, th="worker-4")
    made.start("timer_fire", "op-13")
    (run,) = made.result().runs
    clause = run.clauses["T1"]
    causes = {name: Cause(count, cause.examples) for name, cause in clause.causes.items()}
    return CheckResult((replace(run, clauses={**run.clauses, "T1": replace(clause, causes=causes)}),))
