"""The page about use says what the code does."""

from __future__ import annotations

import asyncio
import builtins
import importlib.util
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import purgatorio
import purgatorio.timer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "using.md"


@pytest.mark.parametrize("example", ["timeouts.py", "asyncio_timeouts.py"])
def test_the_output_on_the_page_is_the_example_s(example: str) -> None:
    """The page shows the output of the program."""
    command = [sys.executable, str(ROOT / "examples" / example)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert f"```text\n{printed}```" in PAGE.read_text()


def test_every_class_on_the_page_is_there() -> None:
    """By its name."""
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
    """It exports what `openmetrics` says."""
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
