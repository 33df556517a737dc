"""The code under stress: the reference, `IntrusiveTimer`, or a user's timers and purgatories, in this process."""

import importlib
from dataclasses import dataclass
from typing import Final, Unpack

from purgatorio.timer.intrusive.timer import IntrusiveTimer
from purgatorio_stress.scenario.parts import REFERENCE, CheckedTimer, Parts, TimerParts
from purgatorio_stress.scenario.world import World


@dataclass(frozen=True, slots=True)
class StressSubject:
    """A subject: its name in reports and commands, and its parts."""

    name: str
    parts: Parts

    def is_asked_for(self, world: World) -> bool:
        """Whether a world uses a part of this subject. Otherwise its scenario does not test the subject."""
        own = {kind for kind in ("timer", "purgatory") if getattr(self.parts, kind) is not None}
        return not own or bool(own & world.asked_for)


def _intrusive_timer(
    name: str, *, tick_ms: int, wheel_size: int, **parts: Unpack[TimerParts]
) -> CheckedTimer:
    """An `IntrusiveTimer` whose number of slots is `wheel_size`, rounded up to a power of two."""
    slots = 1 << (wheel_size - 1).bit_length()
    return IntrusiveTimer(name, tick_ms=tick_ms, wheel_size=slots, **parts)


REFERENCE_SUBJECT: Final = StressSubject("reference", REFERENCE)

SUBJECTS: Final[dict[str, StressSubject]] = {
    "reference": REFERENCE_SUBJECT,
    "intrusive-timer": StressSubject("intrusive-timer", Parts(timer=_intrusive_timer)),
}
"""The built-in subjects."""


def subject_named(name: str) -> StressSubject:
    """A built-in subject, or the `Parts` at `module:attribute`. Raises KeyError, with the reason, if there is none."""
    if name in SUBJECTS:
        return SUBJECTS[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        raise KeyError(f"no subject {name!r}: use {', '.join(SUBJECTS)} or MODULE:ATTRIBUTE")
    try:
        parts = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise KeyError(f"subject {name!r}: {error}") from error
    if not isinstance(parts, Parts):
        raise KeyError(f"subject {name!r} is not a purgatorio_stress.scenario.parts.Parts")
    return StressSubject(name, parts)
