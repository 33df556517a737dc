"""All scenarios, by name."""

from typing import Final

from purgatorio_stress.scenario.broker import BROKER
from purgatorio_stress.scenario.broker_group import BROKER_GROUP
from purgatorio_stress.scenario.broker_share import BROKER_SHARE
from purgatorio_stress.scenario.completion import COMPLETION
from purgatorio_stress.scenario.contract import Scenario
from purgatorio_stress.scenario.every_timer import EVERY_TIMER
from purgatorio_stress.scenario.intrusive import INTRUSIVE
from purgatorio_stress.scenario.locking import LOCKING
from purgatorio_stress.scenario.sequences import SEQUENCES
from purgatorio_stress.scenario.timing import TIMING
from purgatorio_stress.scenario.walks import WALKS

SCENARIOS: Final[dict[str, Scenario]] = {
    scenario.name: scenario
    for scenario in (
        *COMPLETION,
        *LOCKING,
        *TIMING,
        *WALKS,
        *INTRUSIVE,
        *EVERY_TIMER,
        *SEQUENCES,
        *BROKER,
        *BROKER_GROUP,
        *BROKER_SHARE,
    )
}
"""In the order in which they are shown."""
