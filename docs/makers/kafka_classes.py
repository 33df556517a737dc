"""Released Kafka classes under the default `verify --command`, and the page of what came of it.

Each release's jars are resolved by the user's Maven into the cache, and one of the adapters in examples/kafka is
compiled against them. Results are kept in a folder, so that a run that was cut short goes on where it was.

    python -m docs.makers.kafka_classes RESULTS [VERSION...]

Without a version, all releases are judged, and the page is written. With versions, the table is printed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docs.makers.marked import with_part
from docs.makers.maven import compiled_adapter, jdk_program, maven_jars
from purgatorio_pipeline.report import markdown_text

ADAPTERS: Final = Path(__file__).parents[2] / "examples" / "kafka"
PAGE: Final = Path(__file__).parents[1] / "measured" / "kafka-releases-classes.md"
_SEED: Final = 1
_LONGEST_S: Final = 3_600.0

_SCALA: Final = ("scala", "base-1.0", "timer-0.10")


@dataclass(frozen=True, slots=True)
class Release:
    """A release: its artifact, the folders of its adapter, the main class, and what explains its violations."""

    version: str
    scala: str
    folders: Sequence[str]
    explained: str = ""
    main: str = "KafkaScala"

    def command(self) -> list[str]:
        """The program to drive. Raises SubjectFailed, kind `unavailable`."""
        jars = maven_jars([f"org.apache.kafka:kafka_{self.scala}:{self.version}"])
        folders = [ADAPTERS / name for name in ("clock", "common", *self.folders)]
        sources = sorted(source for folder in folders for source in folder.rglob("*.java"))
        classes = compiled_adapter(sources, jars)
        return [str(jdk_program("java")), "-cp", f"{classes}:{jars}/*", self.main]


_LOCK: Final = "KAFKA-6653: a check gives up at a lock that is taken; mended in 1.1.0"

RELEASES: Final = (
    Release("0.9.0.1", "2.11", ("scala", "base-0.9", "timer-0.9")),
    Release("0.10.2.2", "2.12", ("scala", "base-0.10", "timer-0.10")),
    Release("1.0.0", "2.12", _SCALA, _LOCK),
    Release("1.0.2", "2.12", _SCALA, _LOCK),
    Release("1.1.1", "2.12", _SCALA),
    Release("2.2.2", "2.12", _SCALA),
    Release("2.7.2", "2.13", _SCALA),
    Release("3.9.1", "2.13", ("scala", "base-1.0", "timer-3.5")),
    Release("4.0.0", "2.13", ("java", "timer-3.5"), main="KafkaJava"),
    Release("4.4.0", "2.13", ("java", "timer-3.5"), main="KafkaJava"),
)


def verified(release: Release, results: Path) -> Mapping[str, object]:
    """The `--json` of the default command for a release, with the seconds; from `results` if it is there."""
    kept = results / f"{release.version}.json"
    if not kept.is_file():
        command = " ".join(release.command())
        began = time.monotonic()
        verify = [
            sys.executable,
            "-m",
            "purgatorio_pipeline",
            "verify",
            "--engine",
            "process",
            "--seed",
            str(_SEED),
        ]
        outputs = [
            "--traces",
            str(results / release.version),
            "--report",
            str(results / f"{release.version}.html"),
        ]
        done = subprocess.run(
            [*verify, "--command", command, *outputs, "--json"],
            stdout=subprocess.PIPE, timeout=_LONGEST_S, check=False,
        )  # fmt: skip
        result = json.loads(done.stdout) | {"seconds": round(time.monotonic() - began)}
        kept.write_text(json.dumps(result))
    loaded: Mapping[str, object] = json.loads(kept.read_text())
    return loaded


def table(results: Path, versions: Sequence[str] = ()) -> str:
    """A row for each release of which a result is there or, if `versions` name it, is made."""
    rows = []
    for release in RELEASES:
        if release.version in versions or (results / f"{release.version}.json").is_file():
            print(release.version, file=sys.stderr, flush=True)
            rows.append(row(release, verified(release, results)))
    return markdown_text.table(("release", "dialect", "verdict", "clauses", "seconds", "explained by"), rows)


def row(release: Release, result: Mapping[str, object]) -> tuple[str, ...]:
    """A release as a row of the table."""
    runs = result["runs"]
    assert isinstance(runs, list)
    broken: dict[str, list[str]] = {}
    for run in runs:
        name = str(run["run"]).removeprefix("kafka-").removesuffix(f"-seed{_SEED}")
        for clause, judged in run["clauses"].items():
            if judged["verdict"] == "VIOLATED":
                broken.setdefault(clause, []).append(name)
        if run.get("failure"):
            broken.setdefault(run["failure"], []).append(name)
    said = "; ".join(f"{clause} in {', '.join(names)}" for clause, names in broken.items())
    kept = len(
        {clause for run in runs for clause, judged in run["clauses"].items() if judged["verdict"] == "PASS"}
    )
    return (
        release.version,
        str(runs[0]["profile"]),
        str(result["verdict"]),
        said or f"{kept} kept in {len(runs)} runs",
        str(result["seconds"]),
        release.explained or "-",
    )


def main() -> None:
    """Print the table of the releases that are named, or write that of all into the page."""
    parser = argparse.ArgumentParser(prog="python -m docs.makers.kafka_classes", description=__doc__)
    parser.add_argument("results", type=Path, help="folder for the reports and traces")
    known = [release.version for release in RELEASES]
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"of {', '.join(known)}")
    asked = parser.parse_args()
    if unknown := [version for version in asked.versions if version not in known]:
        parser.error(f"no such release: {', '.join(unknown)}; known are {', '.join(known)}")
    asked.results.mkdir(parents=True, exist_ok=True)
    made = table(asked.results, asked.versions or known)
    if asked.versions:
        print(made)
    else:
        PAGE.write_text(with_part(PAGE.read_text(), "releases", made))


if __name__ == "__main__":
    main()
