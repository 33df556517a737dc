"""Netty's `HashedWheelTimer`: the version in PySpark's package, and Debian's older version if this version is
installed.

The promises of the profile `netty-hashed-wheel`: a task is never early, and is at most a tick late, plus the lateness
of the machine.
"""

from dataclasses import replace
from typing import Final

from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import LATE_SLACK_NS
from purgatorio_conformance.subject.java_build import installed_jar
from purgatorio_conformance.subject.jvm import JvmSubject
from purgatorio_conformance.subject.plan import MS, PlanShape
from purgatorio_spec.trace.record import TimerConstants

_IMPLEMENTATION = "io.netty.util.HashedWheelTimer"
_PROFILE = "netty-hashed-wheel"
_DENSE: Final = PlanShape(span_ns=50 * MS, longest_ns=200 * MS)


def netty_wheel(
    tick_ns: int,
    wheel_size: int,
    *,
    max_pending: int = 0,
    dense: bool = False,
    limits: ChildLimits | None = None,
    command: tuple[str, ...] = (),
) -> JvmSubject:
    """The wheel of PySpark's netty. `max_pending` above 0 makes netty refuse adds beyond it (recorded as `err`).

    `dense`: all timers within a few ticks, so that cancels fall into the moment in which a bucket is emptied.
    """
    limited = f"-max{max_pending}" if max_pending else ""
    return JvmSubject(
        name=_name("netty", tick_ns, wheel_size, dense) + limited,
        adapter="NettyWheel",
        implementation=_IMPLEMENTATION,
        profile=_PROFILE,
        tick_ns=tick_ns,
        constants=TimerConstants(
            tick_ns=tick_ns, wheel_size=wheel_size, early_ns=0, late_ns=tick_ns + LATE_SLACK_NS
        ),
        libraries=lambda jars: [jars.netty_common],
        options={"wheel_size": wheel_size, "max_pending": max_pending},
        shape=_DENSE if dense else PlanShape(),
        counts=True,
        limits=limits,
        command=command,
    )


def debian_netty_wheel(tick_ns: int, wheel_size: int, *, dense: bool = False) -> JvmSubject:
    """The wheel of Debian's `libnetty-java`; running it raises SubjectFailed, kind `unavailable`, where it is not."""
    return replace(
        netty_wheel(tick_ns, wheel_size, dense=dense),
        name=_name("debian-netty", tick_ns, wheel_size, dense),
        libraries=lambda _: [installed_jar("debian-netty", "netty-common", "libnetty-java")],
    )


def _name(family: str, tick_ns: int, wheel_size: int, dense: bool) -> str:
    return f"{family}-tick{tick_ns // MS}-wheel{wheel_size}{'-dense' if dense else ''}"
