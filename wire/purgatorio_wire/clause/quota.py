"""The clause Q1: a client above its quota gets a throttle time. The broker delays the client for at most this time
(KIP-219), and creates no partitions above the quota (KIP-599). DescribeClientQuotas returns the quotas (KIP-546)."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from purgatorio_wire.history.bound import EARLY_NS, FORGOTTEN_NS, MS, Bounds
from purgatorio_wire.history.finding import Rows, after, broken, checked, in_time, named
from purgatorio_wire.history.history import Exchange, Lane, Scene, integer, items, text
from purgatorio_wire.history.log import produced, summed
from purgatorio_wire.trace.record import Body

Clients = frozenset[tuple[str, str]]
"""The clients of a quota: types of names, and the names."""
Values = dict[str, object]
WINDOW_S: Final = 11
"""Kafka counts over this number of samples of a second (`quota.window.num`)."""
SAMPLE_MS: Final = 1000
"""By which a throttle time may grow while nothing is sent: the samples end one by one."""
TIMES: Final = 2
"""A client that has sent or received this many times its quota is certainly above it."""
EXACT, DEFAULT, ANY = range(3)
"""The match types of a component of a filter. No scene sets a quota of the default name."""
EXCEEDED: Final = 89
"""THROTTLING_QUOTA_EXCEEDED."""
STRICT: Final = {"create_topics": (6, "topics"), "create_partitions": (3, "results")}
"""The first versions that the broker refuses above the quota, and the results in their responses."""


def quotas(bounds: Bounds, scene: Scene) -> Rows:
    """The occasions are appends of a client above its quota, and its requests after a throttle time."""
    for x in scene.stimuli:
        lane = scene.lanes.get(text(x.body, "conn"))
        if text(x.body, "what") == "quota" and lane is not None:
            yield from _told(lane, x.t, integer(x.body, "bytes_per_s"), "bytes")
            if partitions := integer(x.body, "partitions_per_s"):
                yield from _told(lane, x.t, partitions, "partitions")
            yield from _refused(lane, x.t)
            yield from _uncounted(lane, x.t)
            for one, behind in zip(lane.requests, lane.requests[1:], strict=False):
                yield from _held_up(bounds, one, behind)


def quotas_described(scene: Scene) -> Rows:
    """The occasions are AlterClientQuotas, and DescribeClientQuotas for names that only this scene uses. (Other clients
    may have quotas with names of the same type.) A broker may learn of a quota late, but it does not return to a former
    one."""
    for one in scene.of("alter_client_quotas"):
        changed = {_names(x) for x in items(one.body, "entries")}
        told = {_names(x) for x in items(one.got, "entries")}  # a broker may refuse quotas of some types
        allowed, seen = (f"{sorted(map(sorted, x))}" for x in (changed, told))
        if one.got is not None:
            yield checked("Q1", "altered", one, told == changed, f"an answer for {allowed}", seen)
    since: dict[Clients, int] = {}
    for one in scene.of("describe_client_quotas"):
        if one.got is None or one.error:
            continue
        asked = {text(x, "entity_type"): x for x in items(one.body, "components")}
        own = all(integer(x, "match_type") == EXACT for x in asked.values())
        every = [_names(x) for x in items(one.got, "entries")]
        yield checked("Q1", "described", one, len(every) == len({*every}), "each client once", f"{every}")
        shown = {_names(x): _values(items(x, "values")) for x in items(one.got, "entries")}
        states = _states(scene, one.ended_t)
        for names in {*(shown if own else ()), *states}:
            selected = all(any(_matches(x, *name) for name in names) for x in asked.values())
            selected = selected and (not one.body.get("strict") or len(names) == len(asked))
            may = states.get(names, [{}])[since.get(names, 0) :] if selected else [{}]
            held = shown.get(names, {})
            allowed = f"{' or '.join(map(str, may))} of {sorted(names)} for the filter {[*asked.values()]}"
            yield checked("Q1", "described", one, held in may, allowed, f"{held}")
            if selected and held in may:
                since[names] = since.get(names, 0) + may.index(held)


def _matches(component: Body, kind: str, name: str) -> bool:
    """Whether a component of a filter selects a name of this type: the exact name, the default, or any name."""
    how = integer(component, "match_type")
    right = how == ANY or (how == EXACT and text(component, "match") == name)
    return kind == text(component, "entity_type") and right


def _states(scene: Scene, until: int) -> dict[Clients, list[Values]]:
    """The quotas of each name after each AlterClientQuotas that was sent by then, and that was not refused."""
    found: dict[Clients, list[Values]] = defaultdict(lambda: [{}])
    for one in (x for x in scene.of("alter_client_quotas") if x.t <= until):
        refused = {_names(x) for x in items(one.got, "entries") if integer(x, "error_code")}
        for x in items(one.body, "entries") if not one.body.get("validate_only") else ():
            if (names := _names(x)) not in refused:
                removed = {text(op, "key") for op in items(x, "ops") if op.get("remove")}
                new = found[names][-1] | _values(items(x, "ops"))
                found[names].append({key: value for key, value in new.items() if key not in removed})
    return found


def _names(body: Body) -> Clients:
    return frozenset((text(x, "entity_type"), text(x, "entity_name")) for x in items(body, "entity"))


def _values(quotas: Iterable[Body]) -> Values:
    return {text(x, "key"): x.get("value") for x in quotas}


def _told(lane: Lane, since_t: int, per_s: int, what: str) -> Rows:
    """`what`: what the quota counts."""
    apis, counted = _COUNTED[what]
    asked = [one for one in lane.requests if one.api in apis and one.t >= since_t]
    told = any(one.throttled_ms for one in asked)
    free = [*takewhile(lambda one: not one.throttled_ms, asked)]
    size = sum(map(counted, free))
    if asked and not per_s:
        allowed, seen = "no throttle time: the quota of the client was removed", "a throttle time"
        yield checked("Q1", "throttled-without-quota", asked[-1], not told, allowed, seen)
        return
    most = TIMES * per_s * (WINDOW_S + (free[-1].t - since_t) / 1e9) if free else 0
    if asked and (told or size > most):
        allowed = f"a throttle time: the quota is {per_s} {what} a second"
        seen = f"no throttle time for {size} {what}"
        yield checked("Q1", "not-throttled", (free or asked)[-1], size <= most, allowed, seen)


def _refused(lane: Lane, since_t: int) -> Rows:
    for one in lane.requests:
        least, results = STRICT.get(one.api, (0, ""))
        if results and one.version >= least and one.t >= since_t and one.throttled_ms:
            errors = {integer(said, "error_code") for said in items(one.got, results)}
            if errors <= {0, EXCEEDED}:
                allowed = f"{named(EXCEEDED)}, because the response has a throttle time"
                yield checked("Q1", "not-refused", one, EXCEEDED in errors, allowed, named(0))


def _uncounted(lane: Lane, since_t: int) -> Rows:
    """A Fetch that returns nothing because of the quota does not count, so the throttle time does not grow."""
    told_ms = 0
    for one in (x for x in lane.requests if x.api == "fetch" and x.t >= since_t):
        now_ms = 0 if _bytes(one) else one.throttled_ms
        if now_ms and told_ms:
            allowed = f"at most {told_ms} ms and a sample of {SAMPLE_MS} ms, because nothing was sent since"
            right = now_ms <= told_ms + SAMPLE_MS
            yield checked("Q1", "throttled-longer", one, right, allowed, f"a throttle time of {now_ms} ms")
        told_ms = now_ms and (told_ms or now_ms)


def _bytes(one: Exchange) -> int:
    """The bytes that a quota counts: the records that the client sent or received."""
    sent = sum(summed(batches, "bytes") for _, batches, _ in produced(one))
    return sent + sum(summed(items(said, "records"), "bytes") for said in one.results.values())


def _partitions(one: Exchange) -> int:
    """The partitions that a CreateTopics creates. With validate_only, older releases count none."""
    if one.body.get("validate_only"):
        return 0
    made = {text(said, "name") for said in items(one.got, "topics") if not integer(said, "error_code")}
    return sum(integer(x, "num_partitions") for x in items(one.body, "topics") if text(x, "name") in made)


_COUNTED: Final = {"bytes": (("produce", "fetch"), _bytes), "partitions": (("create_topics",), _partitions)}
"""The requests that a quota counts, and what of them."""


def _held_up(bounds: Bounds, one: Exchange, behind: Exchange) -> Rows:
    """A request during the throttle time of its connection. The throttle time begins when the broker sends the
    response, so not before the request, and ends no later than the throttle time after the response was received."""
    held_ns = one.throttled_ms * MS
    if one.answer_t is None or behind.wait_ms or (held_ns and behind.t >= one.answer_t + held_ns // 2):
        return
    if not held_ns:
        promise = "an answer at once, because no throttle time was returned,"
        yield in_time(
            bounds, "Q1", "delayed-by-another", behind, behind.t, FORGOTTEN_NS, promise, *one.events
        )
        return
    promise = f"an answer after the throttle time of {one.throttled_ms} ms,"
    if behind.answer_t is not None and behind.answer_t < one.t + held_ns - EARLY_NS:
        seen = (
            f"answered {after(behind.answer_t, one.t)} after the request whose response had the throttle time"
        )
        yield broken("Q1", "early", behind, f"no answer before the end of the throttle time: {promise}", seen)
        return
    gap = max(held_ns, FORGOTTEN_NS)
    yield in_time(bounds, "Q1", "late", behind, one.answer_t + held_ns, gap, promise, *one.events)
