"""All vocabularies by name, and the scenario of a random program."""

from functools import partial
from typing import Final

from purgatorio_stress.random_program.act import PREFIX, BadProgram, Drawn
from purgatorio_stress.random_program.parts import PARTS
from purgatorio_stress.random_program.player import Vocabulary, play
from purgatorio_stress.random_program.purgatories import PURGATORIES
from purgatorio_stress.random_program.timers import TIMERS
from purgatorio_stress.random_program.workers import WORKERS
from purgatorio_stress.scenario.contract import Scenario
from purgatorio_stress.scenario.registry import SCENARIOS

VOCABULARIES: Final[dict[str, Vocabulary]] = {
    vocabulary.name: vocabulary for vocabulary in (*TIMERS, *PURGATORIES, *PARTS, *WORKERS)
}


def scenario_named(name: str) -> Scenario:
    """A scenario by name, or a random program by its text. Raises KeyError for an unknown name, BadProgram for an
    invalid text."""
    return scenario_of(Drawn.parse(name)) if name.startswith(PREFIX) else SCENARIOS[name]


def scenario_of(drawn: Drawn) -> Scenario:
    """The program as a scenario. Raises BadProgram if its subject does not have one of its settings or acts."""
    vocabulary = VOCABULARIES.get(drawn.subject)
    if vocabulary is None:
        raise BadProgram(f"no subject {drawn.subject!r}; there are {', '.join(VOCABULARIES)}")
    if len(drawn.settings) != len(vocabulary.settings):
        raise BadProgram(
            f"{drawn.subject} has {len(vocabulary.settings)} settings, not {len(drawn.settings)}"
        )
    for setting, choices in zip(drawn.settings, vocabulary.settings, strict=True):
        if not min(choices) <= setting <= max(choices):
            raise BadProgram(
                f"a setting is {setting}: {drawn.subject} has {min(choices)} to {max(choices)} there"
            )
    for thing in drawn.things:
        if len(thing) != len(vocabulary.thing):
            raise BadProgram(f"a thing of {drawn.subject} has {len(vocabulary.thing)} numbers: {thing}")
    for act in drawn.acts():
        verb = vocabulary.verbs.get(act.do)
        if verb is None or len(verb.args) != len(act.args):
            raise BadProgram(f"{drawn.subject} has no act {act}")
        for domain, number in zip(verb.args, act.args, strict=True):
            if domain == "thing" and not 0 <= number < len(drawn.things):
                raise BadProgram(f"{act}: there is no thing {number}")
    moves = any(act.do == "pass" for acts in drawn.threads for act in acts) and len(drawn.threads) > 1
    return Scenario(
        str(drawn),
        "a random program",
        len(drawn.threads),
        (),
        partial(play, vocabulary, drawn),
        dialects=vocabulary.dialects,
        turns=vocabulary.turns,
        horizon_ms=vocabulary.horizon_ms,
        tick_ms=vocabulary.tick_ms(drawn),
        start_ms=vocabulary.start_ms(drawn),
        step_clock=moves,
        stepping=vocabulary.stepping,
        purge_interval=vocabulary.purge_interval(drawn),
    )
