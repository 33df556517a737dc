"""The TLA+ files stay in step with the Python models: state counts, labels, constants, and what they state.

TLC is run where `PURGATORIO_TLC` has its class path: the originals pass, and each bug put into a copy is found. Without
it, a property that was weakened is found by its text: a change of one is a decision, and is made here too.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

from golden import Golden
from program_text import ran
from purgatorio_spec.campaign import claims_by_id
from purgatorio_spec.model.checker import check
from purgatorio_spec.model.claims import wheel_world
from purgatorio_spec.model.completion import Cast, Setup, completion
from purgatorio_spec.model.variant import DIALECTS, Variant
from purgatorio_spec.model.wheel import WheelCase
from purgatorio_spec.model.wheel_refinement import refinement

TLA = Path(__file__).parents[2] / "spec" / "tla"
COMPLETION, WHEEL = (TLA / "Completion.tla").read_text(), (TLA / "Wheel.tla").read_text()


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: str(dialect.name))
def test_completion_counts(dialect: Variant, threads: int) -> None:
    """The number that TLC must report for these constants."""
    written = re.search(rf"states: {dialect.name} {threads} = (\d+)", COMPLETION)
    assert written is not None
    assert check(completion(dialect, Setup(threads))).states == int(written[1])


@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_wheel_counts(tasks: int) -> None:
    written = re.search(rf"states: tick 1 size 2 tasks {tasks} = (\d+)", WHEEL)
    assert written is not None
    assert check(refinement(wheel_world(1, 2, tasks, 7))).states == int(written[1])


def test_labels_are_those_of_the_python_programs() -> None:
    """A step that one twin has and the other lacks would change the count only by luck."""
    written = set(re.findall(r'pc\[t\] = "([a-z-]+)"', COMPLETION)) | {"end"}
    python = {name for dialect in DIALECTS for name in Cast(dialect, Setup(2)).events[0].names}
    assert written == python


def test_the_constants_of_the_wheel_are_those_of_the_claim() -> None:
    """The configuration file names the bound of W1."""
    text = (TLA / "Wheel.cfg").read_text()
    numbers = {name: int(value) for name, value in re.findall(r"^  (\w+) = (\d+)$", text, re.MULTILINE)}
    delays = re.search(r"Delays = \{([\d, ]+)\}", text)
    assert delays is not None
    world = WheelCase(
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


PARTS = {
    "Completion": ("Over", "Ready"),
    "Wheel": ("Floor(time, tick)", "Deadlines", "Sum(bag, set)", "Due(d)", "Pending(bag, d)", "Fair"),
}
"""The parts of the statements of each module. The statements are those of its configuration."""


def stated(module: str, name: str) -> str:
    """The definition of `name`, on one line."""
    found = re.search(
        rf"^{re.escape(name)} ==(.*?)(?=^\S[^\n]*==|^\(\*|^RECURSIVE|^====)", module, re.MULTILINE | re.DOTALL
    )
    assert found is not None, name
    return " ".join(re.sub(r"\\\*.*", "", found[1]).split())


def names(module: str) -> list[str]:
    config = (TLA / f"{module}.cfg").read_text()
    asked = " ".join(re.findall(r"^(?:INVARIANTS|PROPERTIES) (.*)$", config, re.MULTILINE)).split()
    return sorted({*asked, *PARTS[module]})


def test_no_property_was_weakened(golden: Golden) -> None:
    """`NotEarly == TRUE` holds of everything. Spaces and comments aside."""
    texts = {module: (TLA / f"{module}.tla").read_text() for module in PARTS}
    lines = [f"{name} == {stated(texts[module], name)}\n" for module in PARTS for name in names(module)]
    golden("spec/golden/tla.txt", "".join(lines))


@pytest.mark.parametrize("module", PARTS)
def test_each_weakened_property_is_found(module: str) -> None:
    text = (TLA / f"{module}.tla").read_text()
    for name in names(module):
        weak = re.sub(rf"^{re.escape(name)} ==.*$", f"{name} == TRUE", text, count=1, flags=re.MULTILINE)
        assert stated(weak, name) != stated(text, name), name


BUGS = {
    "fire-on-flush": ("Wheel", "IF Expired(cs, task[1])\n", "IF TRUE\n"),
    "lost-in-an-add": ("Wheel", "tasks' = Plus(tasks, task, 1)", "tasks' = tasks"),
    "lost-in-a-flush": ("Wheel", "Plus(bag, new, counts[task]), counts, Offer(q, new)", "bag, counts, q"),
    "wrong-deadline": ("Wheel", "deadline == now + delay IN", "deadline == now + delay + 1 IN"),
    "early-at-the-add": ("Wheel", "deadline < cs[1] + Tick", "deadline < cs[1] + 2 * Tick"),
    "a-drain-never-ends": ("Wheel", "/\\ draining' = FALSE /\\", "/\\ draining' = TRUE /\\"),
    "no-mutual-exclusion": ("Completion-locked", 'pc[t] = "lock" /\\ ~lock', 'pc[t] = "lock"'),
    "not-ready": ("Completion-locked", "IF Ready THEN", "IF TRUE THEN"),
}
"""What TLC passed before these properties stood there: where, what, and what instead."""


@pytest.mark.skipif(
    "PURGATORIO_TLC" not in os.environ, reason="TLC is run where PURGATORIO_TLC is its class path"
)
@pytest.mark.parametrize("bug", [None, *BUGS])
def test_tlc(bug: str | None, tmp_path: Path) -> None:
    """The originals hold, with 2 threads and 2 tasks; each bug breaks one property."""
    for place in TLA.iterdir():
        shutil.copy(place, tmp_path)
    modules = ["Wheel", "Completion-locked", "Completion-pending-flag"] if bug is None else [BUGS[bug][0]]
    for module in modules:
        name, _, dialect = module.partition("-")
        if bug is not None:
            text = (tmp_path / f"{name}.tla").read_text()
            assert BUGS[bug][1] in text
            (tmp_path / f"{name}.tla").write_text(text.replace(*BUGS[bug][1:]))
        config = (
            (tmp_path / f"{name}.cfg").read_text().replace("Tasks = 4", "Tasks = 2").replace("N = 3", "N = 2")
        )
        (tmp_path / f"{name}.cfg").write_text(config.replace("pending-flag", dialect or "pending-flag"))
        command = [
            "java",
            "-cp",
            os.environ["PURGATORIO_TLC"],
            "tlc2.TLC",
            "-config",
            f"{name}.cfg",
            f"{name}.tla",
        ]
        done = ran(command, cwd=tmp_path, timeout=600)
        assert ("is violated" in done.stdout or "were violated" in done.stdout) == (bug is not None), (
            done.stdout
        )
        assert bug is not None or "No error has been found" in done.stdout, done.stdout
