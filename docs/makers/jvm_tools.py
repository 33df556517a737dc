"""Changes of Kafka's classes under Fray, Lincheck and jcstress, and under the default command beside them: a page.

Maven resolves the jars, the sources and the tools into the user's cache. Fray needs a JDK 25 with jlink: JDK25_HOME.

    python -m docs.makers.jvm_tools docs/measured/jvm-tools.md RESULTS [CHANGE...]
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from docs.makers.kafka_classes import ADAPTERS, Release
from docs.makers.marked import with_part
from docs.makers.maven import compiled_adapter, jdk_program, maven_jars
from purgatorio_conformance.cache_dir import user_cache_dir
from purgatorio_pipeline.report import markdown_text

_CHANGES: Final = tomllib.loads(Path(__file__).with_name("kafka_changes.toml").read_text())
_RELEASE: Final = Release(_CHANGES["release"], "2.13", ("java", "timer-3.5"), main="KafkaJava")
_KAFKA: Final = f"org.apache.kafka:kafka_{_RELEASE.scala}:{_RELEASE.version}"
_PARTS: Final = ("org/apache/kafka/server/purgatory/", "org/apache/kafka/server/util/timer/")
CLEAN: Final = "none"

_TESTS: Final = ADAPTERS / "tools"
_LIMIT_S: Final = 120.0  # of a tool for a change
_LONGEST_S: Final = 3_600.0
_FRAY: Final = "0.9.2"
_FRAY_JARS: Final = (
    *(f"org.pastalab.fray:fray-{name}:{_FRAY}" for name in ("core", "junit", "jvmti-linux-x8664")),
    *(f"org.pastalab.fray.instrumentation:fray-instrumentation-{name}:{_FRAY}" for name in ("jdk", "agent")),
)
_LINCHECK_JARS: Final = ("org.jetbrains.lincheck:lincheck:3.7",)
_JCSTRESS_JARS: Final = ("org.openjdk.jcstress:jcstress-core:0.16",)
_FRAY_ITERATIONS: Final = 100  # of a scenario
_SCENARIOS: Final = tuple(
    re.findall(r"public static void (\w+)\(\)", (_TESTS / "Scenarios.java").read_text())
)
_FRAY_MODULES: Final = "java.sql,java.management,java.naming,jdk.unsupported,jdk.management,jdk.zipfs"


@dataclass(frozen=True, slots=True)
class Seen:
    """The line by which a tool shows a change ("" for none), and the seconds until then or until its end."""

    found: str
    seconds: float


def changed(name: str) -> Path:
    """The folder of Kafka's classes with this change. Raises SubjectFailed, kind `unavailable`."""
    folder = user_cache_dir() / f"kafka-{_RELEASE.version}"
    sources = folder / "sources"
    if not sources.is_dir():
        jars = maven_jars([f"org.apache.kafka:kafka-server-common:{_RELEASE.version}:sources"])
        with zipfile.ZipFile(next(jars.glob("kafka-server-common-*-sources.jar"))) as jar:
            jar.extractall(sources, [one for one in jar.namelist() if one.startswith(_PARTS)])
    made = folder / name / "src"
    for source in sources.rglob("*.java"):
        text = source.read_text()
        if name != CLEAN and str(source).endswith(_CHANGES["change"][name]["file"]):
            change = _CHANGES["change"][name]
            assert text.count(change["old"]) == 1, name
            text = text.replace(change["old"], change["new"])
        target = made / source.relative_to(sources)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return compiled_adapter(sorted(made.rglob("*.java")), maven_jars([_KAFKA]))


def _tests(name: str, tool: Sequence[str] = ()) -> str:
    """The class path of a test in examples/kafka/tools, without Kafka's changed classes."""
    sources = [
        *(_TESTS / f"{one}.java" for one in ("Scenarios", name)),
        *(ADAPTERS / "clock").rglob("*.java"),
    ]
    jars = maven_jars([_KAFKA, *tool])
    return f"{compiled_adapter(sorted(sources), jars)}:{jars}/*"


def _watched(command: Sequence[str], shows: str, folder: Path, limit_s: float = _LIMIT_S) -> Seen:
    """Run a tool until a line of its output matches; then it is ended."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(
        ["timeout", str(limit_s), *command],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as tool:
        assert tool.stdout is not None
        found = next((line.strip() for line in tool.stdout if re.search(shows, line)), "")
        seconds = time.monotonic() - began
        if tool.poll() is None:
            os.killpg(tool.pid, signal.SIGKILL)
    return Seen(found, round(seconds, 1))


def _lincheck(change: str, folder: Path) -> Seen:
    """The purgatory as a data structure, by model checking."""
    command = [
        str(jdk_program("java")),
        "-Xmx2g",
        "-cp",
        f"{changed(change)}:{_tests('LincheckTest', _LINCHECK_JARS)}",
    ]
    return _watched([*command, "tools.LincheckTest"], r"^found:", folder)


def _jcstress(change: str, folder: Path) -> Seen:
    """Its tests in the mode `quick`, until an outcome that is forbidden."""
    command = [
        str(jdk_program("java")),
        "-cp",
        f"{changed(change)}:{_tests('JcstressTests', _JCSTRESS_JARS)}",
    ]
    options = ("-t", "JcstressTests", "-m", "quick", "-r", str(folder))
    return _watched([*command, "org.openjdk.jcstress.Main", *options], r"\[(FAILED|ERROR|TIMEOUT)\]", folder)


def _fray(change: str, folder: Path) -> Seen:
    """One scenario after the other, by Fray's command line, until one fails; the seconds of that one."""
    java, native, tools = _fray_java()
    classes = f"{changed(change)}:{_tests('FrayRun')}"
    began = time.monotonic()
    for scenario in _SCENARIOS:
        options = {
            "run-config": "cli",
            "clazz": "tools.FrayRun",
            "method": "main",
            "args": scenario,
            "classpath": _spelled(classes),
            "output": str(folder / scenario),
            "scheduler": "pos",
            "iter": str(_FRAY_ITERATIONS),
        }
        command = [
            *(str(java), "-ea", "-cp", f"{tools}/*", f"-agentpath:{native}"),
            f"-javaagent:{tools}/fray-instrumentation-agent-{_FRAY}.jar",
            "org.pastalab.fray.core.MainKt",
            *(word for name, value in options.items() for word in (f"--{name}", value)),
        ]
        one = _watched(command, r"Error: ", folder, max(_LIMIT_S - (time.monotonic() - began), 1))
        if one.found:
            return Seen(f"{scenario}, {one.found}", one.seconds)
    return Seen("", round(time.monotonic() - began, 1))


def _fray_java() -> tuple[Path, Path, Path]:
    """Fray's `java`, its native agent and its jars. The first is a JDK 25 that Fray's plugin links once."""
    tools, folder = maven_jars(_FRAY_JARS), user_cache_dir() / f"fray-{_FRAY}"
    if not folder.is_dir():
        path = ":".join(str(jar) for jar in sorted(tools.glob("*.jar")) if "agent" not in jar.name)
        command = [
            f"{os.environ['JDK25_HOME']}/bin/jlink",
            f"-J-javaagent:{tools}/fray-instrumentation-jdk-{_FRAY}.jar",
            *(f"-J--module-path={path}", f"-J--class-path={path}"),
            *("-J--add-modules=org.pastalab.fray.instrumentation.jdk", f"--add-modules={_FRAY_MODULES}"),
            *("--fray-instrumentation", "--output", str(folder)),
        ]
        subprocess.run(command, check=True, timeout=_LONGEST_S)
        with zipfile.ZipFile(next(tools.glob("fray-jvmti-*.jar"))) as jar:
            jar.extract("libjvmti.so", folder)
    return folder / "bin" / "java", folder / "libjvmti.so", tools


def _spelled(class_path: str) -> str:
    """With the jars in place of a star, which Fray does not know."""
    parts = class_path.split(":")
    return ":".join(
        str(one)
        for part in parts
        for one in (sorted(Path(part).parent.glob("*.jar")) if part.endswith("*") else [part])
    )


def _default(change: str, folder: Path) -> Seen:
    """The default command, until the first of its runs that is found to break a promise."""
    command = _RELEASE.command()
    command[2] = f"{changed(change)}:{command[2]}"
    verify = [sys.executable, "-m", "purgatorio_pipeline", "verify", "--engine", "process", "--seed", "1"]
    verify += ["--command", " ".join(command), "--traces", str(folder)]
    began = time.monotonic()
    judged: set[Path] = set()
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(verify, stdout=said, stdin=subprocess.DEVNULL, start_new_session=True) as driver,
    ):
        while driver.poll() is None:
            time.sleep(1)
            for trace in sorted(set(folder.glob("*.jsonl.gz")) - judged):
                found = _broken(trace)
                judged |= {trace} if found is not None else set()
                if found:
                    os.killpg(driver.pid, signal.SIGKILL)
                    return Seen(
                        f"{trace.name.partition('.')[0]}: {found}", round(time.monotonic() - began, 1)
                    )
    verdict = {0: "", 1: "VIOLATED", 3: "UNKNOWN"}[driver.returncode]
    return Seen(verdict, round(time.monotonic() - began, 1))


def _broken(trace: Path) -> str | None:
    """The clauses that a trace breaks ("" for none); None while it is still being written."""
    command = [
        sys.executable,
        "-m",
        "purgatorio_pipeline",
        "check",
        str(trace),
        "--engine",
        "process",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        return None
    runs = json.loads(done.stdout)["runs"]
    return ", ".join(
        clause for run in runs for clause, judged in run["clauses"].items() if judged["verdict"] == "VIOLATED"
    )


_TOOLS: Final[Mapping[str, Callable[[str, Path], Seen]]] = {
    "verify": _default,
    "Fray": _fray,
    "Lincheck": _lincheck,
    "jcstress": _jcstress,
}


def seen(tool: str, change: str, results: Path, *, asked: bool = True) -> Seen | None:
    """The result of a tool for a change, from `results` if it is there. None if it is not there and not requested."""
    kept = results / f"{change}-{tool}.json"
    if not kept.is_file():
        if not asked:
            return None
        print(change, tool, file=sys.stderr, flush=True)
        folder = results / f"{change}-{tool}"
        folder.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(_TOOLS[tool](change, folder.absolute()))))
    return Seen(**json.loads(kept.read_text()))


def table(results: Path, asked: Sequence[str]) -> str:
    """A row for each change, a cell for each tool."""
    rows = []
    for change in (*_CHANGES["change"], CLEAN):
        breaks = "none" if change == CLEAN else _CHANGES["change"][change]["breaks"]
        cells = [seen(tool, change, results, asked=change in asked) for tool in _TOOLS]
        rows.append((breaks, *map(_cell, cells)))
    return markdown_text.table(("change", *_TOOLS), rows)


def _cell(found: Seen | None) -> str:
    if found is None:
        return "not run"
    return f"{found.seconds:,.0f} s" if found.found else f"- of {found.seconds:,.0f} s"


def main(arguments: Sequence[str]) -> None:
    """Write the table into the page."""
    page, results = Path(arguments[0]), Path(arguments[1])
    results.mkdir(parents=True, exist_ok=True)
    made = table(results, arguments[2:] or (*_CHANGES["change"], CLEAN))
    page.write_text(with_part(page.read_text(), "tools", made))


if __name__ == "__main__":
    main(sys.argv[1:])
