"""Tests a program in any language with the suite, in virtual time, by the protocol `purgatorio-subject/1`.

The description of the program determines its promises, and what it lacks. One child process (the program) executes
all runs of the suite. Each run begins with a message `start`. If the child misbehaves, the current run ends with a
message, and the child is started again for the next run.
"""

from __future__ import annotations

from purgatorio_conformance.protocol.describe import profile_of
from purgatorio_conformance.protocol.message import Description
from purgatorio_conformance.subject.plan import HUGE_NS
from purgatorio_conformance.suite.contract import CAPABILITIES, OFFERS, Promise


def command_promise(description: Description) -> Promise:
    """The promise of a program, from its description. Raises ValueError if the profile is missing or unknown."""
    lacks = {
        lack: f"it does not declare the capability {name}"
        for lack, name in CAPABILITIES.items()
        if name not in description.capabilities
    }
    for lack, needed in (("re-entry", {"timer_fire"}), ("callbacks", {"try_complete", "on_complete"})):
        if missing := needed.difference(description.gates):
            lacks[lack] = f"it has no gate at {' or '.join(sorted(missing))}"
    if "re-entry" in lacks and "timer" in description.capabilities:
        lacks["raising"] = lacks["re-entry"]
    if description.unit_ns > 1:
        lacks["between-ticks"] = f"its times are multiples of {description.unit_ns} ns"
    if description.least_delay_ns > 0:
        lacks["past"] = f"its smallest delay is {description.least_delay_ns} ns"
    if description.most_delay_ns < HUGE_NS:
        lacks["far"] = f"its largest delay is {description.most_delay_ns} ns"
    if not {"timer_add", "timer_fire"} & set(description.reports):
        lacks["timer"] = "it reports neither timer_add nor timer_fire"
    return Promise(
        profile_of(description),
        tick_ns=description.grain_ns,
        early_ns=description.early_ns,
        late_ns=description.late_ns,
        wheel_size=description.wheel_size,
        longest_delay_ns=description.most_delay_ns,
        purge_interval=description.purge_interval,
        lacks=lacks,
        subject=description.name,
        version=description.version,
        language=description.language,
        offers=tuple(offer for offer in OFFERS if offer in description.capabilities),
        catch_up=description.catch_up,
        turn=description.turn,
    )
