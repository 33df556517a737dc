"""The pytest plugin: makes one test for each `Promise` of a subject (a profile with its constants), clause and
scenario. See docs/conformance-suite.md.

pytest loads the plugin by its entry point. Every run of pytest imports this module if Purgatorio is installed. So it
imports other modules only when a test needs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from _pytest._code.code import TerminalRepr

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter

    from purgatorio_conformance.suite.items import BoundCase

pytest_plugins = ("purgatorio_stress.foreign.interleavings",)
"""The tests of Python interleavings, in addition to conformance."""

FIXTURE = "purgatorio_case"
MARKER = "purgatorio"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options. All names begin with `--purgatorio`."""
    group = parser.getgroup("purgatorio", "conformance of timers and purgatories")
    group.addoption(
        "--purgatorio-clause",
        action="append",
        default=[],
        metavar="ID",
        help="run only the conformance tests of this clause (T1, O4, ...); may be repeated",
    )
    group.addoption(
        "--purgatorio-unknown",
        choices=("skip", "fail"),
        default="skip",
        help="the result of a test whose verdict is UNKNOWN; the test never passes (default: %(default)s)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(promises, kind='timer'): what a subject promises; or (command); see docs/conformance-suite.md",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each promise, clause and scenario, in the same order in every process."""
    if FIXTURE not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        raise pytest.UsageError(f"{metafunc.definition.nodeid} uses {FIXTURE}, and has no marker {MARKER!r}")
    with _needed():
        from purgatorio_conformance.suite.items import parameters
    try:
        found = parameters(marker)
    except pytest.UsageError as wrong:
        raise pytest.fail.Exception(str(wrong), pytrace=False) from None  # without the stack of the suite
    metafunc.parametrize(FIXTURE, found, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep only the conformance tests that `--purgatorio-clause` names."""
    wanted: list[str] = config.getoption("--purgatorio-clause")
    if not wanted:
        return
    with _needed():
        from purgatorio_conformance.suite.items import require_clauses
    require_clauses(wanted)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        (kept if _clause_of(item) in (None, *wanted) else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept


@pytest.fixture
def purgatorio_case(request: pytest.FixtureRequest) -> BoundCase:
    """The case of this test, with its subject."""
    with _needed():
        from purgatorio_conformance.suite.items import bound
    return bound(request)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Fail a test that has a case and never checks it."""
    result = yield
    case = pyfuncitem.funcargs.get(FIXTURE)
    if case is not None and not getattr(case, "asked", ()):
        pytest.fail(f"{FIXTURE}.check() was never called: nothing was judged", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a broken promise as its counterexample, without the stack of the suite."""
    report = yield
    broken = call.excinfo is not None and _clause_of(item) and call.excinfo.typename == "BrokenPromise"
    if call.excinfo is not None and broken and not isinstance(report.longrepr, tuple):
        report.longrepr = str(call.excinfo.value)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Group the failures, because one bug breaks many tests. Programs of one subject that break a common clause count
    as one cause. Of each cause, show the shortest program first, to which the other failures refer."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    failed: list[pytest.TestReport] = [] if reporter is None else reporter.stats.get("failed", [])
    of_ours = [report for report in failed if "breaks" in dict(report.user_properties)]
    of_ours.sort(key=lambda report: (_program_of(report)[1], not dict(report.user_properties)["leads"]))
    groups: list[tuple[str, set[str], list[pytest.TestReport]]] = []
    for report in of_ours:
        subject, broken = report.nodeid.partition("[")[0], set(_program_of(report)[0])
        for other, breaks, members in groups:
            if other == subject and breaks & broken:
                first, said = members[0], dict(report.user_properties)
                report.longrepr = (
                    f"{said['clause']}  as {first.nodeid.rpartition('::')[2]} above: {said['program']}"
                )
                members.append(report)
                break
        else:
            groups.append((subject, broken, [report]))
    for report in of_ours:
        report.longrepr = _Shown(str(report.longrepr), dict(report.user_properties))
    ours = iter([report for *_, members in groups for report in members])
    failed[:] = [next(ours) if report in of_ours else report for report in failed]


class _Shown(TerminalRepr):
    """A counterexample, with one line for the short summary. In CI, or with -vv, pytest prints it in full."""

    def __init__(self, text: str, said: Mapping[str, object]) -> None:
        self._text = text
        breaks = str(said["breaks"])
        found = "is broken" if said["clause"] in breaks.split("; ") else f"cannot be judged: {breaks}"
        self.reprcrash = SimpleNamespace(message=f"{said['clause']} {found} by {said['program']}")

    def __str__(self) -> str:
        return self._text

    def toterminal(self, out: TerminalWriter) -> None:
        out.line(self._text)


def _program_of(report: pytest.TestReport) -> tuple[list[str], int]:
    """The clauses that the program of a failed test breaks, and its length."""
    said = dict(report.user_properties)
    return str(said["breaks"]).split("; "), int(str(said["steps"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print each note of a PASS once, and the number of UNKNOWN and SKIPPED verdicts, because a green run may be
    incomplete."""
    passed: Iterable[pytest.TestReport] = terminalreporter.stats.get("passed", [])
    notes = (dict(report.user_properties).get("note") for report in passed)
    for note in dict.fromkeys(filter(None, notes)):
        terminalreporter.write_line(f"purgatorio: {note}")
    skipped: Iterable[pytest.TestReport] = terminalreporter.stats.get("skipped", [])
    verdicts = Counter(dict(report.user_properties).get("verdict") for report in skipped)
    if verdicts["UNKNOWN"]:
        terminalreporter.write_line(
            f"purgatorio: {verdicts['UNKNOWN']} UNKNOWN, which is not a pass; -rs shows why, "
            "--purgatorio-unknown=fail fails them"
        )
    if verdicts["SKIPPED"]:
        terminalreporter.write_line(
            f"purgatorio: {verdicts['SKIPPED']} SKIPPED, so not tested; -rs shows why"
        )


def _clause_of(item: pytest.Item) -> str | None:
    """The clause of a conformance test; None for any other test."""
    callspec = getattr(item, "callspec", None)
    case = None if callspec is None else callspec.params.get(FIXTURE)
    clause = getattr(case, "clause", None)
    return clause if isinstance(clause, str) else None


@contextmanager
def _needed() -> Iterator[None]:
    """Context for imports that need more than pytest: reports a missing extra."""
    try:
        yield
    except ImportError as missing:
        raise pytest.UsageError(
            f"the conformance suite needs the extra `pytest`: pip install 'purgatorio[pytest]' ({missing})"
        ) from missing
