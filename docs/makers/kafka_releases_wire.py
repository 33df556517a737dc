"""What `purgatorio wire` says of released Kafka brokers: plays them, and writes the page of the results.

    python -m docs.makers.kafka_releases_wire docs/measured/kafka-releases-wire.md --results DIR [VERSION...]

Each run is `purgatorio wire` in its default plan against a broker that `kafka_release` starts; what it said is kept in
DIR, one file a run, and a run that is there is not played again (`--again` plays it). Without versions the page is made
of what is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docs.makers.kafka_release import ONE_REPLICA, Missing, Node, Release, started, stop_on_sigterm
from purgatorio_pipeline.report import markdown_text
from purgatorio_wire.client.connection import Address, connect
from purgatorio_wire.client.recorder import WireRecorder
from purgatorio_wire.scene.asker import codes, first_of
from purgatorio_wire.scene.data_asker import quota_of

RELEASES: Final = ("1.1.1", "2.3.1", "2.8.2", "3.3.2", "3.6.2", "3.9.2", "4.0.0", "4.4.0")
RUN_SECONDS: Final = 900.0


@dataclass(frozen=True, slots=True)
class Setup:
    """A way to run a release: the settings of its nodes, and how many there are."""

    settings: Mapping[str, str]
    nodes: int = 1
    quota_bytes: int | None = None
    """Of every client, per second and node; from 2.6 on."""


SETUPS: Final[Mapping[str, Setup]] = {
    "one node": Setup(ONE_REPLICA),
    "two nodes": Setup(ONE_REPLICA, 2),
    "no configuration": Setup({}),
    "initial delay 0": Setup({**ONE_REPLICA, "group.initial.rebalance.delay.ms": "0"}),
    "gzip, few fetch sessions": Setup(
        {**ONE_REPLICA, "compression.type": "gzip", "max.incremental.fetch.session.cache.slots": "2"}
    ),
    "a quota of 20 kB/s": Setup(ONE_REPLICA, quota_bytes=20_000),
}
"""By the name that the page gives them. The default initial delay is 3,000 ms."""


@dataclass(frozen=True, slots=True)
class Known:
    """A public issue, or the mend itself, that explains why releases below `mended` break clauses in these ways
    (`G3 other-answer`)."""

    issue: str
    mended: str
    says: str
    ways: tuple[str, ...]


KNOWN: Final = (
    Known(
        "KAFKA-10134", "2.7", "while a group waits for its assignments, a heartbeat gets REBALANCE_IN_PROGRESS",
        ("G3 other-answer", "G3 rebalance-without-cause", "G5 refused", "G7 early", "G6 no-member-rejoined"),
    ),
    Known(
        "KAFKA-12890", "2.8.1", "a missing SyncGroup is waited for without a bound",
        ("G5 waits-for-no-leader", "G5 waits-for-missing-sync"),
    ),
    Known("KAFKA-9150", "2.4", "DescribeGroups returns the assignment as metadata", ("G13 other-answer",)),
    Known(
        "KAFKA-10284", "2.7", "a static member that comes back with other protocols changes nothing",
        ("G11 other-protocol",),
    ),
    Known("KIP-460", "2.4", "an election that is not needed gets no error", ("E1 other-error",)),
    Known(
        "KIP-541", "2.5", "a Fetch with min_bytes above max_bytes waits for max_wait",
        ("F7 waits-though-ready", "F3 not-woken"),
    ),
    Known(
        "KAFKA-8487", "2.4", "while a group waits for its assignments, any OffsetCommit gets REBALANCE_IN_PROGRESS",
        ("G9 refused-as-rebalancing",),
    ),
    Known(
        "KAFKA-8571", "2.4", "requests that wait for a deleted partition wait for their time-out",
        ("F8 waits-for-deleted", "F8 append-waits-for-deleted"),
    ),
    Known(
        "KAFKA-7190", "2.4",
        "if the records of an open transaction are deleted, the transaction ends, and its producer becomes unknown",
        ("R1 early", "R1 open-transaction-shown", "R4 last-stable-offset", "R4 listed", "F10 high-watermark",
         "M5 unknown-producer", "M1 refused", "M1 offsets-do-not-grow", "M7 sent-again", "L1 other-offset"),
    ),
    Known(
        "KAFKA-6796", "2.0", "AddPartitionsToTxn adds a partition that its topic does not have",
        ("X4 unknown-partition-other-error",),
    ),
    Known(
        "KAFKA-19899", "4.1.2", "a member that gives up its regular expression keeps its partitions",
        ("G14 not-assigned-in-time",),
    ),
    Known(
        "KAFKA-19233", "4.2", "a member of KIP-848 that was fenced cannot join again with epoch 0",
        ("G15 removed-too-early",),
    ),
    Known("KAFKA-14351", "3.5", "with KRaft, a quota of partitions has no effect", ("Q1 not-throttled",)),
    Known(
        "(mended in 4.0.1)", "4.0.1",
        "each partition of the offsets topic describes all groups of a request (the PASS runs of 4.0.0 did not ask)",
        ("X4 partition-missing", "G13 other-answer"),
    ),
)  # fmt: skip


def explained(version: str, way: str) -> str:
    """The issue that explains why this release breaks a clause in this way; empty where none does."""
    numbers = Release(version).numbers
    found = (one.issue for one in KNOWN if way in one.ways and numbers < Release(one.mended).numbers)
    return next(found, "")


def played(version: str, setup: str, seed: int, folder: Path) -> dict[str, object]:
    """Drive one release; what is to be said of it."""
    how = SETUPS[setup]
    trace = folder / f"{_file(version, setup, seed)}.jsonl"
    with started(Release(version), how.nodes, how.settings) as nodes:
        if how.quota_bytes is not None:
            asyncio.run(_give_quota(nodes[0], how.quota_bytes))
        command = [
            sys.executable, "-m", "purgatorio_pipeline", "wire", nodes[0].address, "--seed", str(seed), "--json",
            "--name", f"kafka-{version}", "--trace", str(trace), *_second(nodes),
        ]  # fmt: skip
        begun = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
        seconds = time.monotonic() - begun
    try:
        (run,) = json.loads(done.stdout)["runs"]
    except ValueError:
        run = {"verdict": f"exit {done.returncode}", "clauses": {}, "events": 0}
        print(done.stderr[-1500:], file=sys.stderr)
    clauses = {
        name: {"verdict": one["verdict"], "reason": one.get("reason", ""), "causes": [*one.get("causes", {})]}
        for name, one in run["clauses"].items()
    }
    return {
        "version": version, "setup": setup, "seed": seed, "seconds": round(seconds), "verdict": run["verdict"],
        "events": run["events"], "clauses": clauses, "load": round(os.getloadavg()[1]),
        "made": time.strftime("%Y-%m-%d %H:%M"),
    }  # fmt: skip


async def _give_quota(node: Node, bytes_per_s: int) -> None:
    """To every client."""
    conn = await connect(Address("127.0.0.1", node.port), "quota", "", WireRecorder())
    got = await conn.send("alter_client_quotas", 0, quota_of((("client-id", None),), bytes_per_s)).within(60)
    assert not codes(first_of(got.body, "entries")), got.body
    conn.close()


def _second(nodes: Sequence[Node]) -> list[str]:
    if len(nodes) == 1:
        return []
    return ["--second", nodes[1].address, "--second-pid", str(nodes[1].pid)]


def _file(version: str, setup: str, seed: int) -> str:
    return f"{version}-{re.sub('[^a-z0-9]+', '-', setup.lower())}-{seed}"


def _named(found: Mapping[str, object], verdict: str) -> Mapping[str, list[str]]:
    """The clauses of a run with this verdict, each with its causes."""
    clauses = found["clauses"]
    assert isinstance(clauses, dict)
    return {name: one["causes"] for name, one in clauses.items() if one["verdict"] == verdict}


def _cell(runs: Sequence[Mapping[str, object]]) -> str:
    """The verdicts of the runs of one release and setup, such as `PASS 2, UNKNOWN 1`."""
    counts = Counter(str(one["verdict"]) for one in runs)
    return ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())) or "-"


def _releases(results: Sequence[Mapping[str, object]]) -> str:
    """A row for each release, a column for each setup."""
    runs: dict[tuple[str, str], list[Mapping[str, object]]] = defaultdict(list)
    for one in results:
        runs[str(one["version"]), str(one["setup"])].append(one)
    versions = sorted({version for version, _ in runs}, key=lambda one: Release(one).numbers)
    rows = [(version, *(_cell(runs[version, setup]) for setup in SETUPS)) for version in versions]
    return markdown_text.table(("Kafka", *SETUPS), rows)


def _explanations(results: Sequence[Mapping[str, object]]) -> str:
    """A row for each issue: what it says, and the clauses that its releases broke. The unexplained come first."""
    broken: dict[str, set[str]] = defaultdict(set)
    versions: dict[str, set[str]] = defaultdict(set)
    for one in results:
        for name, causes in _named(one, "VIOLATED").items():
            for cause in causes:
                issue = explained(str(one["version"]), f"{name} {cause}")
                broken[issue].add(f"{name} {cause}")
                versions[issue].add(str(one["version"]))
    says = {one.issue: one.says for one in KNOWN} | {"": "**not explained**"}
    rows = [
        (issue or "-", says[issue], ", ".join(sorted(versions[issue])), ", ".join(sorted(broken[issue])))
        for issue in sorted(broken)
    ]
    return markdown_text.table(("issue", "the bug", "VIOLATED", "clauses and causes"), rows)


def _undecided(results: Sequence[Mapping[str, object]]) -> str:
    """One line for each run with an UNKNOWN clause and without a violation."""
    lines = [
        f"- {one['version']}, {one['setup']}, seed {one['seed']}, load {one['load']}: "
        f"{', '.join(_named(one, 'UNKNOWN'))}"
        for one in results
        if one["verdict"] == "UNKNOWN"
    ]
    return "\n".join(lines) or "None."


def page(results: Sequence[Mapping[str, object]]) -> str:
    """The page of these runs."""
    seconds = [int(str(one["seconds"])) for one in results]
    loads = [int(str(one["load"])) for one in results]
    return _PAGE.format(
        releases=_releases(results), explanations=_explanations(results), undecided=_undecided(results),
        runs=len(results), days=" and ".join(sorted({str(one.get("made", "?"))[:10] for one in results})),
        fastest=min(seconds), slowest=max(seconds), idle=min(loads), busy=max(loads),
    )  # fmt: skip


_PAGE: Final = """\
# Released Kafka brokers, judged over the wire

`purgatorio wire` with its default plan, against brokers as Apache Kafka released them. Maven resolves a release. The
broker runs on the same machine, with a heap of 512 MB: from 3.3 on with KRaft, older ones with ZooKeeper. A cluster of
two nodes has a controller of its own, and the second node is stopped for a while. The machine has two cores.

{runs} runs were made on {days}. Each run took {fastest} to {slowest} s, at a load of {idle} to {busy}. The runs of one
cell have different seeds. A cell says how many runs had which verdict:

{releases}
A VIOLATED release is a false alarm until a public issue or a later mend explains it. These explain the VIOLATED runs:

{explanations}
UNKNOWN, after late responses that did not come again (S2 fits KAFKA-20425: a waiting ShareFetch may not be woken):

{undecided}

Other people changed a broker of Kafka 4.2.0, in sixteen sets. Nobody read the changes before their first run, with the
default command and seed 1. `VIOLATED` counts first runs that were VIOLATED by a clause of the change:

| set | changes | run | VIOLATED | load |
| ---: | ---: | ---: | ---: | --- |
| 1 to 4 | 63 | 58 | 39 | 5 to 19 |
| 5 | 26 | 26 | 22 | 1 to 23 |
| 6 to 10 | 68 | 66 | 49 | 1 to 27 |
| 11 to 15 | 63 | 62 | 40 | 4 to 27 |
| 16 | 20 | 17 | 15 | 6 to 18 |

These were not VIOLATED at their first run. After a change of scenes and clauses, all but those with a star were
VIOLATED, in the sets 4 to 10 by the changed scenes alone:

- 1 to 5: twelve changes of KIP-848 and share groups (*a client cannot see one: the time-out is cancelled before), four
  of transactions and producers (*one not run again), and seven others (*ListGroups and quotas not run again).
- 6: aborted batches in a share group, clients that never join (UNKNOWN at load 17, VIOLATED at load 8), too few in-sync
  replicas (*one node always has enough), and four others.
- 7 to 12: a default quota (*needs a broker that has one), pages of DescribeTopicPartitions, and 20 others.
- 13 to 16: an unbalanced assignment, AlterConfigs, tasks with two owners in a streams group, and eleven others, two of
  them (16) because of the load: added partitions without a member, and an acquisition lock that never ends.

These were no violations, and the clauses were corrected: S6 and S7 of three runs of the fifth set (a renewed lock had
the shorter duration that was set meanwhile), M1 of 4.4.0 with two nodes (a replica that had been stopped came late to a
new topic), Q1 of 2.8.2 (with ZooKeeper, a CreateTopics with validate_only counts for no quota), and F1, F9 and M6 of
2.3.1 with two nodes (before 2.5, a replica leaves the in-sync set after 10 s).

Made, and played again, by:

```console
$ python -m docs.makers.kafka_releases_wire docs/measured/kafka-releases-wire.md --results DIR 3.9.0 4.4.0
```

One release alone, to look at: `python -m docs.makers.kafka_release 3.9.0` prints its address, for `purgatorio wire`.
"""


def main() -> None:
    """Play what is asked for and write the page."""
    parser = argparse.ArgumentParser(prog="python -m docs.makers.kafka_releases_wire", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("versions", nargs="*", help=f"such as {' '.join(RELEASES)}")
    parser.add_argument("--results", type=Path, required=True, help="folder of what the runs said")
    parser.add_argument(
        "--setup", action="append", choices=SETUPS, help="one of them; all where none is named"
    )
    parser.add_argument("--seeds", type=int, default=1, help="seeds 1 to N")
    parser.add_argument("--again", action="store_true", help="play what is there already")
    asked = parser.parse_intermixed_args()
    stop_on_sigterm()
    asked.results.mkdir(parents=True, exist_ok=True)
    for version in asked.versions:
        for setup in asked.setup or SETUPS:
            for seed in range(1, asked.seeds + 1):
                kept = asked.results / f"{_file(version, setup, seed)}.json"
                if kept.exists() and not asked.again:
                    continue
                try:
                    found = played(version, setup, seed, asked.results)
                except Missing as why:
                    print(f"{version}, {setup}: SKIPPED: {why}", file=sys.stderr)
                    continue
                kept.write_text(json.dumps(found))
                print(
                    f"{version}, {setup}, seed {seed}: {found['verdict']} in {found['seconds']} s", flush=True
                )
    results = [json.loads(one.read_text()) for one in sorted(asked.results.glob("*.json"))]
    asked.page.parent.mkdir(parents=True, exist_ok=True)
    asked.page.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
