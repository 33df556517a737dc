"""Timers of the JVM other than netty's: the timers of the JDK, Vert.x's and Jetty's from PySpark's jars, Debian's
Caffeine.

docs/measured/subjects.md has the documented promises of each timer. If a bound is not documented, the subject does not
declare the bound, and the clause is SKIPPED.
"""

import zipfile
from typing import Final

from purgatorio_conformance.subject.java_build import installed_jar, pyspark_jars
from purgatorio_conformance.subject.jvm import JvmSubject
from purgatorio_conformance.subject.plan import MAX_DELAY_NS, MS, PlanShape
from purgatorio_spec.trace.record import TimerConstants

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
    """The JDK's `ScheduledThreadPoolExecutor` with so many threads."""
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
    """`java.util.Timer`, asked in its own unit, the millisecond."""
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
    """Caffeine's `TimerWheel` by `expireAfter`, as Debian packages it, with delays over several of its buckets."""
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
    """Of the Jetty that Spark shades into its own jar: what the jar says itself."""
    about = "META-INF/maven/org.eclipse.jetty/jetty-util/pom.properties"
    try:
        with zipfile.ZipFile(pyspark_jars().library("spark-core")) as jar:
            said = jar.read(about)[:4096].decode(errors="replace")
    except (KeyError, OSError, zipfile.BadZipFile):
        return "of unknown version"
    found = [line.removeprefix("version=") for line in said.splitlines() if line.startswith("version=")]
    return found[0].strip() if found else "of unknown version"
