"""Makes test programs from a vocabulary. A vocabulary is a list of possible calls with small arguments (*acts*).

Small programs are enumerated, and larger programs are random. The enumeration begins with programs of the most common
acts, in which a thread uses each act at most once. Then come all programs of one act, of two acts, and so on, without
callbacks and with the simplest settings. Of several symmetric programs, only one is made. The caller leaves out the
enumerated programs that are not legal. A random program has one to three threads. It is chosen from several random
candidates: the candidate with the most untried pairs of concurrent acts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, pairwise, permutations, product
from math import fsum
from typing import Final

from purgatorio_stress.random_program.act import Act, Callback, Drawn, acts_of
from purgatorio_stress.random_program.player import BEFORE, CALLBACK, THREAD, Vocabulary

_HANDFUL: Final = 6
_PLAIN_START: Final = 0.5
_ECHO: Final = 0.2
"""The probabilities of a plain set-up (`_PLAIN_START`) and of two equal threads (`_ECHO`)."""
_SMALL: Final = 3
"""The maximum number of values of a domain in the enumeration."""

Pair = tuple[str, str]


def pairs_of(drawn: Drawn) -> set[Pair]:
    """The pairs of verbs that may be concurrent: of two threads, or of a callback and a thread. For one thread, the
    pairs of consecutive verbs."""
    found: set[Pair] = set()
    sides = [{act.do for act in acts} for acts in drawn.threads]
    sides.append({f"{callback.slot}={callback.act.do}" for callback in drawn.callbacks})
    for at, one in enumerate(sides):
        for other in sides[at + 1 :]:
            found |= {(min(a, b), max(a, b)) for a in one for b in other}
    if len(drawn.threads) == 1:
        acts = [act.do for act in (*drawn.before, *drawn.threads[0])]
        found |= {("then", f"{a} {b}") for a, b in pairwise(acts)}
    return found


def draw(vocabulary: Vocabulary, dialect: str, rng: random.Random, worth: Callable[[Pair], float]) -> Drawn:
    """A random legal program: of `_HANDFUL` candidates, the one with the highest sum of `worth` over its pairs
    (`pairs_of`)."""
    thrown = (_throw(vocabulary, rng) for _ in range(20 * _HANDFUL))
    legal = (one for one in thrown if vocabulary.legal(one, dialect))
    # `fsum` does not depend on the order of a set, so the same seed gives the same programs in every process.
    return max(islice(legal, _HANDFUL), key=lambda one: fsum(map(worth, pairs_of(one))))


def _throw(vocabulary: Vocabulary, rng: random.Random) -> Drawn:
    threads = rng.choice((1, 2, 2, 2, 2, 3))
    things = tuple(
        tuple(rng.choice(choices) for choices in vocabulary.thing)
        for _ in range(min(vocabulary.most_things, rng.choice((1, 1, 2, 2, 2, 3, 4, 5))))
    )
    lengths = {1: (3, 4, 5, 6, 8, 12, 20), 2: (1, 1, 2, 2, 3), 3: (1, 1, 2)}[threads]
    before = tuple(
        _act(vocabulary, BEFORE, len(things), rng)
        for _ in range(0 if threads == 1 else rng.choice((0, 1, 2, 2, 3, 4)))
    )
    plain = vocabulary.plain
    if rng.random() < _PLAIN_START and len(things) >= len(plain.things):
        before = (*acts_of(rng.choice((plain.before, *plain.starts))), *before[:1])
    bodies = [
        tuple(_act(vocabulary, THREAD, len(things), rng) for _ in range(rng.choice(lengths)))
        for _ in range(threads)
    ]
    if threads > 1 and rng.random() < _ECHO:
        bodies[1] = bodies[0]
    callbacks = []
    if vocabulary.slots:
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            act = _act(vocabulary, CALLBACK, len(things), rng)
            callbacks.append(Callback(rng.choice(vocabulary.slots), rng.randrange(len(things)), act))
    settings = tuple(rng.choice(choices) for choices in vocabulary.settings)
    return Drawn(vocabulary.name, settings, things, before, tuple(bodies), tuple(callbacks))


def _act(vocabulary: Vocabulary, where: str, things: int, rng: random.Random) -> Act:
    verbs = [verb for verb in vocabulary.verbs.values() if where in verb.where]
    verb = rng.choices(verbs, [verb.weight for verb in verbs])[0]
    numbers = (
        rng.randrange(things) if domain == "thing" else rng.choice(vocabulary.domains[domain])
        for domain in verb.args
    )
    return Act(verb.do, tuple(numbers))


def plain_programs(
    vocabulary: Vocabulary, lengths: tuple[int, ...], settings: tuple[int, ...] = ()
) -> Iterator[Drawn]:
    """All programs of plain acts with threads of these lengths. The threads are reversed, because DPOR varies the last
    thread most."""
    things, settings = vocabulary.plain.things, settings or vocabulary.plain_settings
    for threads, before in product(_plain_threads(vocabulary, lengths), _plain_starts(vocabulary)):
        drawn = Drawn(vocabulary.name, settings, things, before, threads)
        if canonical(drawn):
            yield replace(drawn, threads=threads[::-1])


def raising_programs(vocabulary: Vocabulary, lengths: tuple[int, ...]) -> Iterator[Drawn]:
    """All programs of plain acts with threads of these lengths, and a callback that raises or exits. Of several threads
    only those in which a callback of the first thing does."""
    plain, alone = vocabulary.plain, len(lengths) == 1
    # Things that are due together may be submitted together. One of them raises.
    together = plain.together or (plain.things[0],) * len(plain.things)
    callbacks = [
        Callback(slot, thing, Act(do))
        for slot in dict.fromkeys(vocabulary.slots)
        for thing in range(len(plain.things) if alone else 1)
        for do in ("raise", "exit")
        if do in vocabulary.verbs
    ]
    things = dict.fromkeys((together, plain.things) if alone else (plain.things,))
    starts, threads = _plain_starts(vocabulary), [*_plain_threads(vocabulary, lengths)]
    chosen = _raising_settings(vocabulary)
    for setting, of, before, acts, callback in product(chosen, things, starts, threads, callbacks):
        drawn = Drawn(vocabulary.name, setting, of, before, acts, (callback,))
        if canonical(drawn):
            yield drawn


def calling_programs(vocabulary: Vocabulary) -> Iterator[Drawn]:
    """All programs of three things that are due together, one plain act, and a callback of the first thing that calls
    something else."""
    plain = vocabulary.plain
    if not plain.before:
        return
    things = (plain.together or plain.things)[:1] * 3

    def of(thing: int, act: Act) -> Act:
        return vocabulary.renumbered(act, lambda domain, number: thing if domain == "thing" else number)

    before = tuple(of(thing, act) for thing in range(3) for act in acts_of(plain.before))
    inside = [act for act in _all_acts(vocabulary, CALLBACK, len(things)) if act.do not in ("raise", "exit")]
    slots, chosen = dict.fromkeys(vocabulary.slots), _raising_settings(vocabulary)
    for setting, act, slot, inner in product(chosen, acts_of(plain.acts), slots, inside):
        yield Drawn(vocabulary.name, setting, things, before, ((act,),), (Callback(slot, 0, inner),))


def mirrored_programs(vocabulary: Vocabulary) -> Iterator[Drawn]:
    """Programs of two threads with the same call on different things. The first callback of each thing uses the other
    thing, so locks are acquired in both orders."""
    plain = vocabulary.plain
    if not plain.mirrored:
        return

    def mirrored(act: Act) -> Act:
        """The same act with the numbers 0 and 1 of things, keys and timers exchanged."""
        return vocabulary.renumbered(
            act, lambda domain, n: 1 - n if domain in ("thing", "key", "timer") else n
        )

    before = acts_of(plain.before)
    acts = [act for act in acts_of(plain.acts) if act != mirrored(act) and act.args[0] == 0]
    for act, one in product(acts, [None, *(acts if vocabulary.slots else ())]):
        yield Drawn(
            vocabulary.name,
            vocabulary.plain_settings,
            plain.mirrored,
            (*before, *map(mirrored, before)),
            ((act,), (mirrored(act),)),
            ()
            if one is None
            else (Callback(vocabulary.slots[0], 0, mirrored(one)), Callback(vocabulary.slots[0], 1, one)),
        )


def _plain_starts(vocabulary: Vocabulary) -> list[tuple[Act, ...]]:
    return [acts_of(before) for before in (vocabulary.plain.before, *vocabulary.plain.starts)]


def _plain_threads(vocabulary: Vocabulary, lengths: tuple[int, ...]) -> Iterator[tuple[tuple[Act, ...], ...]]:
    return product(*(permutations(acts_of(vocabulary.plain.acts), length) for length in lengths))


def _raising_settings(vocabulary: Vocabulary) -> dict[tuple[int, ...], None]:
    return dict.fromkeys((vocabulary.plain.raising or vocabulary.plain_settings, vocabulary.plain_settings))


def enumerated(vocabulary: Vocabulary, size: int) -> Iterator[Drawn]:
    """All programs of `size` acts in at most two threads, without callbacks, with the first value of each setting."""
    settings = tuple(choices[0] for choices in vocabulary.settings)
    numbers = vocabulary.small or tuple(product(*(_some(choices) for choices in vocabulary.thing)))
    for before in range(size):
        for second in range((size - before) // 2 + 1):
            first = size - before - second
            places = [BEFORE] * before + [THREAD] * (first + second)
            for acts in product(*([*_all_acts(vocabulary, place, size)] for place in places)):
                used = [*dict.fromkeys(number for act in acts for number in vocabulary.things_of(act))]
                if used != list(
                    range(len(used))
                ):  # another program has these things in the order of their uses
                    continue
                threads = tuple(filter(None, (acts[before : before + first], acts[before + first :])))
                for things in product(numbers, repeat=len(used)) if used else [numbers[:1]]:
                    drawn = Drawn(vocabulary.name, settings, things, acts[:before], threads)
                    if canonical(drawn):
                        yield drawn


def canonical(drawn: Drawn) -> bool:
    """Whether this program represents all programs that differ only in the order of the threads."""
    keys = [(-len(acts), [str(act) for act in acts]) for acts in drawn.threads]
    return keys == sorted(keys)


def _all_acts(vocabulary: Vocabulary, where: str, size: int) -> Iterator[Act]:
    for verb in vocabulary.verbs.values():
        if where in verb.where:
            domains = [
                range(min(size, vocabulary.most_things)) if one == "thing" else _some(vocabulary.domains[one])
                for one in verb.args
            ]
            yield from (Act(verb.do, numbers) for numbers in product(*domains))


def _some(choices: tuple[int, ...]) -> tuple[int, ...]:
    """At most `_SMALL` values of a domain: the first, and others spread over the domain."""
    different = tuple(dict.fromkeys(choices))
    if len(different) <= _SMALL:
        return different
    return tuple(different[at * (len(different) - 1) // _SMALL] for at in range(_SMALL))
