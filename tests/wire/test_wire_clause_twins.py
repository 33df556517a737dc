"""Every clause of the wire: a history that it keeps, with an occasion, and a twin of it that it must break."""

import ast
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import pytest

from docs.makers.packaged_brokers import clauses, requests
from purgatorio_spec.verdict import Verdict
from purgatorio_wire import clause, history
from purgatorio_wire.clause.registry import WIRE_CLAUSES
from purgatorio_wire.history.bound import MS, Bounds, RowStatus
from purgatorio_wire.history.finding import Row, kept
from purgatorio_wire.history.group import ILLEGAL_GENERATION, NO_SUCH_GROUP, UNKNOWN_MEMBER
from purgatorio_wire.history.history import COMMITS
from purgatorio_wire.judge import JUDGES, LOST_GAPS, Tallied
from purgatorio_wire.scene.catalogue import SCENES
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.spec import SceneSpec
from purgatorio_wire.sentence import WAYS
from purgatorio_wire.trace.record import Declared, WireEvent
from wire.stories import Told, judged, of_clause, stories
from wire.story import Story

pytestmark = pytest.mark.xdist_group("wire-twins")  # each story is judged once

TOLD = [(told, variant) for told in stories().values() for variant in range(told.variants)]
CASES = [(told, variant) for told, variant in TOLD if told.clause or told.expected]


def test_every_clause_has_twins_and_every_story_is_expected_to_come_to_something() -> None:
    assert all(map(of_clause, WIRE_CLAUSES))
    assert {told.variants for clause in WIRE_CLAUSES for told in of_clause(clause)} == {2}
    used = {line.verb for told in stories().values() for line in told.lines}
    assert {name for name, told in stories().items() if not told.clause and not told.expected} <= used


def test_every_row_has_its_judge_and_decides_a_clause_of_a_scene() -> None:
    """A judge names the clauses of its rows, so that all are UNKNOWN where it fails."""
    rows = [(told, row) for told, variant in TOLD for row in judged(told.name, variant)[1]]
    named = {(at, clause) for at, (clauses, _) in enumerate(JUDGES) for clause in clauses.split()}
    assert {row[:2] for _, row in rows} == named
    assert not [row for _, row in rows if row[2] not in WAYS[row[1]]]
    decided = {row[1:3] for told, row in rows if told.clause and row[3] is not RowStatus.UNDECIDED}
    asks = {ask.partition(" ")[::2] for one in SCENES.values() for ask in one.asks}
    assert {ask for ask in asks if ask[1]} <= decided


def test_a_judge_writes_only_the_kinds_of_its_clauses_and_all_of_them() -> None:
    """A mistyped kind would keep a clause UNKNOWN for ever."""
    folders = (Path(clause.__file__).parent, Path(history.__file__).parent)
    source = "\n".join(path.read_text() for folder in folders for path in sorted(folder.glob("*.py")))
    nodes = [*ast.walk(ast.parse(source.replace("from __future__", "from future")))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert not {way for ways in WAYS.values() for way in ways} - texts
    pairs = {
        (one.value, kind.value)
        for node in nodes
        if isinstance(node, ast.Call)
        for one, kind in pairwise(node.args)
        if isinstance(one, ast.Constant) and isinstance(kind, ast.Constant) and one.value in WAYS
    }
    assert len(pairs) > 150
    assert not {(one, kind) for one, kind in pairs if " " not in str(kind) and kind not in WAYS[str(one)]}


@pytest.mark.parametrize("ask", ["G6 lat", "P1", "Z1 late", "F3 two-owners"])
def test_a_scene_cannot_test_an_unknown_clause_or_a_kind_of_another(ask: str) -> None:
    async def plays(play: Play) -> None:
        """Nothing."""

    with pytest.raises(ValueError, match=ask if ask != "Z1 late" else "Z1"):
        SceneSpec("mistyped", "groups", (ask,), plays)


@pytest.mark.parametrize(("told", "variant"), CASES, ids=lambda one: getattr(one, "name", str(one)))
def test_a_history_comes_to_what_is_expected(told: Told, variant: int) -> None:
    """A legal one is kept, with an occasion, and its twin is not; what a broker may do accuses it of nothing."""
    assert not told.wrong(variant)


LATE = "f2 f3 f4 f6_waits f7 f8_waits g4_waits g5_late g7_late g8 m5_late m6 c1 x1_never"


@pytest.mark.parametrize("name", LATE.split())
def test_on_a_slow_machine_a_late_answer_is_unknown(name: str) -> None:
    told = stories()[name]
    slow = told.tell(Story(late_ms=30_000 if name == "x1_never" else 5000), 1)
    assert slow.judged(told.clause).verdict is Verdict.UNKNOWN


def test_only_the_ends_of_a_wait_move_its_deadline() -> None:
    """The machine stops in the middle of a wait; a member that waits in turn is delayed, too."""
    stood = WireEvent(0, 1600 * MS, "control", t_from=1400 * MS, late_ns=1000 * MS, rtt_ns=0)
    bounds = Bounds.of(Declared(), [stood])
    for through, status in ((False, RowStatus.LATE), (True, RowStatus.UNDECIDED)):
        by = bounds.by(0, 3000 * MS, 4000 * MS, gap_ns=3000 * MS, watched_t=9000 * MS, through=through)
        assert by.status is status


@pytest.mark.parametrize(
    ("came_ms", "watched_ms", "status"),
    [
        (None, 12_000, RowStatus.LATE),
        (None, 9000, RowStatus.UNDECIDED),
        (12_000, 12_000, RowStatus.UNDECIDED),
    ],
)
def test_a_slow_machine_does_not_explain_that_no_answer_comes(
    came_ms: int | None, watched_ms: int, status: RowStatus
) -> None:
    """The gap of 3 s is too short to judge a late answer, but a wait of 9 s is longer than four times the slack."""
    slow = WireEvent(0, 3500 * MS, "control", t_from=2500 * MS, late_ns=1000 * MS, rtt_ns=0)
    came_t = None if came_ms is None else came_ms * MS
    by = Bounds.of(Declared(), [slow]).by(0, 3000 * MS, came_t, gap_ns=3000 * MS, watched_t=watched_ms * MS)
    assert by.status is status
    assert by.gaps >= LOST_GAPS


@pytest.mark.parametrize(("others", "verdict"), [(0, Verdict.VIOLATED), (60, Verdict.UNKNOWN)])
def test_many_topics_that_are_created_at_once_have_more_time(others: int, verdict: Verdict) -> None:
    """A cold Kafka on a busy machine took 15 s for the topics of the random programs."""
    story = stories()["a1_never_leads"].tell(Story(), 1)
    story.repeat()
    for number in range(others):
        story.topic(f"other-{number}")
    assert story.judged("A1").verdict is verdict


@pytest.mark.parametrize(("times", "verdict"), [(1, Verdict.UNKNOWN), (2, Verdict.VIOLATED)])
@pytest.mark.parametrize(
    ("name", "clause"),
    [("g0_not_known", "G0"), ("forgotten_when_left", "G3"), ("forgotten_when_silent", "G3")],
)
def test_an_empty_group_may_be_forgotten_once(name: str, clause: str, times: int, verdict: Verdict) -> None:
    """Kafka up to 3.9 does so whenever a topic is deleted, also with an id that it has given."""
    story = stories()[name].tell(Story(), 1)
    for _ in range(times - 1):
        story.repeat()
    assert story.judged(clause).verdict is verdict


@pytest.mark.parametrize(
    ("api", "error"),
    [*product(COMMITS, (0, ILLEGAL_GENERATION, UNKNOWN_MEMBER)), (COMMITS[0], NO_SUCH_GROUP)],
)
@pytest.mark.parametrize("there", [False, True])
def test_a_commit_may_be_refused_if_the_group_may_have_no_members(api: str, error: int, there: bool) -> None:
    """It is forgotten, and of a commit with a transaction Kafka up to 3.9 makes it."""
    s = Story()
    s.gathered("ab" if there else "a")
    s.leave(2100, "a")
    s.commit(2200, "a", 1, error, api=api)
    right = error == UNKNOWN_MEMBER or (error and not there)
    assert s.judged("G9").verdict is (Verdict.PASS if right else Verdict.VIOLATED)


@pytest.mark.parametrize(("known", "counts"), [(30, False), (10, True)])
def test_a_broker_may_lose_state_that_it_need_not_keep(known: int, counts: bool) -> None:
    """As where topics are deleted all the time; it is no broker that forgets one of few."""
    tallied = Tallied()
    for t in (10, 20):
        tallied.add("joins", Row("G0", RowStatus.LATE, "new-id-unknown", late=(t, t + 1), gaps=0.0))
    for _ in range(known):
        tallied.add("joins", kept("G0", "new-id-unknown"))
    assert bool(tallied.violations()) is counts


@pytest.mark.parametrize(("page", "made"), [("wire.md", clauses), ("measured/wire-requests.md", requests)])
def test_a_page_has_the_clauses_or_requests(page: str, made: Callable[[], str]) -> None:
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    assert made() in text, "run `python -m docs.makers.packaged_brokers docs/wire.md --clauses`"
