"""The page of conformance: every test of Kafka's list has a row, every row a test, and every test exists. The page of
use says what the code does."""

import asyncio
import builtins
import importlib.util
import re
import signal
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

import purgatorio
import purgatorio.timer
from docs.makers.worked_example import events_of
from docs.makers.worked_example import page as worked_example
from program_text import ran
from purgatorio import LOCKED, PENDING_FLAG
from purgatorio.delayed.dialect import Dialect

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(?P<kafka>\w+\..+?)` \| (?P<shown>.*) \|$", re.MULTILINE)
NAMED = re.compile(r"`(test_\w+\.py|\w+\.txt)::((?:\w+::)?\w+)`")
LISTED = set((ROOT / "tests" / "reference" / "kafka_tests.txt").read_text().splitlines())
"""What Kafka's own tests of these parts are called. A test of many cases is listed by case."""


def rows(page: str) -> dict[str, list[tuple[str, str]]]:
    """By test of Kafka: the files and tests that its row names."""
    return {row["kafka"]: NAMED.findall(row["shown"]) for row in ROW.finditer(page)}


def forgotten(page: str) -> list[str]:
    return sorted(LISTED - rows(page).keys())


def unlisted(page: str) -> list[str]:
    """A row for something that is not in the list."""
    return sorted(rows(page).keys() - LISTED)


def unshown(page: str) -> list[str]:
    return [kafka for kafka, named in rows(page).items() if not named]


def missing(page: str) -> list[str]:
    """Tests that the page names and that are not there."""
    gone = []
    for file, name in NAMED.findall(page):
        found = [*(ROOT / "tests").glob(f"*/{file}"), *(ROOT / "tests").glob(f"*/days/{file}")]
        source = found[0].read_text() if found else ""
        if not all(
            re.search(rf"^\s*((def|class) )?{part}\b", source, re.MULTILINE) for part in name.split("::")
        ):
            gone.append(f"{file}::{name}")
    return gone


def page() -> str:
    return (ROOT / "docs" / "measured" / "conformance.md").read_text()


def test_no_row_is_forgotten() -> None:
    """A row without a test would be a claim without a proof, and a test without a row was forgotten."""
    assert len(LISTED) >= 110
    assert (forgotten(page()), unlisted(page()), unshown(page()), missing(page())) == ([], [], [], [])


def test_what_is_wrong_with_a_page_is_found() -> None:
    """The negative controls: a removed row, one that is not listed, one that names nothing or something unknown."""
    for row in ROW.finditer(page()):
        assert forgotten(page().replace(row[0], "")) == [row["kafka"]]
    assert unlisted("| `TimerTest.testNothing` | `test_timers.py::test_the_mock_timer` |") == [
        "TimerTest.testNothing"
    ]
    assert unshown("| `TimerTest.testAlreadyExpiredTask` | by hand |") == ["TimerTest.testAlreadyExpiredTask"]
    assert missing("| `X.y` | `test_timers.py::test_that_is_not_there` |")


PAGE = ROOT / "docs" / "using.md"


@pytest.mark.parametrize("example", ["timeouts.py", "asyncio_timeouts.py"])
def test_the_output_on_the_page_is_the_example_s(example: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / example)]
    printed = ran(command, check=True, timeout=60).stdout
    assert f"```text\n{printed}```" in PAGE.read_text()


def test_every_class_on_the_page_is_there() -> None:
    named = set(re.findall(r"`([A-Z][A-Za-z]+[a-z][A-Za-z]*)[`(]", PAGE.read_text()))
    assert len(named) > 8
    assert not [
        name
        for name in named
        if not any(hasattr(place, name) for place in (purgatorio, purgatorio.timer, builtins))
    ]


def test_the_server_of_the_page_answers_times_out_and_stops() -> None:
    """An event, a time-out and the end of the server answer what waits; the gauges count it meanwhile."""
    spec = importlib.util.spec_from_file_location("waiting_server", ROOT / "examples" / "waiting_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    async def main() -> None:
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        server = asyncio.create_task(module.serve(0, port.set_result))

        async def get(path: str) -> tuple[str, str]:
            reader, writer = await asyncio.open_connection("127.0.0.1", await port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
            head, _, text = (await reader.read()).decode().partition("\r\n\r\n")
            writer.close()
            return head.split(" ")[1], text

        async def waiting(count: int) -> None:
            while (
                f'num_delayed_operations{{delayed_operation="requests"}} {count}\n'
                not in (await get("/metrics"))[1]
            ):
                await asyncio.sleep(0)

        waits = [asyncio.create_task(get("/wait/colour/60000")) for _ in range(3)]
        await waiting(3)
        assert await get("/put/colour/red") == ("200", "3 answered\n")
        assert [await wait for wait in waits] == [("200", "red")] * 3
        assert await get("/wait/colour/60000") == ("200", "red")
        assert await get("/wait/size/1") == ("504", "")
        assert "requests_timed_out_total 1\n" in (await get("/metrics"))[1]
        assert (await get("/nonsense"))[0] == (await get("/wait/size/soon"))[0] == "404"
        _, leaving = await asyncio.open_connection("127.0.0.1", await port)
        leaving.write(b"GET /wait/size/60000 HTTP/1.1\r\n\r\n")
        await waiting(1)
        leaving.close()
        await waiting(0)
        last = asyncio.create_task(get("/wait/size/60000"))
        await waiting(1)
        signal.raise_signal(signal.SIGTERM)
        assert await last == ("504", "")
        with pytest.raises(asyncio.CancelledError):
            await server

    asyncio.run(asyncio.wait_for(main(), 60))


def page_code(marker: str) -> str:
    found = re.search(rf"<!-- {marker} -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def registry() -> Iterator[purgatorio.GaugeRegistry]:
    made = purgatorio.GaugeRegistry()

    class Never(purgatorio.DelayedOperation):
        def try_complete(self) -> bool:
            return False

        def on_complete(self) -> None:
            pass

    with purgatorio.Purgatory[Never]("requests", registry=made) as purgatory:
        purgatory.try_complete_else_watch(Never(60_000), ["a", "b"])
        yield made


def test_the_prometheus_collector_of_the_page(registry: purgatorio.GaugeRegistry) -> None:
    prometheus = pytest.importorskip("prometheus_client")
    exec(page_code("prometheus"), {"registry": registry})
    text = prometheus.generate_latest().decode()
    assert 'purgatory_size{delayed_operation="requests"} 2.0\n' in text
    assert 'num_delayed_operations{delayed_operation="requests"} 1.0\n' in text


def test_the_observable_gauges_of_the_page(registry: purgatorio.GaugeRegistry) -> None:
    """OpenTelemetry reads the same two numbers."""
    metrics = pytest.importorskip("opentelemetry.sdk.metrics")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    meter = metrics.MeterProvider([reader]).get_meter("test")
    exec(page_code("opentelemetry"), {"registry": registry, "meter": meter})
    found = {
        metric.name: [point.value for point in metric.data.data_points]
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert found == {"purgatory.size": [2], "purgatory.delayed_operations": [1]}


def test_the_queue_of_the_page_serves_one_request_with_an_item() -> None:
    """The oldest first. The item of a client that leaves goes to the next request."""
    replies: list[str | None] = []
    names = {**vars(purgatorio), "reply": replies.append}
    exec(page_code("queue"), names)
    items, time = deque[str](), purgatorio.VirtualTime()
    with purgatorio.Purgatory[purgatorio.DelayedOperation]("queue", time.timer, reaper=False) as purgatory:
        first, second, third = (names["Get"](10, items) for _ in range(3))
        for get in (first, second, third):
            assert not purgatory.try_complete_else_watch(get, ["k"])
        items.append("item")
        assert purgatory.check_and_complete("k") == 1
        assert (first.force_complete(), replies) == (False, ["item"])
        assert second.force_complete()
        items.appendleft(first.item)
        assert purgatory.check_and_complete("k") == 1
        assert (replies, third.item) == (["item", None, "item"], "item")
        purgatory.try_complete_else_watch(names["Get"](10, items), ["k"])
        time.advance(10)
    assert replies[3:] == [None]


WORKED_EXAMPLE = ROOT / "docs" / "measured" / "worked-example.md"


def test_the_worked_example_is_the_output_of_a_run() -> None:
    """Three runs print the very page, so the events in it are real and not a matter of luck."""
    written = WORKED_EXAMPLE.read_text(encoding="utf-8")
    for _ in range(3):
        assert worked_example() == written, (
            "print it again: python -m docs.makers.worked_example > docs/measured/worked-example.md"
        )


@pytest.mark.parametrize(("dialect", "completer"), [(PENDING_FLAG, "follower-1"), (LOCKED, "follower-2")])
def test_the_completing_thread_is_the_difference(dialect: Dialect, completer: str) -> None:
    """The statement of the page: the thread that completes, and the result of the second check."""
    meeting, _ = events_of(dialect)
    (completion,) = (event for event in meeting if event.f == "on_complete" and event.ph == "call")
    (answer,) = (
        event.out
        for event in meeting
        if event.th == "follower-2" and event.f == "check_and_complete" and event.ph == "ret"
    )
    assert completion.th == completer
    assert answer == (1 if dialect is LOCKED else 0)
