"""`Clause`: a promise with the functions that judge it. `clauses.toml` has the text of each clause, and the data that
it needs.

    O3 = Clause("O3")

    @O3.of_operation
    def expiration_after_completion(run: Run, history: OperationHistory) -> Finding: ...

A judging function is pure. Its arguments are the facts of the run and one part of the run, such as one operation. There
are four results: the part keeps the clause, breaks the clause, or has no occasion (no case that could break the
clause), or the judgement is unknown. The class `Clause` adds the id of the operation to a violation. If the trace has
dropped records, `Clause` changes some violations to UNKNOWN.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from purgatorio_spec.history.block import Condition
from purgatorio_spec.history.operation import OperationHistory
from purgatorio_spec.history.part import CheckCall, Reading
from purgatorio_spec.history.run import Run
from purgatorio_spec.profile import CLAUSE_ENTRIES
from purgatorio_spec.trace.record import Header
from purgatorio_spec.verdict import WANT_OF_RECORDS, Judgement, Violation


@dataclass(frozen=True, slots=True)
class Broken:
    """A violation: a short name of its cause, the positions of the events that show it, and texts of the allowed and
    the seen behavior.

    `stands`: the events show the violation even if records were dropped. If false, a dropped record may excuse it.
    """

    cause: str
    events: Iterable[int]
    allowed: str
    seen: str
    stands: bool = False


Finding: TypeAlias = Judgement | Broken
OfOperation: TypeAlias = Callable[[Run, OperationHistory], Finding]
OfCheck: TypeAlias = Callable[[Run, CheckCall], Finding]
OfReading: TypeAlias = Callable[[Run, Reading], Finding]
Part: TypeAlias = OperationHistory | CheckCall | Reading


def _has(names: str, name: str) -> bool:
    """Whether the list has the name. An empty list has all names, and each list has the empty name."""
    return not names or not name or name in names.replace(",", "").split()


def _several(said: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(said.get(name, "").split())


class Wording(NamedTuple):
    """The text of a clause: its title, and the sentences of its rules."""

    title: str
    promise: str


class Rule(NamedTuple):
    """A sentence and its formula. `profiles`: the profiles that have the rule, or "" for all. `causes`: the causes of
    the violations that break the rule, or "" for all of its clause."""

    sentence: str
    formula: str
    profiles: str = ""
    causes: str = ""

    def __str__(self) -> str:
        return f"({self.profiles}) {self.sentence}" if self.profiles else self.sentence


def as_promise(rules: Iterable[str]) -> str:
    """The rules as text, each with a period."""
    return " ".join(f"{rule}." for rule in rules)


@dataclass(frozen=True, slots=True)
class FastRule:
    """The conditions under which a regular operation is an occasion of a clause, and may have broken the clause. The
    fast path gives the clause only the operations that may have broken it (`fast_path.rules`)."""

    occasion: Condition
    broken: Condition


DECLARED: Final[dict[str, "Clause"]] = {}
"""By id. A clause enters itself. `registry.CLAUSES` has those of `clauses.toml`, in its order."""


class Clause:
    """A promise: public id, title, rules (a sentence and a formula each), needs, and the functions that judge it.

    `words`: terms of the formulas, with their meanings. `example`: a history that breaks the clause. `occasion`: a
    chance to fail. `unless`: what is not judged. `records`: the functions that a trace must record (`a|b`: one of
    them). `constants`: the constants that its header must give. `needs_whole`: without an end record, or with dropped
    records, the clause cannot PASS. `asks`: the calls of the program without which there is no occasion (`a|b`: one of
    them). `asked_by`: functions of the format, constants of the header's timer, or gauges. If a trace declares none of
    them, and has no reading of such a gauge, the report leaves the clause out.
    """

    def __init__(self, name: str) -> None:
        said = CLAUSE_ENTRIES[name]
        DECLARED[name] = self
        self.id: Final = name
        self.group: Final[str] = said.get("group", "")
        self.title: Final[str] = said["title"]
        self.rules: Final = [Rule(*one) for one in said["rules"]]
        self.wording: Final = self.wording_in("")
        self.words: Final[Sequence[tuple[str, str]]] = said.get("words", ())
        self.example: Final[str] = said["example"]
        self.occasion: Final[str] = said["occasion"]
        self.unless: Final[Sequence[str]] = said.get("unless", ())
        self.records: Final = _several(said, "records")
        self.constants: Final = _several(said, "constants")
        self.needs_whole: Final[bool] = said.get("needs_whole", False)
        self.irregular_only: Final[bool] = said.get("irregular_only", False)
        self.asks: Final = _several(said, "asks")
        self.asked_by: Final = _several(said, "asked_by")
        self.judges: Final[dict[type[Part], Callable[[Run, Any], Finding]]] = {}
        """The judging functions of the clause, by the kind of part that they judge."""
        self.fast_rule: FastRule | None = None

    def wording_in(self, profile: str, cause: str = "") -> Wording:
        """The title, and the sentences of the profile's rules. Without a known profile, the sentences of all rules.
        With a cause, only the sentences of the rules that a violation with this cause breaks."""
        shown = (one for one in self.rules if _has(one.profiles, profile) and _has(one.causes, cause))
        return Wording(self.title, as_promise(one.sentence if profile else str(one) for one in shown))

    def of_operation(self, judge: OfOperation) -> OfOperation:
        self.judges[OperationHistory] = judge
        return judge

    def of_check(self, judge: OfCheck) -> OfCheck:
        self.judges[CheckCall] = judge
        return judge

    def of_reading(self, judge: OfReading) -> OfReading:
        self.judges[Reading] = judge
        return judge

    def is_asked(self, header: Header) -> bool:
        """Whether the report of a trace with this header has this clause (perhaps as SKIPPED)."""
        declared = (getattr(header.timer, name, None) is not None for name in self.asked_by)
        return not self.asked_by or not set(self.asked_by).isdisjoint(header.recorded) or any(declared)

    def skipped(self, run: Run) -> str | None:
        """Why the clause is not judged for this run, or None if it is judged."""
        if self.id not in run.profile.clauses:
            return f"the profile {run.profile.name} does not contain the clause"
        if lack := run.log.lacking.get(self.id):
            return f"the mapping of the log does not name {', '.join(lack)}"
        missing = [names for names in self.records if run.recorded.isdisjoint(names.split("|"))]
        if missing:
            return f"the trace does not record {', '.join(missing).replace('|', ' or ')}"
        absent = [name for name in self.constants if getattr(run, name) is None]
        if absent == ["late_ns"] and run.paused:
            return "the driver paused threads, and a paused thread may delay a task"
        if absent:
            return f"the header does not give {', '.join(absent)}"
        return None

    def never_asked(self, run: Run) -> str | None:
        """The call that the clause needs for an occasion, if the program never made it. None if records are missing,
        because the call may be among the missing records."""
        missing = [names.split("|") for names in self.asks if run.facts.called.isdisjoint(names.split("|"))]
        if not missing or not run.whole:
            return None
        recorded = [[one for one in names if one in run.recorded] for names in missing]
        if not all(recorded):
            return f"the trace does not record {', '.join(' or '.join(names) for names in missing)}"
        return f"the program never called {', '.join(' or '.join(names) for names in recorded)}"

    def judge(self, run: Run, part: Part) -> Judgement | None:
        """The judgement of one part of the run. None if the clause does not judge such parts."""
        judge = self.judges.get(type(part))
        return None if judge is None else self._judgement(run, judge(run, part), part.id)

    def _judgement(self, run: Run, finding: Finding, subject: str) -> Judgement:
        if isinstance(finding, Judgement):
            return finding
        if run.dropped and not finding.stands:
            return WANT_OF_RECORDS
        events = tuple(sorted(finding.events))
        return Judgement(1, Violation(self.id, subject, finding.cause, events, finding.allowed, finding.seen))
