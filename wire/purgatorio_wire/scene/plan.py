"""Runs the scenes of a plan against a broker.

Several scenes run at one time, each with its own connections, topics and groups. A scene with a late or undecided
response is repeated, so that a slow machine is not mistaken for a slow broker. An interrupted scene is repeated too. At
the end, also after an error, the topics and groups of the run are deleted.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from purgatorio_spec.failure import Failure, failure_of, surviving
from purgatorio_wire.client.connection import Address, Connection, Got, NoAnswer
from purgatorio_wire.client.control import Control
from purgatorio_wire.client.recorder import CONTROL, WireRecorder
from purgatorio_wire.history.bound import MS, Bounds, RowStatus
from purgatorio_wire.history.finding import Row
from purgatorio_wire.history.history import Scene, items, text
from purgatorio_wire.history.scenes import scene_of
from purgatorio_wire.judge import FAR_GAPS, LOST_GAPS, Wire, judge_scene, repeats, unmet
from purgatorio_wire.scene import fetch as scene_fetch
from purgatorio_wire.scene import topic as scene_other
from purgatorio_wire.scene.asker import codes
from purgatorio_wire.scene.broker import Broker, Made, SceneLost, SceneSkipped, Second
from purgatorio_wire.scene.catalogue import PATIENT, SCENES, WARM_UPS
from purgatorio_wire.scene.play import Play
from purgatorio_wire.scene.random_scene import KINDS, LEAST_SCENE, RandomScene, made_small, play_program
from purgatorio_wire.scene.spec import SceneSpec
from purgatorio_wire.trace.record import DRAWN, MAX_EVENTS, Declared

SCENES_AT_ONCE: Final = 4
GROUP_SCENES_AT_ONCE: Final = 8
GROUP_AREAS: Final = ("groups", "shares")
"""Scenes of groups and of share groups wait for seconds, and longer if the broker never answers. They must not delay
other scenes."""
REPETITIONS: Final = 3
MOST_REPETITIONS: Final = 8
CLEAN_UP_SECONDS: Final = 10.0
STOPPED_CLEAN_UP_SECONDS: Final = 0.8
"""After Ctrl-C the command has two seconds, also for the judgement. A member of a group may live longer."""
NOT_EMPTY_SECONDS: Final = 0.5
GONE: Final = frozenset({0, 3, 69})
"""Deleted or unknown: no error, UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND."""
WARM_UP_SECONDS: Final = 10.0
LEAST_WARM_UP_SECONDS: Final = 0.6
"""The warm-up measures the lateness of the machine, before the first scene needs it."""
TOGETHER_SECONDS: Final = 60.0
"""The largest time of the concurrent scenes on an idle machine."""
REPLICAS: Final = "replicas"
"""The area of the scenes that need a second broker."""
HELD_UP_MS: Final = 500
"""A client that a quota delays for this time cannot send its requests in time."""
MOST_PACE: Final = 3.0
PACE_SLACK_MS: Final = 250
"""Up to this slack, the normal waits of the plan are long enough."""
PROGRAM_SECONDS: Final = 20.0
SMALL_TRIES: Final = 60
SMALL_AT_A_TIME: Final = 8
MOST_SMALL: Final = 6
"""The first random failures, one for each clause, are minimized."""


def _fails(row: Row) -> bool:
    """Whether a row of a random scene counts: it is broken, or late like a forgotten request."""
    return row.status is RowStatus.BROKEN or (row.status is RowStatus.LATE and row.gaps >= LOST_GAPS)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run. `seconds`: the time limit of the run."""

    address: Address
    shown: str
    """The address as the user wrote it."""
    scenes: tuple[SceneSpec, ...]
    declared: Declared = field(default_factory=Declared)
    seconds: float = 120.0
    seed: int = 0
    second: Second | None = None
    pid: int | None = None
    drawn_seconds: float = 0.0
    """The time for random programs, in seconds."""
    program: RandomScene | None = None
    """A random program to run three times."""
    name: str | None = None
    """The name of the run. Default: a unique name."""
    made: Made = field(default_factory=Made)
    """After the run, what it could not delete."""


@dataclass(slots=True)
class PlanRun:
    """One run of a plan. `told` receives each progress line, `played` each scene that has ended, and `found` each
    violation at the end of its scene."""

    broker: Broker
    recorder: WireRecorder
    asked: RunOptions
    told: Callable[[str], None] = lambda line: None
    played: Callable[[], None] = lambda: None
    found: Callable[[str], None] = lambda line: None
    failures: list[Failure] = field(default_factory=list)
    """Internal errors of Purgatorio during the run. The trace is judged nevertheless."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The clauses that a scene could not test on this broker, with the reason."""
    _played: dict[str, int] = field(default_factory=dict)
    _over: set[str] = field(default_factory=set)
    """The scenes that ended once, or cannot run."""
    _broke: dict[SceneSpec, str] = field(default_factory=dict)
    """The reasons why other scenes did not end the first time."""
    _open: set[str] = field(default_factory=set)
    """The scenes that decided nothing about a clause that they test."""
    _decided: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of clause and cause that any scene decided."""
    _ends_t: float = 0.0
    _reserved: float = 0.0
    """The number of seconds that the remaining non-concurrent scenes need."""
    _busy: set[tuple[str, str]] = field(default_factory=set)
    """The pairs of clause and cause whose late rows do not count, because the broker is busy (`Row.busy`)."""
    _convicted: set[str] = field(default_factory=set)
    """The clauses that are VIOLATED so far."""

    @property
    def lost(self) -> dict[str, str]:
        """The clauses of scenes that never ended, with the reason."""
        return {
            clause: f"scene {spec.name} did not end: {why}"
            for spec, why in self._broke.items() if spec.name not in self._over for clause in spec.clauses
        }  # fmt: skip

    async def play(self) -> None:
        """Runs the scenes for at most the time of the run, and cleans up in every case."""
        areas, seconds = {one.area for one in self.asked.scenes}, self.asked.seconds
        scenes = self._in_time(self.asked.scenes, seconds)
        control = Control(self.broker.address, self.recorder)
        controlling = asyncio.create_task(control.run())
        clean_up_s = CLEAN_UP_SECONDS
        try:
            async with asyncio.timeout(seconds):
                others = [SCENES[name].play for area, name in WARM_UPS if area in areas]
                warm_ups = [scene_fetch.warm_up, *others]
                await asyncio.gather(*(self._warm_up(one, at) for at, one in enumerate(warm_ups)))
                groups, rest = asyncio.Semaphore(GROUP_SCENES_AT_ONCE), asyncio.Semaphore(SCENES_AT_ONCE)

                async def play_all(some: Sequence[SceneSpec]) -> None:
                    await asyncio.gather(
                        *(
                            self._until_judged(x, groups if x.area in GROUP_AREAS else rest, control)
                            for x in some if not x.alone
                        )
                    )  # fmt: skip
                    for one in some:
                        if one.alone:
                            await self._until_judged(one, rest, control)

                await play_all(scenes)
                if not self._convicted:  # on a busy machine a scene can lose its occasions
                    open_ones = (one for one in scenes if one.name in self._open)
                    await play_all([one for one in open_ones if self._has_time(one.takes)])
                if self.asked.program is not None:
                    await self.play_least(self.asked.program)
                if self.asked.drawn_seconds > 0:
                    await self._draw(self.asked.drawn_seconds)
        except TimeoutError:
            self._broke = dict.fromkeys(scenes, f"the time limit of {seconds:g} s was reached") | self._broke
        except asyncio.CancelledError:
            clean_up_s = STOPPED_CLEAN_UP_SECONDS
            raise
        except OSError:
            raise
        except Exception as error:  # the recording is judged up to this place
            self._failed("the run", error)
            self._broke = (
                dict.fromkeys(scenes, f"an internal error of Purgatorio, {type(error).__name__}: {error}")
                | self._broke
            )
        finally:
            controlling.cancel()
            await asyncio.gather(controlling, return_exceptions=True)
            await clean_up(self.broker, self.recorder, self.told, clean_up_s)

    def _in_time(self, scenes: Sequence[SceneSpec], seconds: float) -> list[SceneSpec]:
        """Returns the scenes for which there is time. Reports the other scenes before the first one runs."""
        self._ends_t = asyncio.get_running_loop().time() + seconds
        free, kept = seconds - TOGETHER_SECONDS * any(not one.alone for one in scenes), []
        for one in scenes:
            if one.area == REPLICAS and self.broker.second is None:
                self.skipped |= dict.fromkeys(one.clauses, scene_other.TAKES_TWO)
            elif one.alone and one.takes > free:
                why = f"it takes about {one.takes:g} s, and {seconds:g} s are too few: increase --seconds"
                self._broke[one] = why
                self.found(f"left out: scene {one.name} ({', '.join(one.clauses)}): {why}")
            else:
                free -= one.takes if one.alone else 0
                self._reserved += one.takes if one.alone else 0
                kept.append(one)
                continue
            self.played()
        return kept

    def _has_time(self, needed_s: float) -> bool:
        """Whether there is time to repeat a scene, and to run the remaining scenes once."""
        return asyncio.get_running_loop().time() + needed_s + self._reserved <= self._ends_t

    def _failed(self, what: str, error: Exception) -> None:
        self.failures.append(failure_of(what, error))

    async def _warm_up(self, scene: Callable[[Play], Awaitable[None]], at: int) -> None:
        """Runs a scene without a recording, for a limited time. Problems show in the real scenes."""
        play = Play(self.broker, WireRecorder(now=self.recorder.now), f"warm-up#{at}", random.Random(0))
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(WARM_UP_SECONDS):
                await scene(play)
        except (NoAnswer, SceneSkipped, SceneLost, TimeoutError) as why:
            self.told(f"warming up ended early: {str(why) or f'more than {WARM_UP_SECONDS:g} s'}")
        finally:
            play.close_all()
        await asyncio.sleep(max(0.0, started + LEAST_WARM_UP_SECONDS - asyncio.get_running_loop().time()))

    def _set_pace(self, control: Control) -> None:
        slack_ms = self.broker.declared.late_ms + 2 * control.recent_ns() / MS
        self.broker.pace = min(max(1.0, slack_ms / PACE_SLACK_MS), MOST_PACE)

    async def _until_judged(self, spec: SceneSpec, room: asyncio.Semaphore, control: Control) -> None:
        async with room:
            late: dict[tuple[str, str], list[Row]] = defaultdict(list)
            decided: Counter[tuple[str, str]] = Counter()
            repetition, left = self._played.get(spec.name, 0), REPETITIONS
            while left:
                repetition, left = repetition + 1, left - 1
                self._played[spec.name] = repetition
                name = f"{spec.name}#{repetition}"
                self._set_pace(control)
                started = asyncio.get_running_loop().time()
                if repetition == 1 and spec.alone:
                    self._reserved = max(self._reserved - spec.takes, 0.0)
                await self._once(spec, name)
                await control.caught_up()
                again = self._again(name, late, decided)
                if self._learnt(name):
                    left = min(left + 1, MOST_REPETITIONS - repetition)
                elif not again or not self._has_time(asyncio.get_running_loop().time() - started):
                    break
            self.played()

    def _learnt(self, name: str) -> bool:
        """Whether the scene ended because a version that the broker lists closes the connection. This version is not
        used again."""
        scene = self._scene(self.recorder, name)
        broken = {
            (one.api, one.version)
            for one in scene.exchanges
            if one.owed and one.answer is None and one.closed is not None and one.closed.by == "peer"
            and (one.api, one.version) not in self.recorder.answered and "versions" not in name
        }  # fmt: skip
        self.broker.broken |= broken
        return bool(broken)

    async def _once(self, spec: SceneSpec, name: str) -> None:
        play = Play(self.broker, self.recorder, name, random.Random(f"{self.asked.seed} {name}"))
        self.told(f"playing {name}")
        try:
            async with asyncio.timeout(spec.seconds * play.pace):
                await spec.play(play)
            self._over.add(spec.name)
        except SceneSkipped as why:
            play.cannot(str(why), *spec.clauses)
            self._over.add(spec.name)
        except (NoAnswer, SceneLost, TimeoutError) as why:
            said = str(why) or f"it took more than {spec.seconds * play.pace:g} s"
            self.told(f"{name} was interrupted: {said}")
            self._broke.setdefault(spec, said)
        except Exception as error:  # the other scenes are played
            self._failed(f"playing {name}", error)
            self._broke.setdefault(spec, f"an internal error of Purgatorio, {type(error).__name__}: {error}")
        finally:
            play.close_all()
        if (held_up_ms := self._scene(self.recorder, name).held_up_ms) >= HELD_UP_MS:
            play.cannot(f"a quota of the broker delays its clients, by {held_up_ms} ms", *spec.clauses)
            self._over.add(spec.name)
        self.skipped = play.unasked | self.skipped
        for ask in spec.asks:
            if ask.partition(" ")[0] not in play.unasked:
                play.stimulus("asks", text=ask)

    def _again(
        self, name: str, late: dict[tuple[str, str], list[Row]], decided: Counter[tuple[str, str]]
    ) -> bool:
        """Whether the scene is repeated: a late row is alone so far, or no row decided what the scene tests. It is
        also repeated if a request seems forgotten, or if it leaves clauses undecided that no scene has decided."""
        scene = self._scene(self.recorder, name)
        doubts: Counter[tuple[str, str]] = Counter()
        for row in self._rows(self.recorder, name):
            if row.status is RowStatus.BROKEN:
                self._convict(row)
            if row.status is RowStatus.LATE:
                late[row.clause, row.cause].append(row)
            if row.busy:
                self._busy.add((row.clause, row.cause))
            if row.status is RowStatus.UNDECIDED:
                doubts[row.clause, row.cause] += row.gaps >= LOST_GAPS
            elif row.status is not RowStatus.FAILED:
                decided[row.clause, row.cause] += 1
        left = bool(unmet(scene.asked, decided))
        self._open.discard(scene.base)
        if left or scene.base not in self._over:
            self._open.add(scene.base)
        for key, held in late.items():
            far = [row for row in held if row.gaps >= FAR_GAPS]
            # Decisions of other scenes do not outnumber these.
            if key not in self._busy and repeats(far, 0):
                self._convict(far[-1])
        alone = any(not repeats(held, decided[key]) for key, held in late.items())
        self._decided.update(decided)
        clauses = {clause for clause, _ in scene.asked}
        doubtful = (
            doubt or key not in (decided if key[0] in clauses else self._decided)
            for key, doubt in doubts.items()
        )  # fmt: skip
        return left or alone or any(doubtful)

    def _convict(self, row: Row) -> None:
        """Reports a violation at once, because the whole plan may take minutes."""
        if row.clause not in self._convicted:
            self._convicted.add(row.clause)
            self.found(f"{row.clause} VIOLATED so far: {row.subject}: {row.seen}, allowed {row.allowed}")

    def _rows(self, recorder: WireRecorder, name: str) -> list[Row]:
        """The rows of one scene of a recording, by the bounds of the run."""
        bounds = Bounds.of(self.broker.declared, self.recorder.by_scene[CONTROL])
        wire = Wire(bounds, self.broker.offered, frozenset(self.recorder.answered))
        with surviving(f"judging scene {name}", self.failures):
            return judge_scene(wire, self._scene(recorder, name))
        return []

    @staticmethod
    def _scene(recorder: WireRecorder, name: str) -> Scene:
        return scene_of(name, recorder.by_scene[name], recorder.now())

    async def _draw(self, seconds: float) -> None:
        """Run random programs, several at a time; the first that breaks each clause is minimized and repeated."""
        loop = asyncio.get_running_loop()
        ends, numbers = loop.time() + seconds, itertools.count()
        played: dict[str, RandomScene] = {}

        async def worker(draw: Callable[[random.Random], RandomScene]) -> None:
            while loop.time() < ends and self.recorder.events < MAX_EVENTS // 2:
                name = f"{DRAWN}#{next(numbers)}"
                played[name] = draw(random.Random(f"{self.asked.seed} {name}"))
                if not await self._program(self.recorder, name, played[name]):
                    return

        self.told(f"running random programs for {seconds:g} s")
        workers = [worker(draw) for draw, count in KINDS for _ in range(count)]
        await asyncio.gather(self._once(PATIENT, f"{PATIENT.name}#1"), *workers)
        seen: set[str] = set()
        for name, program in played.items():
            for row in self._rows(self.recorder, name):
                if _fails(row) and row.clause not in seen and len(seen) < MOST_SMALL:
                    seen.add(row.clause)
                    with surviving(f"minimizing the random program that breaks {row.clause}", self.failures):
                        await self._make_small(program, row)

    async def _program(self, recorder: WireRecorder, name: str, program: RandomScene) -> bool:
        play = Play(self.broker, recorder, name, random.Random(name))
        try:
            async with asyncio.timeout(PROGRAM_SECONDS):
                await play_program(play, program)
        except (NoAnswer, SceneSkipped, SceneLost, TimeoutError) as why:
            self.told(f"{name} was interrupted: {why}")
            return False
        finally:
            play.close_all()
        return True

    async def _make_small(self, program: RandomScene, row: Row) -> None:
        """Minimizes a program, without a recording. Then runs the minimized program three times with a recording."""
        least_name, tries = f"{LEAST_SCENE}-{row.clause}", itertools.count()

        async def fails(smaller: RandomScene) -> bool:
            # The topics get other names, because topics of another clause with the same name may still exist.
            silent, name = WireRecorder(now=self.recorder.now), f"{least_name}-{next(tries)}#1"
            await self._program(silent, name, smaller)
            return any(
                _fails(one) and (one.clause, one.cause) == (row.clause, row.cause)
                for one in self._rows(silent, name)
            )

        least = await made_small(program, fails, SMALL_TRIES, SMALL_AT_A_TIME)
        self.told(f"{row.clause} {row.cause} by {least.steps} of {program.steps} random requests: {least}")
        await self.play_least(least, least_name)

    async def play_least(self, program: RandomScene, name: str = LEAST_SCENE) -> None:
        for repetition in range(1, REPETITIONS + 1):
            await self._program(self.recorder, f"{name}#{repetition}", program)


async def clean_up(
    broker: Broker, recorder: WireRecorder, told: Callable[[str], None], seconds: float = CLEAN_UP_SECONDS
) -> None:
    """Deletes the topics and groups of the run, in a limited time. Reports the names that remain in `broker.made`."""
    made, left = broker.made, sorted(broker.made.topics)
    play = Play(broker, recorder, "", random.Random(0))
    try:
        async with asyncio.timeout(seconds):
            conn = await play.open("cleaner")
            if left and play.offers("delete_topics"):
                asked = {"topic_names": left, "timeout_ms": 5000}
                got = await play.ask(await play.controller(), "delete_topics", asked)
                left = _refused(got, "responses", "name", left)
            await _delete_groups(play, conn)
            for clients, kinds in [*made.quotas] if play.offers("alter_client_quotas") else ():
                await play.quota(clients, None, kinds)
    except (NoAnswer, SceneLost, TimeoutError):
        pass
    finally:
        play.close_all()
    made.topics.intersection_update(left)
    left += sorted(made.groups)
    if left:
        more = " ..." if len(left) > 10 else ""
        told(f"not deleted, because the broker refused or did not answer: {', '.join(left[:10])}{more}")


async def _delete_groups(play: Play, conn: Connection) -> None:
    """Deletes groups. The members leave first, because only an empty group can be deleted."""
    made = play.broker.made.groups
    for (api, group), beating in play.broker.made.beating.items():
        for one in beating if play.offers(api) else ():
            left = {"group_id": group, "member_id": one, "member_epoch": -1}
            await play.ask(conn, api, {**left, "task_offsets": None, "task_end_offsets": None})
    if play.offers("leave_group"):
        several = play.offers("leave_group", least=3)
        for group, members in [*made.items()]:  # the members of a scene may still be in a rebalance
            for part in [sorted(members)] if several else [[one] for one in members]:
                if part:
                    await play.leave(conn, group, *part)
    if not play.offers("delete_groups"):
        made.clear()  # an empty group needs no deletion
        return
    names = sorted(made)
    while names:
        got = await play.ask(conn, "delete_groups", {"groups_names": names})
        names = _refused(got, "results", "group_id", names)
        for gone in set(made) - set(names):
            del made[gone]
        # A join that was interrupted may have created a member whose id is unknown. Its session expires.
        await asyncio.sleep(NOT_EMPTY_SECONDS if names else 0)


def _refused(got: Got, answers: str, name: str, names: list[str]) -> list[str]:
    """The topics or groups that still exist, according to the answer."""
    gone = {text(said, name) for said in items(got.body, answers) if codes(said) in GONE}
    return [one for one in names if one not in gone]
