"""Netty's `HashedWheelTimer`: the one inside PySpark's package, and Debian's older one where it is installed.

What it is held to (profile `netty-hashed-wheel`): never early; at most a tick late, and what the machine adds to that.
"""

from pathlib import Path

from purgatorio_spec.trace.record import TimerConstants
from purgatorio_stress.subject.child import ChildLimits
from purgatorio_stress.subject.contract import SubjectFailed
from purgatorio_stress.subject.java_build import Jars, debian_jar, pyspark_jars
from purgatorio_stress.subject.jvm import LATE_SLACK_NS, JvmSubject

__all__ = ["debian_netty_wheel", "netty_wheel"]

_IMPLEMENTATION = "io.netty.util.HashedWheelTimer"
_PROFILE = "netty-hashed-wheel"


def netty_wheel(
    tick_ns: int,
    wheel_size: int,
    *,
    max_pending: int = 0,
    limits: ChildLimits | None = None,
    command: tuple[str, ...] = (),
) -> JvmSubject:
    """The wheel of PySpark's netty. `max_pending` above 0 makes netty refuse adds beyond it (recorded as `err`)."""
    limited = f"-max{max_pending}" if max_pending else ""
    return JvmSubject(
        name=f"netty-tick{tick_ns // 1_000_000}-wheel{wheel_size}{limited}",
        adapter="NettyWheel",
        implementation=_IMPLEMENTATION,
        profile=_PROFILE,
        tick_ns=tick_ns,
        constants=_constants(tick_ns, wheel_size),
        version_of=_pyspark_version,
        libraries=_pyspark_netty,
        options={"wheel_size": wheel_size, "max_pending": max_pending},
        counts=True,
        limits=limits,
        command=command,
    )


def debian_netty_wheel(tick_ns: int, wheel_size: int) -> JvmSubject:
    """The wheel of Debian's `libnetty-java`; running it raises SubjectFailed, kind `unavailable`, where it is not."""
    return JvmSubject(
        name=f"debian-netty-tick{tick_ns // 1_000_000}-wheel{wheel_size}",
        adapter="NettyWheel",
        implementation=_IMPLEMENTATION,
        profile=_PROFILE,
        tick_ns=tick_ns,
        constants=_constants(tick_ns, wheel_size),
        version_of=_debian_version,
        libraries=_debian_netty,
        options={"wheel_size": wheel_size, "max_pending": 0},
        counts=True,
    )


def _constants(tick_ns: int, wheel_size: int) -> TimerConstants:
    return TimerConstants(tick_ns=tick_ns, wheel_size=wheel_size, early_ns=0, late_ns=tick_ns + LATE_SLACK_NS)


def _pyspark_version() -> str:
    return pyspark_jars().netty_version


def _pyspark_netty(jars: Jars) -> list[Path]:
    return [jars.netty_common]


def _debian_jar() -> Path:
    jar = debian_jar("netty-common")
    if jar is None:
        raise SubjectFailed(
            "debian-netty",
            "unavailable",
            "Debian's package libnetty-java is not installed; apt-get install libnetty-java",
        )
    return jar


def _debian_version() -> str:
    return _debian_jar().stem.removeprefix("netty-common-")


def _debian_netty(jars: Jars) -> list[Path]:
    return [_debian_jar()]
