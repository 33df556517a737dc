"""Timers on the JVM: from the JDK; from PySpark's jars (netty's `HashedWheelTimer`, and timers of Vert.x and Jetty);
and from Debian packages (Caffeine, and an older netty), if these are installed.

The profile `netty-hashed-wheel` promises that a task is never early, and at most a tick late (plus the lateness of the
machine). docs/measured/subjects.md has the documented promises of each timer. If a bound is not documented, the subject
does not declare the bound, and the clause is SKIPPED.
"""

import zipfile
from dataclasses import replace
from typing import Final

from purgatorio_conformance.subject.child import ChildLimits
from purgatorio_conformance.subject.contract import LATE_SLACK_NS
from purgatorio_conformance.subject.java_build import installed_jar, pyspark_jars
from purgatorio_conformance.subject.jvm import JvmSubject
from purgatorio_conformance.subject.plan import MAX_DELAY_NS, MS, PlanShape
from purgatorio_spec.trace.record import TimerConstants

_NETTY_WHEEL: Final = "io.netty.util.HashedWheelTimer"
_DENSE: Final = PlanShape(span_ns=50 * MS, longest_ns=200 * MS)
_MILLISECONDS: Final = PlanShape(unit_ns=MS, least_ns=-(MAX_DELAY_NS // MS * MS))
_CAFFEINE_TICK_NS: Final = 1 << 30
_VERTX_NEEDS: Final = (
    *(
        "netty-common",
        "netty-buffer",
        "netty-transport",
        "netty-handler",
        "netty-resolver",
        "netty-resolver-dns",
    ),
    *(
        "netty-codec-base",
        "netty-codec-dns",
        "netty-codec-http",
        "netty-codec-http2",
        "netty-codec-compression",
    ),
    *("netty-handler-proxy", "netty-codec-socks", "netty-transport-native-unix-common", "jackson-core"),
)


def jdk_executor(pool: int) -> JvmSubject:
    """The JDK's `ScheduledThreadPoolExecutor` with `pool` threads."""
    return JvmSubject(
        name=f"jdk-executor-threads{pool}",
        adapter="JdkExecutor",
        implementation="java.util.concurrent.ScheduledThreadPoolExecutor",
        profile="jdk-scheduled-executor",
        tick_ns=MS,
        constants=TimerConstants(early_ns=0),
        options={"pool": pool},
    )


def jdk_timer() -> JvmSubject:
    """`java.util.Timer`, with delays in its own unit, the millisecond."""
    return JvmSubject(
        name="jdk-timer",
        adapter="JdkTimer",
        implementation="java.util.Timer",
        profile="java-util-timer",
        tick_ns=MS,
        constants=TimerConstants(early_ns=MS),
        shape=_MILLISECONDS,
        wall_clock=True,
    )


def vertx_timer() -> JvmSubject:
    """Vert.x's `setTimer`, on two event loops."""
    return JvmSubject(
        name="vertx",
        adapter="VertxTimer",
        implementation="io.vertx.core.Vertx.setTimer",
        profile="vertx-timer",
        tick_ns=MS,
        constants=TimerConstants(early_ns=0),
        libraries=lambda jars: [jars.library(name) for name in ("vertx-core", *_VERTX_NEEDS)],
        options={"pool": 2},
        shape=_MILLISECONDS,
    )


def jetty_scheduler(*, on_jdk_timer: bool) -> JvmSubject:
    """Jetty's `TimerScheduler` (on `java.util.Timer`, in milliseconds) or its `ScheduledExecutorScheduler`."""
    named = "TimerScheduler" if on_jdk_timer else "ScheduledExecutorScheduler"
    return JvmSubject(
        name="jetty-timer" if on_jdk_timer else "jetty-executor",
        adapter="JettyScheduler",
        implementation=f"org.eclipse.jetty.util.thread.{named} (shaded)",
        profile="jetty-timer-scheduler" if on_jdk_timer else "jetty-executor-scheduler",
        tick_ns=MS,
        constants=TimerConstants(early_ns=MS if on_jdk_timer else 0),
        version_of=_jetty_version,
        libraries=lambda jars: [jars.library("spark-core"), jars.library("slf4j-api")],
        options={"jdk_timer": int(on_jdk_timer)},
        shape=_MILLISECONDS if on_jdk_timer else PlanShape(),
        wall_clock=on_jdk_timer,
    )


def caffeine_expiry() -> JvmSubject:
    """Caffeine's `TimerWheel` with `expireAfter`, as Debian packages it, with delays over several buckets."""
    return JvmSubject(
        name="caffeine",
        adapter="CaffeineExpiry",
        implementation="com.github.benmanes.caffeine.cache.Caffeine.expireAfter",
        profile="caffeine-expiry",
        tick_ns=_CAFFEINE_TICK_NS,
        constants=TimerConstants(tick_ns=_CAFFEINE_TICK_NS, early_ns=0),
        libraries=lambda _: [installed_jar("caffeine", "caffeine", "libcaffeine-java")],
        shape=PlanShape(least_ns=0, longest_ns=3_500 * MS),
    )


def _jetty_version() -> str:
    """The version of the Jetty that Spark shades into its own jar, as the jar declares it."""
    about = "META-INF/maven/org.eclipse.jetty/jetty-util/pom.properties"
    try:
        with zipfile.ZipFile(pyspark_jars().library("spark-core")) as jar:
            said = jar.read(about)[:4096].decode(errors="replace")
    except (KeyError, OSError, zipfile.BadZipFile):
        return "of unknown version"
    found = [line.removeprefix("version=") for line in said.splitlines() if line.startswith("version=")]
    return found[0].strip() if found else "of unknown version"


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

    `dense`: all timers are within a few ticks, so that cancels come while a bucket is emptied.
    """
    limited = f"-max{max_pending}" if max_pending else ""
    return JvmSubject(
        name=_wheel_name("netty", tick_ns, wheel_size, dense) + limited,
        adapter="NettyWheel",
        implementation=_NETTY_WHEEL,
        profile="netty-hashed-wheel",
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
    """The wheel of Debian's `libnetty-java`. `run` raises SubjectFailed, kind `unavailable`, if it is not installed."""
    return replace(
        netty_wheel(tick_ns, wheel_size, dense=dense),
        name=_wheel_name("debian-netty", tick_ns, wheel_size, dense),
        libraries=lambda _: [installed_jar("debian-netty", "netty-common", "libnetty-java")],
    )


def _wheel_name(family: str, tick_ns: int, wheel_size: int, dense: bool) -> str:
    return f"{family}-tick{tick_ns // MS}-wheel{wheel_size}{'-dense' if dense else ''}"
