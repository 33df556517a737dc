"""What a conversation records and what it refuses, line by line and without a program at the other end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from purgatorio_conformance.protocol.conversation import Conversation, Misbehaved
from purgatorio_conformance.protocol.describe import check_description, profile_of
from purgatorio_conformance.protocol.message import (
    REPORTABLE,
    Add,
    Advance,
    Call,
    Cancel,
    CancelKey,
    Check,
    Describe,
    Description,
    Force,
    Gauge,
    Go,
    Quiesce,
    Ready,
    Register,
    Start,
)
from purgatorio_conformance.subject.contract import FailureKind
from purgatorio_spec.trace.record import Event
from purgatorio_spec.trace.recorder import Recorder

PURGATORY = (Register("op", ("k", "l"), 50),)


class Scene:
    """A conversation over a clock that the test sets."""

    def __init__(self, *calls: Call, virtual: bool = True) -> None:
        self.now = 10
        self.recorder = Recorder(lambda: self.now)
        self.conversation = Conversation(self.recorder, REPORTABLE, virtual=virtual)
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
        """What was recorded since last time, in short: function, phase, id, result."""
        return [in_short(event) for event in self.recorder.drain()]


def in_short(event: Event) -> str:
    """`force_complete.ret(op)=1`."""
    result = "" if event.out is None else f"={event.out}"
    return f"{event.f}.{event.ph}({event.id or ','.join(event.keys or ())}){result}"


CLAIM = '"f":"force_complete","id":"op"'
CALLBACK = '"f":"on_complete","id":"op"'


@pytest.mark.parametrize(
    ("call", "told"),
    [
        # `completed` alone stands for both, so that a subject without a `force_complete` to override can be judged.
        (Check("k"), [("completed", '"id":"op"')]),
        # With time inside.
        (Check("k"), [("enter", CALLBACK), ("leave", CALLBACK)]),
        # Inside an entered `force_complete`, or the driver's own `force`, the callback alone is new.
        (Force("op"), [("enter", CLAIM), ("completed", '"id":"op"'), ("leave", f'{CLAIM},"out":1'),
                       ("answer", '"n":1,"out":1')]),
    ],
)  # fmt: skip
def test_a_completion_is_one_claim_with_its_callback(call: Call, told: list[tuple[str, str]]) -> None:
    scene = Scene(*PURGATORY)
    scene.recorded()
    scene.conversation.ask(call)
    for m, fields in told:
        scene.hear(m, fields)
    assert [one for one in scene.recorded() if not one.startswith("check")] == [
        "force_complete.call(op)",
        "on_complete.call(op)",
        "on_complete.ret(op)",
        "force_complete.ret(op)=1",
    ]


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


def test_events_are_on_the_thread_of_their_call_or_on_their_own() -> None:
    """In real time `during` says which call made it; nothing else is taken for made by one."""
    scene = Scene(Add("t", 5), Add("u", 5), Add("v", 5), virtual=False)
    scene.conversation.ask(Gauge(), lane=2)
    for fields in ('"id":"t"', '"id":"u","th":"reaper"', '"id":"v","during":3'):
        scene.hear("fired", fields)
    fires = [event.th for event in scene.recorder.drain() if event.f == "timer_fire" and event.ph == "call"]
    assert fires == ["subject", "subject/reaper", "caller-2"]


@pytest.mark.parametrize("during", ["", ',"during":1'])
def test_in_real_time_a_completion_names_its_call(during: str) -> None:
    """Or it would be taken for another thread's, and a purgatory that does as it should for a broken one."""
    scene = Scene(*PURGATORY, virtual=False)
    scene.conversation.ask(Check("k"))
    scene.hear("completed", f'"id":"op"{during}')
    if during:
        scene.hear("answer", '"n":1,"out":1')
        return
    with pytest.raises(Misbehaved, match="no event so far named its call") as caught:
        scene.hear("answer", '"n":1,"out":1')
    assert caught.value.kind == "rubbish"


@pytest.mark.parametrize("out", ["", ',"out":1'])
def test_who_completes_says_so_where_it_leaves(out: str) -> None:
    """A result that is left out for false is known by the one that is true."""
    scene = Scene(Register("other", ("l",), 50), *PURGATORY)
    for said in ("", out):
        scene.conversation.ask(Check("k"))
        scene.hear("enter", '"f":"try_complete","id":"op"')
        scene.hear("leave", f'"f":"try_complete","id":"op"{said}')
        if said or not out:
            break
        scene.hear("answer", '"n":2,"out":0')
    if out:
        scene.hear("answer", '"n":3,"out":1')
        return
    with pytest.raises(Misbehaved, match="no `leave` of try_complete so far had its result"):
        scene.hear("answer", '"n":2,"out":1')


def test_who_answers_has_left_what_it_entered() -> None:
    """Or all that comes on this thread would be taken for a part of it; until then it is known where it is."""
    scene = Scene(Start("purgatory", "real", gates=("try_complete",)), *PURGATORY, virtual=False)
    scene.conversation.ask(Check("k"))
    assert scene.conversation.where() == ""
    scene.hear("enter", '"f":"try_complete","id":"op","during":2')
    assert scene.conversation.where() == ", inside try_complete of 'op', a gate, without a `held`"
    with pytest.raises(
        Misbehaved, match=r"call 2 \(check\) is answered before try_complete of 'op', entered in it"
    ):
        scene.hear("answer", '"n":2,"out":0')


def test_a_held_thread_makes_calls_where_it_stands() -> None:
    """What it is asked for is recorded on its thread, inside the callback; what others do is on theirs."""
    scene = Scene(Start("purgatory", "virtual", gates=("try_complete",)))
    scene.conversation.ask(Register("op", ("k",), 50))
    scene.hear("enter", '"f":"try_complete","id":"op"')
    scene.hear("held", '"hold":7,"f":"try_complete","id":"op"')
    assert (list(scene.conversation.holds), scene.conversation.loose()) == ([7], frozenset())
    assert scene.conversation.stuck() == []
    scene.conversation.ask(Check("k"), hold=7)
    assert scene.conversation.under_way() == "call 1 (register) and call 2 (check, from within try_complete)"
    assert scene.conversation.loose() == {"caller-0"}
    # Nobody is held now: it must answer, or it is the subject that hangs.
    assert scene.conversation.stuck() == ["check", "register"]
    scene.hear("answer", '"n":2,"out":0')
    scene.conversation.ask(Ready("op"), lane=1)
    scene.hear("answer", '"n":3')
    scene.conversation.ask(Go((7,)))
    scene.hear("leave", '"f":"try_complete","id":"op","out":0,"during":1')
    scene.hear("answer", '"n":4')
    scene.hear("answer", '"n":1,"out":0')
    events = scene.recorder.drain()
    assert [(event.th, in_short(event)) for event in events] == [
        ("caller-0", "try_complete_else_watch.call(op)"),
        ("caller-0", "try_complete.call(op)"),
        ("caller-0", "check_and_complete.call(k)"),
        ("caller-0", "check_and_complete.ret()=0"),
        ("caller-1", "ready.at(op)"),
        ("caller-0", "try_complete.ret(op)=0"),
        ("caller-0", "try_complete_else_watch.ret(op)=0"),
    ]


def test_who_came_to_a_gate_as_the_run_was_left_stands_nowhere() -> None:
    """A thread of the subject's own, when nobody looked any more: to the next run, which has no gates, it is unknown,
    and nothing waits for it."""
    scene = Scene(Start("purgatory", "real", gates=("timer_fire",)), *PURGATORY, virtual=False)
    start = scene.conversation.calls
    scene.conversation.ask(Start("purgatory", "real"))
    for hold, thread in ((7, "reaper"), (8, "executor")):
        scene.hear("enter", f'"f":"timer_fire","id":"op","th":"{thread}"')
        scene.hear("held", f'"hold":{hold},"f":"timer_fire","id":"op","th":"{thread}"')
    scene.hear("enter", '"f":"try_complete","id":"op","th":"other"')
    assert len(scene.conversation.standing()) == 2
    scene.hear("answer", f'"n":{start}')
    assert (scene.conversation.standing(), scene.conversation.loose()) == ([], frozenset())
    with pytest.raises(Misbehaved, match="no gate was requested"):
        scene.hear("held", '"hold":9,"f":"timer_fire","id":"op","th":"reaper"')


def test_a_call_stops_at_a_step_once_and_only_if_it_was_asked_to() -> None:
    """The step is nobody's function: the call has it on its thread, and goes on after it."""
    scene = Scene(Start("purgatory", "virtual", gates=("step",)), *PURGATORY)
    first = scene.conversation.calls
    assert b'"step":4' in scene.conversation.ask(Check("k"), steps=(4,))
    scene.conversation.ask(Check("k"), lane=1)
    with pytest.raises(Misbehaved, match="its call did not request"):
        scene.hear("held", f'"hold":7,"f":"step","during":{first + 1}')
    scene.hear("held", f'"hold":8,"f":"step","during":{first}')
    assert scene.conversation.loose() == {"caller-1"}
    scene.conversation.ask(Go((8,)))
    with pytest.raises(Misbehaved, match="its call did not request"):
        scene.hear("held", f'"hold":9,"f":"step","during":{first}')


@pytest.mark.parametrize(
    ("m", "fields", "kind", "why"),
    [
        (
            "answer",
            '"n":2,"out":0',
            "rubbish",
            "call 2 continued from hold 7 at 'try_complete', without a release",
        ),
        ("leave", '"f":"try_complete","id":"op","out":0', "rubbish", "caller-0 continued from hold 7"),
        (
            "held",
            '"hold":7,"f":"try_complete","id":"op","th":"w"',
            "wrong-id",
            "it uses the hold number 7 a second time",
        ),
        ("held", '"hold":8,"f":"try_complete","id":"op"', "rubbish", "caller-0 continued from hold 7"),
        ("held", '"hold":8,"f":"on_complete","id":"op","th":"w"', "rubbish", "where no gate was requested"),
        ("held", '"hold":8,"f":"try_complete","id":"no","th":"w"', "wrong-id", "of 'no', which was never"),
    ],
)
def test_who_is_held_does_nothing_by_itself(m: str, fields: str, kind: FailureKind, why: str) -> None:
    """Nor does anybody stop where, or as, nobody asked."""
    scene = Scene(Start("purgatory", "virtual", gates=("try_complete",)), *PURGATORY)
    scene.conversation.ask(Check("k"))
    scene.hear("enter", '"f":"try_complete","id":"op"')
    scene.hear("held", '"hold":7,"f":"try_complete","id":"op"')
    with pytest.raises(Misbehaved) as refused:
        scene.hear(m, fields)
    assert refused.value.kind == kind
    assert why in refused.value.why


def test_ready_and_what_is_given_back_are_points() -> None:
    """`ready` is true from its answer on at the latest, and not before it was asked for."""
    scene = Scene(*PURGATORY)
    scene.recorded()
    scene.conversation.ask(Ready("op"))
    scene.now = 20
    scene.hear("answer", '"n":1')
    (ready,) = scene.recorder.drain()
    assert (ready.f, ready.ph, ready.t_call, ready.t) == ("ready", "at", 10, 20)
    scene.answered(CancelKey("k"), '"ids":["op"]')
    assert scene.recorded() == ["cancel_for_key.call(k)", "cancelled.at(op)", "cancel_for_key.ret()=1"]
    assert scene.conversation.settled.pending == set()


@pytest.mark.parametrize(("capability", "keys"), [("cancel-key", ("k",)), ("cancel-key-all", ("k", "l"))])
def test_what_a_key_gives_back_may_be_taken_from_all(capability: str, keys: tuple[str, ...]) -> None:
    """Where it is, no other key owes it anything; elsewhere, as in Kafka, it still waits under the others."""
    scene = Scene(*PURGATORY)
    scene.conversation.description = Description(0, "", "one", capabilities=(capability,), reports=REPORTABLE)
    scene.answered(CancelKey("k"), '"ids":["op"]')
    (cancelled,) = [event for event in scene.recorder.drain() if event.f == "cancelled"]
    assert cancelled.keys == keys


@pytest.mark.parametrize(("returned", "counts"), [(False, False), (True, True)])
def test_an_error_of_a_cancel_beside_its_own_add_is_not_held_against_a_subject(
    returned: bool, counts: bool
) -> None:
    """Nobody else knows the task yet, and it was we who asked; once its add has returned, an error is one."""
    scene = Scene()
    scene.conversation.ask(Add("t", 5))
    if returned:
        scene.hear("answer", '"n":0')
    scene.conversation.ask(Cancel("t"), 1)
    scene.hear("answer", '"n":1,"err":"NullPointerException"')
    assert bool(scene.conversation.errors()) is counts


def test_an_error_is_an_event_where_the_call_is_one() -> None:
    """A wheel that refuses an add keeps its promises; one that cannot start has no run."""
    scene = Scene()
    scene.answered(Add("t", 5), '"err":"TooFar"')
    (_, ret) = scene.recorder.drain()
    assert (ret.f, ret.err, ret.deadline_t) == ("timer_add", "TooFar", None)
    assert scene.conversation.settled.pending == set()
    for call in (Start("timer", "virtual", 0), Advance(5), Quiesce()):
        with pytest.raises(Misbehaved) as caught:
            Scene().answered(call, '"err":"No"')
        assert caught.value.kind == "refused"


@pytest.mark.parametrize(
    ("call", "m", "fields", "kind", "why"),
    [
        (Describe(), "answer", '"n":1', "rubbish", "not a description"),
        (Describe(), "description", '"n":1,"protocol":"x","name":"x","capabilities":[],"reports":[]',
         "wrong-version", "it speaks 'x'"),
        (Gauge(), "description", '"n":1,"protocol":"x","name":"x","capabilities":[],"reports":[]',
         "rubbish", "a description in answer to gauge"),
        (Gauge(), "answer", '"n":0', "answered-twice", "call 0 was answered before"),
        (Gauge(), "answer", '"n":2', "wrong-id", "call 2, which the driver never made"),
        (Gauge(), "answer", '"n":1,"out":1', "rubbish", "gauge has no result"),
        (Check("k"), "answer", '"n":1', "rubbish", "the number of operations"),
        (Check("k"), "answer", '"n":1,"out":1,"watched":2', "rubbish", "check returns no sizes"),
        (Check("k"), "answer", '"n":1,"out":1,"ids":["op"]', "rubbish", "check returns no ids"),
        (Register("q", ("k",), 5), "answer", '"n":1,"out":2', "rubbish", "out = 0 or 1, not 2"),
        (Cancel("op"), "answer", '"n":1,"out":2', "rubbish", "out = 0 or 1, or without"),
        (CancelKey("k"), "answer", '"n":1,"ids":["z"]', "wrong-id", "it returned 'z'"),
        (Check("k"), "fired", '"id":"z"', "wrong-id", "'z', which was never added"),
        (Check("k"), "fired", '"id":"op","during":0', "wrong-id", "during call 0, not under way"),
        (Check("k"), "leave", '"f":"try_complete","id":"op","out":0', "rubbish", "is in nothing"),
        (None, "fired", '"id":"op"', "rubbish", "while no call was under way, in virtual time"),
        (None, "fired", '"id":"op","th":"executor"', "rubbish", "while no call was under way, in virtual time"),
    ],
)  # fmt: skip
def test_what_does_not_belong_is_refused(
    call: Call | None, m: str, fields: str, kind: FailureKind, why: str
) -> None:
    scene = Scene(*PURGATORY)
    if call is not None:
        scene.conversation.ask(call)
    with pytest.raises(Misbehaved) as caught:
        scene.hear(m, fields)
    assert caught.value.kind == kind
    assert why in caught.value.why


def test_threads_and_depth_have_limits() -> None:
    """Names that never come again, and functions that are never left, are floods."""
    scene = Scene(*PURGATORY, virtual=False)
    for number in range(63):
        scene.hear("fired", f'"id":"op","th":"{number}"')
    with pytest.raises(Misbehaved, match="more than 64 threads"):
        scene.hear("fired", '"id":"op","th":"63"')
    for _ in range(64):
        scene.hear("enter", '"f":"try_complete","id":"op","th":"0"')
    with pytest.raises(Misbehaved, match="more than 64 functions entered and not left"):
        scene.hear("enter", '"f":"try_complete","id":"op","th":"0"')


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


def test_good_descriptions_are_taken() -> None:
    """The twins of those below; a plain timer's profile follows from its cancel."""
    for description in (GOOD, GOOD_PURGATORY):
        check_description(description)
    assert profile_of(GOOD) == "timer"
    barrier = replace(GOOD, capabilities=(*GOOD.capabilities, "cancel-barrier"))
    check_description(barrier)
    assert profile_of(barrier) == "timer-cancel-barrier"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (replace(GOOD, capabilities=("virtual-time",)), "neither the capability timer nor purgatory"),
        (replace(GOOD, capabilities=("timer",)), "neither the capability virtual-time nor real-time"),
        (replace(GOOD, reports=()), "a timer must report timer_fire"),
        (replace(GOOD, profile="fast"), "no profile 'fast'; there are: locked"),
        (replace(GOOD, profile="asyncio"), "with the profile asyncio, declare the capability cancel-barrier"),
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


def test_what_was_due_and_is_not_over_is_named() -> None:
    """What a subject that hangs may have lost: not what fired, nor what is cancelled, nor what is due later."""
    scene = Scene(
        Start("timer", "virtual", 10), *(Add(name, 50) for name in ("b", "a", "fired")), Add("later", 99)
    )
    scene.now = 61
    number = scene.conversation.calls
    scene.conversation.ask(Advance(61))
    scene.hear("fired", f'"id":"fired","during":{number}')
    assert scene.conversation.overdue() == ["a", "b"]


def test_what_is_due_counts_from_when_it_was_begun() -> None:
    """As in T2: an add that takes long to answer is not late by that. Nor is a task that a call without an answer may
    take back, or that is in a function of the subject's."""
    scene = Scene(Start("timer", "real"), virtual=False)
    number = scene.conversation.calls
    scene.conversation.ask(Add("slow", 50))
    scene.now = 1_000
    scene.hear("answer", f'"n":{number}')
    assert scene.conversation.overdue(100) == []
    scene.now = 1_149
    assert scene.conversation.overdue(100) == []
    scene.now = 1_150
    assert scene.conversation.overdue(100) == ["slow"]
    scene.hear("enter", '"f":"timer_cancel","id":"slow"')
    assert scene.conversation.overdue(100) == []
    scene.hear("leave", '"f":"timer_cancel","id":"slow"')
    assert scene.conversation.overdue(100) == ["slow"]
    scene.conversation.ask(Cancel("slow"))
    assert scene.conversation.overdue(100) == []


@pytest.mark.parametrize(("key", "found"), [("k", []), ("other", ["op"])])
def test_what_a_key_may_give_back_is_not_due(key: str, found: list[str]) -> None:
    """Nor an operation before its time-out, counted from when it was put into the timer."""
    scene = Scene(*PURGATORY, virtual=False)
    scene.now = 40
    scene.hear("armed", '"id":"op","th":"late"')
    scene.now = 89
    assert scene.conversation.overdue() == []
    scene.now = 90
    assert scene.conversation.overdue() == ["op"]
    scene.conversation.ask(CancelKey(key))
    assert scene.conversation.overdue() == found


def trial(*within: str, id: str = "op") -> list[tuple[str, str]]:
    """What an evaluation tells, with this from within it."""
    place = f'"f":"try_complete","id":"{id}"'
    return [
        ("enter", place),
        *((one, f'"id":"{id}"') for one in within),
        ("leave", f'{place},"out":{len(within)}'),
    ]


NEVER_FINDS = "are two keys with one name equal?"
OUTSIDE = "outside every reported force_complete"
MUTE = "the description says that the subject reports timer_add, but the subject never reported it"
VAIN = "try_complete of 'op' began after the answer to its `ready`"
COMPLETED = ("completed", '"id":"op"')
LEFT = ("leave", f'{CLAIM},"out":1')


@pytest.mark.parametrize(
    ("before", "calls", "told", "out", "doubt"),
    [
        # It may have lost a `ready` that came before the registration. Who was not tried was not tried in vain.
        ([Ready("op")], PURGATORY, trial(), 0, VAIN),
        ([Ready("op")], PURGATORY, trial("completed"), 1, ""),
        ([Ready("op")], PURGATORY, [], 0, ""),
        # Keys that are compared by identity, for example.
        (PURGATORY, [Check("k")] * 3, [], 0, NEVER_FINDS),
        (PURGATORY, [Check("k")] * 3, trial(), 0, ""),
        # A time-out that is never told of looks like one that was never begun.
        ([], [Register(name, ("k",), 50) for name in "abc"], [], 0, MUTE),
        ([], [Register(name, ("k",), 50) for name in "abc"], [("armed", '"id":"a"')], 0, ""),
        # One that tells of the callback before it calls what runs it.
        (PURGATORY, [Check("k")], [COMPLETED, ("enter", CLAIM), LEFT], 1, OUTSIDE),
        (PURGATORY, [Check("k")], [("enter", CLAIM), COMPLETED, LEFT], 1, ""),
    ],
)
def test_what_looks_like_a_mistake_of_the_adapter_is_held_against_it(
    before: Sequence[Call], calls: Sequence[Call], told: list[tuple[str, str]], out: int, doubt: str
) -> None:
    scene = Scene(*before)
    for call in calls:
        scene.conversation.ask(call)
        for m, fields in told:
            scene.hear(m, fields)
        scene.hear("answer", f'"n":{scene.conversation.calls - 1},"out":{out}')
    doubts = scene.conversation.doubted()
    assert any(doubt in one for one in doubts) if doubt else not doubts


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
