"""What a conversation records and what it refuses, line by line and without a program at the other end."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import orjson
import pytest

from purgatorio_conformance.protocol.conversation import Conversation, Misbehaved, VirtualClock
from purgatorio_conformance.protocol.describe import check_description, profile_of
from purgatorio_conformance.protocol.message import (
    CALLS,
    REPORTABLE,
    Add,
    Advance,
    Call,
    CancelKey,
    Check,
    Description,
    Gauge,
    Go,
    Quiesce,
    Ready,
    Register,
    Reset,
    Start,
)
from purgatorio_conformance.protocol.rule import decoded
from purgatorio_conformance.protocol.session import Peer, Session
from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import SubjectFailed
from purgatorio_spec.trace.record import Event
from purgatorio_spec.trace.recorder import Recorder

PURGATORY = (Register("op", ("k", "l"), 50),)


class Scene:
    def __init__(self, *calls: Call, virtual: bool = True) -> None:
        self.now = 10
        self.recorder = Recorder(lambda: self.now)
        self.conversation = Conversation(self.recorder, REPORTABLE, VirtualClock() if virtual else None)
        for call in calls:
            self.answered(call)

    def answered(self, call: Call, answer: str = "") -> None:
        number = self.conversation.calls
        self.conversation.ask(call)
        out = '"out":0' if isinstance(call, Register) and not answer else answer
        self.hear("answer", f'"n":{number}{"," + out if out else ""}')

    def hear(self, m: str, fields: str) -> None:
        self.conversation.hear(f'{{"m":"{m}",{fields}}}'.encode())

    def recorded(self) -> list[str]:
        """What was recorded since last time, in short: thread, function, phase, id, result."""
        events = self.recorder.drain()
        return [f"{event.th}:" * (event.th != "caller-0") + in_short(event) for event in events]


def in_short(event: Event) -> str:
    result = "" if event.out is None else f"={event.out}"
    return f"{event.f}.{event.ph}({event.id or ','.join(event.keys or ())}){result}"


def test_the_deadline_is_the_earliest_that_the_subject_can_mean() -> None:
    """Counted from before the line was written, however late the answer or the event comes."""
    scene = Scene()
    scene.conversation.ask(Add("t", 5))
    scene.conversation.ask(Register("op", ("k",), 7), lane=1)
    scene.now = 100
    scene.hear("answer", '"n":0')
    scene.hear("armed", '"id":"op","during":1')
    deadlines = {event.id: event.deadline_t for event in scene.recorder.drain() if event.deadline_t}
    assert deadlines == {"t": 15, "op": 17}
    assert (100, Add("t", 5)) in scene.conversation.waiting(), (
        "late is what is overdue by the latest deadline"
    )


def test_a_task_that_is_added_again_inside_its_run_waits_after_the_run() -> None:
    """The driver must not begin a new run of the subject then: this task would be lost."""
    scene = Scene(Add("t", 5))
    scene.conversation.ask(Advance(20))
    scene.hear("enter", '"f":"timer_fire","id":"t","during":1')
    scene.conversation.ask(Add("t", 5), lane=1)
    scene.hear("answer", '"n":2')
    scene.hear("leave", '"f":"timer_fire","id":"t","during":1')
    assert scene.conversation.pending == {"t"}


def test_a_run_too_early_for_the_last_add_is_the_run_of_the_add_before() -> None:
    """It was at the executor by then: the task still waits, and its second run ends that."""
    scene = Scene(Add("t", 5))
    scene.conversation.description = Description(0, "", "x", ("timer",), (), early_ns=0)
    scene.now = 20
    scene.answered(Add("t", 50))
    scene.conversation.ask(Advance(20))
    for now, pending in ((20, {"t"}), (70, set())):
        scene.now = now
        scene.hear("fired", '"id":"t","during":2')
        assert scene.conversation.pending == pending


@pytest.mark.parametrize("first", ["add", "reset"])
def test_a_reset_beside_an_add_counts_from_the_later_deadline(first: str) -> None:
    """Either may have come last. A reset alone counts from its own deadline, though that is earlier."""
    scene = Scene(Add("t", 50), Add("u", 50))
    scene.conversation.ask(Reset("t", 5), lane=1)
    scene.conversation.ask(Add("t", 80))
    for number in (3, 2) if first == "add" else (2, 3):
        scene.hear("answer", f'"n":{number}' + ',"out":1' * (number == 2))
    scene.answered(Reset("u", 5), '"out":1')
    scene.now = 60
    assert scene.conversation.overdue() == ["u"]
    scene.now = 90
    assert scene.conversation.overdue() == ["t", "u"]


def test_events_are_on_the_thread_of_their_call_or_on_their_own() -> None:
    """In real time `during` says which call made it; nothing else is taken for made by one."""
    scene = Scene(Add("t", 5), Add("u", 5), Add("v", 5), virtual=False)
    scene.conversation.ask(Gauge(), lane=2)
    for fields in ('"id":"t"', '"id":"u","th":"reaper"', '"id":"v","during":3'):
        scene.hear("fired", fields)
    fires = [event.th for event in scene.recorder.drain() if event.f == "timer_fire" and event.ph == "call"]
    assert fires == ["subject", "subject/reaper", "caller-2"]


def test_ready_is_a_point() -> None:
    """`ready` is true from its answer on at the latest, and not before it was asked for."""
    scene = Scene(*PURGATORY)
    scene.recorded()
    scene.conversation.ask(Ready("op"))
    scene.now = 20
    scene.hear("answer", '"n":1')
    (ready,) = scene.recorder.drain()
    assert (ready.f, ready.ph, ready.t_call, ready.t) == ("ready", "at", 10, 20)


def fields_of(text: str) -> dict[str, object]:
    name, *words = text.split()
    fields: dict[str, object] = {"m": name}
    for word in words:
        key, _, value = word.partition("=")
        parts = [int(part) if part.isdigit() else part for part in value.split(",") if part]
        fields[key] = parts if key in LISTS else parts[0]
    return fields


class Spoken(Scene):
    refused: Misbehaved | None = None

    def read(self, line: str) -> None:
        sign, _, text = line.partition(" ")
        if sign in (">", ">>"):
            self.asks(fields_of(text), answers=sign == ">>")
        elif sign == "<":
            try:
                self.conversation.hear(orjson.dumps(fields_of(text)))
            except Misbehaved as refused:
                self.refused = refused
        elif sign == "!":
            kind, _, why = text.partition(" ")
            assert self.refused is not None, line
            assert (self.refused.kind, why in self.refused.why) == (kind, True), self.refused.why
            self.refused = None
        elif sign == "now":
            self.now = int(text)
        elif sign == "records":
            assert self.recorded() == text.split()
        elif sign == "doubts":
            doubts = self.conversation.doubted()
            assert any(text in one for one in doubts) if text else not doubts
        elif sign == "=":
            name, _, said = text.partition(" ")
            found = getattr(self.conversation, name)() or ""
            assert str(sorted(found) if isinstance(found, frozenset) else found) == said, line
        else:
            raise ValueError(line)

    def asks(self, fields: dict[str, object], *, answers: bool) -> None:
        how = {key: fields.pop(key) for key in ("lane", "hold", "step") if key in fields}
        call = decoded(CALLS[str(fields["m"])], fields)
        number = self.conversation.calls
        steps = (cast(int, how["step"]),) if "step" in how else ()
        self.conversation.ask(
            call, cast(int, how.get("lane", 0)), hold=cast(int | None, how.get("hold")), steps=steps
        )
        if answers:
            out = {"out": 0} if isinstance(call, Register | Check) else {}
            self.conversation.hear(orjson.dumps({"m": "answer", "n": number, **out}))


LISTS = frozenset({"keys", "gates", "holds", "ids", "capabilities", "reports"})
CONVERSATIONS = (Path(__file__).with_name("conversations.txt")).read_text(encoding="utf-8").split("\n== ")


@pytest.mark.parametrize("told", CONVERSATIONS[1:], ids=lambda told: told.partition("\n")[0][:70])
def test_conversations(told: str) -> None:
    lines = [line for line in told.split("\n")[1:] if line and not line.startswith("#")]
    scene = Spoken(virtual="real" not in lines)
    for line in lines:
        if line != "real":
            assert scene.refused is None or line.startswith("! ")
            scene.read(line)
    assert scene.refused is None


@pytest.mark.parametrize(("capability", "keys"), [("cancel-key", ("k",)), ("cancel-key-all", ("k", "l"))])
def test_what_a_key_gives_back_may_be_taken_from_all(capability: str, keys: tuple[str, ...]) -> None:
    """Where it is, no other key owes it anything; elsewhere, as in Kafka, it still waits under the others."""
    scene = Scene(*PURGATORY)
    scene.conversation.description = Description(0, "", "one", capabilities=(capability,), reports=REPORTABLE)
    scene.answered(CancelKey("k"), '"ids":["op"]')
    (cancelled,) = [event for event in scene.recorder.drain() if event.f == "cancelled"]
    assert cancelled.keys == keys


def test_an_error_is_an_event_where_the_call_is_one() -> None:
    """A wheel that refuses an add keeps its promises; one that cannot start has no run."""
    scene = Scene()
    scene.answered(Add("t", 5), '"err":"TooFar"')
    (_, ret) = scene.recorder.drain()
    assert (ret.f, ret.err, ret.deadline_t) == ("timer_add", "TooFar", None)
    assert scene.conversation.pending == set()
    for call in (Start("timer", "virtual", 0), Advance(5), Quiesce()):
        with pytest.raises(Misbehaved) as caught:
            Scene().answered(call, '"err":"No"')
        assert caught.value.kind == "refused"


def test_threads_and_depth_have_limits() -> None:
    """A thread with a new name is recorded as one that is in no function. Functions that are never left are floods."""
    scene = Scene(*PURGATORY, virtual=False)
    for number in range(400):
        scene.hear("armed", f'"id":"op","th":"{number}"')
    assert len({event.th for event in scene.recorder.drain()}) == 1 + 255
    for number in range(255):
        scene.hear("enter", f'"f":"try_complete","id":"op","th":"{number}"')
    with pytest.raises(Misbehaved, match="more than 256 threads at work"):
        scene.hear("armed", '"id":"op","th":"255"')
    wide = cast("Peer", SimpleNamespace(failed=partial(SubjectFailed, "wide")))
    with pytest.raises(SubjectFailed, match="more than 256 threads at work"):
        Session(wide, scene.conversation, ChildLimits()).ask(Check("k"), lane=1)
    for _ in range(63):
        scene.hear("enter", '"f":"try_complete","id":"op","th":"0"')
    with pytest.raises(Misbehaved, match="more than 64 functions entered and not left"):
        scene.hear("enter", '"f":"try_complete","id":"op","th":"0"')


def test_a_call_at_a_pause_is_on_the_log_of_its_thread() -> None:
    """Also if another thread had this log before."""
    scene = Scene(Start("purgatory", "real", gates=("try_complete",)), *PURGATORY, virtual=False)
    for number in range(255):
        scene.hear("armed", f'"id":"op","th":"{number}"')
    for name in ("new", "newer"):
        scene.hear("enter", f'"f":"try_complete","id":"op","th":"{name}"')
    scene.hear("held", '"f":"try_complete","id":"op","hold":1,"th":"new"')
    scene.conversation.ask(Check("k"), hold=1)
    check = scene.recorder.drain()[-1]
    assert (check.f, check.th) == ("check_and_complete", "subject/0")


def test_the_runs_of_a_task_have_a_limit() -> None:
    """Of 400 tasks each ran 400 times, and one run took minutes (killbill-commons#104). An add begins a new count."""
    scene = Scene()
    for _ in range(100):
        scene.answered(Add("t", 0))
        scene.conversation.ask(Advance(scene.now))
        scene.hear("fired", '"id":"t"')
        scene.hear("answer", f'"n":{scene.conversation.calls - 1}')
    scene.conversation.ask(Advance(scene.now))
    for _ in range(63):
        scene.hear("fired", '"id":"t"')
    with pytest.raises(Misbehaved, match="'t' ran more than 64 times"):
        scene.hear("fired", '"id":"t"')


GOOD = Description(0, "", "x", ("timer", "virtual-time", "cancel"), ("timer_fire",))
GOOD_PURGATORY = replace(
    GOOD, capabilities=("purgatory", "real-time"), reports=("on_complete", "force_complete"), profile="locked"
)


def test_an_add_again_or_a_reset_has_the_delay_that_the_subject_knows() -> None:
    for capability, again in (("add-same", Add("t", 5)), ("reset-same", Reset("t", 5))):
        for more, delay_ns in (("", 3), ("add-again", 3 if isinstance(again, Reset) else 5)):
            conversation = Conversation(Recorder(lambda: 0), clock=VirtualClock())
            conversation.description = replace(GOOD, capabilities=("timer", capability, more))
            conversation.ask(Add("t", 3))
            assert conversation.as_declared(again) == replace(again, delay_ns=delay_ns)
            assert conversation.as_declared(Add("u", 7)) == Add("u", 7), "it is new"


def test_good_descriptions_are_taken() -> None:
    """The twins of those below; a plain timer's profile follows from its cancel."""
    for description in (GOOD, GOOD_PURGATORY):
        check_description(description)
    assert profile_of(GOOD) == "timer"
    barrier = replace(GOOD, capabilities=(*GOOD.capabilities, "cancel-barrier"))
    for one in (barrier, replace(GOOD, profile="asyncio")):
        check_description(one)
    assert profile_of(barrier) == "timer-cancel-barrier"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (replace(GOOD, capabilities=("virtual-time",)), "neither the capability timer nor purgatory"),
        (replace(GOOD, capabilities=("timer",)), "neither the capability virtual-time nor real-time"),
        (replace(GOOD, reports=()), "a timer must report timer_fire"),
        (replace(GOOD, profile="fast"), "no profile 'fast'; there are: locked"),
        (replace(GOOD, most_delay_ns=-1), "no delay is possible"),
        (replace(GOOD, unit_ns=10, most_delay_ns=9), "no delay is possible"),
        (replace(GOOD_PURGATORY, reports=("on_complete",)), "a purgatory must report force_complete"),
        (replace(GOOD_PURGATORY, profile="asyncio"), "asyncio has no promises for a purgatory"),
        (replace(GOOD_PURGATORY, profile=None), "timer has no promises for a purgatory"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(wrong: Description, why: str) -> None:
    """Before a run, and not by an odd verdict after it."""
    with pytest.raises(Misbehaved) as caught:
        check_description(wrong)
    assert caught.value.kind == "rubbish"
    assert why in caught.value.why


@pytest.mark.parametrize("meets", [False, True])
def test_calls_that_never_meet_are_held_against_the_adapter(meets: bool) -> None:
    """A lock around each call hides every race, and what finds none has not looked."""
    scene = Scene(Start("purgatory", "virtual", gates=("try_complete",)), *PURGATORY)
    for lane, hold in enumerate((7, 8, 9)):
        at = '"f":"try_complete","id":"op"'
        held, beside = scene.conversation.calls, scene.conversation.calls + 1
        scene.conversation.ask(Check("k"), 0)
        scene.hear("enter", f'{at},"during":{held}')
        scene.hear("held", f'{at},"hold":{hold},"during":{held}')
        scene.conversation.ask(Check("l"), 1 + lane)
        if meets:
            scene.hear("answer", f'"n":{beside},"out":0')
        scene.answered(Go((hold,)))
        scene.hear("leave", f'{at},"out":0,"during":{held}')
        scene.hear("answer", f'"n":{held},"out":0')
    assert any("a lock around its calls" in one for one in scene.conversation.doubted()) is not meets
