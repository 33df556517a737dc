"""The built-in subjects by name.

A name stands for all configurations of a subject. Each configuration is recorded in its own run.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from purgatorio_conformance.builtin.asyncio_periodic import asyncio_periodic
from purgatorio_conformance.builtin.jvm_timers import JVM_FAMILIES, jvm_timers
from purgatorio_conformance.builtin.python_timers import asyncio_loop, sched_scheduler, threading_timer
from purgatorio_conformance.builtin.reference import reference_subjects
from purgatorio_conformance.builtin.scripts import npm_periodic, npm_timer_wheel
from purgatorio_conformance.subject.contract import Subject

SubjectFactory = Callable[[], Sequence[Subject]]
_JVM: Final = {family: partial(jvm_timers, family) for family in JVM_FAMILIES}
SUBJECTS: Final[Mapping[str, SubjectFactory]] = {
    "reference": reference_subjects,
    "netty": _JVM["netty"],
    "asyncio": lambda: [asyncio_loop("call_later"), asyncio_loop("call_at")],
    **{family: factory for family, factory in _JVM.items() if family != "jdk-periodic"},
    "sched": lambda: [sched_scheduler()],
    "threading-timer": lambda: [threading_timer()],
    "npm-timer-wheel": npm_timer_wheel,
    "jdk-periodic": _JVM["jdk-periodic"],
    "asyncio-periodic": asyncio_periodic,
    "npm-periodic": npm_periodic,
}
"""Every built-in subject: the name, and what makes its configurations."""

MAIN: Final = ("reference", "netty", "asyncio")
"""The default subjects of `purgatorio verify`: every installation has them, and they are expected to pass."""

PERIODIC: Final = ("jdk-periodic", "asyncio-periodic", "npm-periodic")
"""Subjects that are driven with periodic tasks."""

FOREIGN: Final = tuple(name for name in SUBJECTS if name not in ("reference", *PERIODIC))
"""Timers of other projects, driven with tasks that run once."""


def subjects_named(name: str) -> Sequence[Subject]:
    """All configurations of the subject of this name. Raises KeyError with the known names."""
    factory = SUBJECTS.get(name)
    if factory is None:
        raise KeyError(f"no subject {name!r}; there are: {', '.join(SUBJECTS)}")
    return factory()
