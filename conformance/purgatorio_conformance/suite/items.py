"""Makes pytest tests from a marker, and test results from verdicts. Only this part of the plugin needs the extra
`pytest`."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from purgatorio_conformance.protocol.describe import parts_of
from purgatorio_conformance.protocol.driver import describe_command
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_conformance.suite.case import (
    Case,
    SubjectRuns,
    cases,
    driven_subject,
    plan_cases,
    real_time_subject,
)
from purgatorio_conformance.suite.contract import BadPromise, Promise
from purgatorio_conformance.suite.gated import command_promise, of_command, of_purgatory, of_timer
from purgatorio_spec.clause.registry import CLAUSES
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.show.visible import visible
from purgatorio_spec.verdict import Verdict

_FORMS: Final = {
    "timer": ("kind", "promises"),
    "purgatory": ("kind", "promises"),
    "subject": ("kind", "promises", "seeds", "timers"),
    "command": ("command", "expected_failures"),
}
"""For each kind of test, and for a command, the arguments of the marker."""

_TIMERS: Final = 500
"""The number of timers of a plan in real time, if the marker does not say it."""

_PROGRAM_LIMIT: Final = 70
"""The most characters of a program, in a test that refers to another test."""

_SUBJECTS: Final = pytest.StashKey[dict[tuple[str, str, str], SubjectRuns]]()


class BrokenPromise(AssertionError):
    """A clause is violated; the text is the counterexample."""


def parameters(marker: pytest.Mark) -> Sequence[object]:
    """The parameters of a marked test. Raises pytest.UsageError for an incomplete or invalid marker."""
    promises = marker.kwargs.get("promises", ())
    operations = any(isinstance(one, Promise) and "O1" in PROFILES[one.profile].clauses for one in promises)
    kind = marker.kwargs.get("kind", "purgatory" if operations else "timer")
    form = "command" if "command" in marker.kwargs else kind
    if form not in _FORMS:
        raise pytest.UsageError(f"@pytest.mark.purgatorio: kind is timer, purgatory or subject, not {kind!r}")
    unknown = [*map(repr, marker.args), *(name for name in marker.kwargs if name not in _FORMS[form])]
    if unknown:
        raise pytest.UsageError(
            f"@pytest.mark.purgatorio does not know {', '.join(unknown)}; here it has {', '.join(_FORMS[form])}"
        )
    if form == "command":
        return _command_parameters(marker)
    if not promises or not all(isinstance(promise, Promise) for promise in promises):
        raise pytest.UsageError("@pytest.mark.purgatorio needs promises=[Promise(...), ...]")
    names = [promise.profile for promise in promises]
    if len(set(names)) < len(names):
        raise pytest.UsageError(f"two promises of one profile: {', '.join(names)}; use two test functions")
    found: list[object] = []
    for promise in promises:
        of_promise = _plans(marker, promise) if kind == "subject" else cases(kind, promise)
        _require_known(promise, of_promise)
        found += [_parameter(case) for case in of_promise]
    return found


def _plans(marker: pytest.Mark, promise: Promise) -> list[Case]:
    seeds, timers = tuple(marker.kwargs.get("seeds", (1,))), marker.kwargs.get("timers", _TIMERS)
    if not seeds or not all(isinstance(number, int) and number >= 0 for number in (*seeds, timers)):
        raise pytest.UsageError("@pytest.mark.purgatorio(kind='subject', seeds=(1, ...), timers=500)")
    try:
        return plan_cases(promise, seeds, timers)
    except BadPromise as error:
        raise pytest.UsageError(str(error)) from error


def _command_parameters(marker: pytest.Mark) -> Sequence[object]:
    """Read the description of the program, once in every process."""
    command, expected = marker.kwargs["command"], marker.kwargs.get("expected_failures", {})
    if (
        not isinstance(command, list | tuple)
        or not command
        or not all(isinstance(one, str) for one in command)
    ):
        raise pytest.UsageError(f"command={command!r} is not a list: write [program, argument, ...]")
    try:
        description = describe_command(command)
        promise = replace(command_promise(description), expected_failures=expected)
    except (SubjectFailed, BadPromise) as failure:
        raise pytest.UsageError(str(failure)) from failure
    if "virtual-time" not in description.capabilities:
        raise pytest.UsageError(f"{description.name} has no virtual time: use `purgatorio verify --command`")
    found = [case for part in parts_of(description) for case in cases(part, promise, part, description)]
    _require_known(promise, found)
    return [_parameter(case) for case in found]


def _parameter(case: Case) -> object:
    reason = case.expected
    marks = () if reason is None else (pytest.mark.xfail(reason=reason, strict=True, raises=BrokenPromise),)
    return pytest.param(case, id=case.id, marks=marks)


def _require_known(promise: Promise, of_promise: Sequence[Case]) -> None:
    """Raise pytest.UsageError if an expected failure names no test."""
    known = {case.clause for case in of_promise} | {
        f"{case.clause}/{case.scenario.name}" for case in of_promise
    }
    wrong = [name for name in promise.expected_failures if name not in known]
    if wrong:
        raise pytest.UsageError(f"expected_failures names no test: {', '.join(wrong)}")


def require_clauses(wanted: Sequence[str]) -> None:
    """Raise pytest.UsageError if `--purgatorio-clause` names an unknown clause."""
    unknown = [clause for clause in wanted if clause not in CLAUSES]
    if unknown:
        raise pytest.UsageError(f"no clause {', '.join(unknown)}; there are {', '.join(CLAUSES)}")


@dataclass(frozen=True)
class BoundCase:
    """The value of the fixture `purgatorio_case`."""

    case: Case
    subject: SubjectRuns
    request: pytest.FixtureRequest
    asked: list[str] = field(default_factory=list)
    """The clause, after `check` was called. A test that never calls `check` fails."""

    def check(self) -> None:
        """Pass, skip with the reason, or fail with the counterexample. UNKNOWN or no occasion never passes."""
        self.asked.append(self.case.clause)
        try:
            outcome = self.case.judge(self.subject)
        except BadPromise as wrong:
            raise pytest.UsageError(str(wrong)) from wrong
        node = self.request.node
        node.user_properties += [
            ("clause", self.case.clause),
            ("profile", self.case.promise.profile),
            ("scenario", self.case.scenario.name),
            ("occasions", outcome.occasions),
            ("verdict", str(outcome.verdict)),
        ]
        if outcome.verdict is Verdict.PASS and outcome.text:
            node.user_properties.append(("note", outcome.text))
        if outcome.verdict is Verdict.PASS:
            return
        if outcome.verdict is Verdict.SKIPPED:
            pytest.skip(f"SKIPPED {self.case.clause}: {outcome.text}")
        if outcome.verdict is Verdict.UNKNOWN:
            if self.request.config.getoption("--purgatorio-unknown") == "skip":
                pytest.skip(f"UNKNOWN: {outcome.text}")
            pytest.fail(f"UNKNOWN: {outcome.text}", pytrace=False)
        node.user_properties += [
            ("breaks", "; ".join(outcome.breaks)),
            ("steps", outcome.length),
            ("leads", outcome.leads(self.case)),
            ("program", visible("; ".join(outcome.steps), _PROGRAM_LIMIT)),
        ]
        text = outcome.shown(self.case.clause, self._file(), f"pytest {shlex.quote(self._nodeid())}")
        if outcome.verdict is Verdict.VIOLATED:
            raise BrokenPromise(text)
        pytest.fail(text, pytrace=False)

    def _file(self) -> Path:
        """The path for the trace of a failure: in pytest's cache, or without a cache in its temporary folder."""
        name = re.sub(r"[^\w.-]+", "-", f"{self.case.promise.subject}-{self.case.id}") + ".jsonl"
        config = self.request.config
        if config.pluginmanager.hasplugin("cacheprovider") and config.cache is not None:
            path = config.cache.mkdir("purgatorio") / name
        else:
            factory: pytest.TempPathFactory = self.request.getfixturevalue("tmp_path_factory")
            path = factory.mktemp("purgatorio") / name
        return path.relative_to(self._here()) if path.is_relative_to(self._here()) else path

    def _here(self) -> Path:
        return self.request.config.invocation_params.dir

    def _nodeid(self) -> str:
        node = self.request.node
        return "::".join([os.path.relpath(node.path, self._here()), *node.nodeid.split("::")[1:]])


def bound(request: pytest.FixtureRequest) -> BoundCase:
    """The case of a test and its subject. All tests of one function and promise share the subject."""
    case = request.param
    assert isinstance(case, Case), "the plugin makes the parameters"
    subjects = request.config.stash.setdefault(_SUBJECTS, {})
    base = request.node.nodeid.partition("[")[0]
    key = (base, case.kind, case.promise.profile)
    # Every test requests the fixture's value, so that pytest keeps its order of set-up and teardown.
    factory = None if case.part else request.getfixturevalue(f"purgatorio_{case.kind}")
    if key not in subjects:
        subjects[key] = _subject(request, case, factory)
    return BoundCase(case, subjects[key], request)


def _subject(request: pytest.FixtureRequest, case: Case, factory: Any) -> SubjectRuns:
    said, promise = request.node.get_closest_marker("purgatorio").kwargs, case.promise
    if case.kind == "subject":
        folder: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        return real_time_subject(promise, factory, folder.mktemp("purgatorio"), said.get("timers", _TIMERS))
    if case.part:
        command = said["command"]
        return driven_subject(promise, of_command(promise, case.kind, describe_command(command), command))
    return driven_subject(promise, (of_timer if case.kind == "timer" else of_purgatory)(promise, factory))
