"""The TLA+ files stay in step with the Python models: state counts, labels, constants. TLC is not run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from purgatorio_spec.model.campaign import claims_by_id
from purgatorio_spec.model.checker import check
from purgatorio_spec.model.claims import wheel_world
from purgatorio_spec.model.completion import Cast, Scene, completion
from purgatorio_spec.model.variant import DIALECTS, Variant
from purgatorio_spec.model.wheel import World
from purgatorio_spec.model.wheel_refinement import refinement

TLA = Path(__file__).parents[2] / "spec" / "tla"
COMPLETION, WHEEL = (TLA / "Completion.tla").read_text(), (TLA / "Wheel.tla").read_text()


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_completion_counts(dialect: Variant, threads: int) -> None:
    """The number that TLC must report for these constants."""
    written = re.search(rf"states: {dialect.name} {threads} = (\d+)", COMPLETION)
    assert written is not None
    assert check(completion(dialect, Scene(threads))).states == int(written[1])


@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_wheel_counts(tasks: int) -> None:
    """The same for the wheel of claim W1, without cancels."""
    written = re.search(rf"states: tick 1 size 2 tasks {tasks} = (\d+)", WHEEL)
    assert written is not None
    assert check(refinement(wheel_world(1, 2, tasks, 7))).states == int(written[1])


def test_labels_are_those_of_the_python_programs() -> None:
    """A step that one twin has and the other lacks would change the count only by luck."""
    written = set(re.findall(r'pc\[t\] = "([a-z-]+)"', COMPLETION)) | {"end"}
    python = {name for dialect in DIALECTS for name in Cast(dialect, Scene(2)).events[0].names}
    assert written == python


def test_the_constants_of_the_wheel_are_those_of_the_claim() -> None:
    """The configuration file names the bound of W1."""
    text = (TLA / "Wheel.cfg").read_text()
    numbers = {name: int(value) for name, value in re.findall(r"^  (\w+) = (\d+)$", text, re.MULTILINE)}
    delays = re.search(r"Delays = \{([\d, ]+)\}", text)
    assert delays is not None
    world = World(
        numbers["Tick"],
        numbers["Size"],
        numbers["Start"],
        tuple(int(delay) for delay in delays[1].split(",")),
        numbers["Tasks"],
        numbers["Ticks"],
        cancels=False,
    )
    assert world == wheel_world(1, 2, 4, 7)
    assert "W1" in claims_by_id()


def test_names_used_in_the_configurations_are_defined() -> None:
    """A property that a configuration names and the module lacks is TLC's first error."""
    for name, module in (("Completion", COMPLETION), ("Wheel", WHEEL)):
        config = (TLA / f"{name}.cfg").read_text()
        for used in re.findall(r"^(?:SPECIFICATION|INVARIANTS|PROPERTIES) (.*)$", config, re.MULTILINE):
            for word in used.split():
                assert re.search(rf"^{word} ==", module, re.MULTILINE), word
