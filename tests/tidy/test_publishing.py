"""What others build from this repository: the steps of the workflows are run here, and a release is looked into."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from program_text import ran

ROOT = Path(__file__).resolve().parents[2]
TRACES = ROOT / "examples" / "traces"
YAML = [
    ROOT / "action.yml",
    *ROOT.glob(".*.yaml"),
    *ROOT.glob(".github/**/*.yml"),
    *ROOT.glob("examples/ci/*.yml"),
]


def loaded(path: Path) -> dict[str, object]:
    found = yaml.safe_load(path.read_text())
    assert isinstance(found, dict)
    return cast("dict[str, object]", found)


def step(steps: object, name: str) -> str:
    assert isinstance(steps, list)
    found = [one["run"] for one in steps if one.get("name") == name]
    assert len(found) == 1, f"no single step {name!r}"
    return cast("str", found[0])


def run(script: str, folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A step as a runner of workflows runs it: bash, stopping at the first command that fails."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return ran(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, **env},
    )


def test_all_of_it_is_yaml() -> None:
    """A workflow that cannot be parsed never runs, and reports nothing."""
    assert len(YAML) >= 7
    for path in YAML:
        assert yaml.safe_load(path.read_text()) is not None, path


def test_what_builds_a_release_is_pinned() -> None:
    """An action by its commit, a tool by its version: a tag can be moved, and a new version can be anybody's."""
    uses = [
        line.split("uses:")[1].split("#")[0].strip()
        for path in (ROOT / ".github" / "workflows").iterdir()
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert len(uses) >= 10
    assert not [use for use in uses if re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", use) is None]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    tools = [*project["build-system"]["requires"], *hook["dependencies"]]
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    tools += re.findall(r"pip install (.*)", release)[0].split()
    assert len(tools) == 5
    assert not [tool for tool in tools if "==" not in tool]


def test_development_can_be_had_as_it_was_tested() -> None:
    """`constraints-dev.txt` pins what the extra `dev` brings, within the bounds."""
    lines = (ROOT / "constraints-dev.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names, wanted = ["dev"], list[Requirement]()
    for name in names:
        for one in map(Requirement, extras[name]):
            if one.name == "purgatorio":
                names += sorted(one.extras - {*names})
            else:
                wanted.append(one)
    assert len(wanted) > 20
    versions = {canonicalize_name(name): version for name, version in pinned.items()}
    assert not [
        str(one) for one in wanted if not one.specifier.contains(versions[canonicalize_name(one.name)])
    ]


def test_a_trace_is_never_an_option_of_the_action(tmp_path: Path) -> None:
    """A file whose name begins with two dashes is a file."""
    runs = cast("dict[str, object]", loaded(ROOT / "action.yml")["runs"])
    env = {
        "TRACES": "--allow-idle",
        "OPTIONS": "--engine process",
        "SARIF": "found.sarif",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    said = run(step(runs["steps"], "Check"), tmp_path, env)
    assert said.returncode == 2
    assert "no trace at '--allow-idle'" in said.stderr


@pytest.mark.parametrize(
    ("trace", "status"), [("kafka-clean-1k.jsonl", 0), ("kafka-buggy-no-recheck.parquet", 1)]
)
def test_the_action_checks_and_sums_up(tmp_path: Path, trace: str, status: int) -> None:
    """Its steps on a clean run and on a broken one: the status, the summary and the SARIF that is uploaded."""
    runs = cast("dict[str, object]", loaded(ROOT / "action.yml")["runs"])
    summary = tmp_path / "step_summary.md"
    summary.write_text("before\n")
    env = {
        "TRACES": str(TRACES / trace),
        "OPTIONS": "--engine process",
        "SARIF": "found.sarif",
        "GITHUB_STEP_SUMMARY": str(summary),
    }
    said = run(step(runs["steps"], "Check"), tmp_path, env)
    assert said.returncode == status, said.stderr
    assert summary.read_text().startswith("before\n")
    assert ("VIOLATED" in summary.read_text()) == (status == 1)
    results = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]["results"]
    assert bool(results) == (status == 1)


def test_the_example_workflow_checks_and_sums_up(tmp_path: Path) -> None:
    """The plain steps that users copy, as they stand."""
    jobs = cast("dict[str, dict[str, object]]", loaded(ROOT / "examples" / "ci" / "check-traces.yml")["jobs"])
    steps = jobs["check"]["steps"]
    (tmp_path / "traces").mkdir()
    shutil.copy(TRACES / "kafka-clean-1k.jsonl", tmp_path / "traces")
    summary = tmp_path / "step_summary.md"
    env = {"GITHUB_STEP_SUMMARY": str(summary)}
    checked = run(step(steps, "Check"), tmp_path, env)
    assert checked.returncode == 0, checked.stderr
    assert run(step(steps, "Summary"), tmp_path, env).returncode == 0
    assert "PASS" in summary.read_text()
    assert (tmp_path / "purgatorio.sarif").exists()


def hook() -> dict[str, object]:
    (found,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return cast("dict[str, object]", found)


def test_the_hook_installs_the_needs_of_a_check() -> None:
    """What `purgatorio[spec]` brings, by name: pre-commit installs the repository without its extras."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert hook()["additional_dependencies"] == [
        *extras["cli"], *(one for one in extras["spec"] if not one.startswith("purgatorio"))
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.xdist_group("release")
def test_the_hook_works_in_a_bare_environment(tmp_path: Path) -> None:
    """As pre-commit does it. Without the last dependency, the hook names it: the negative control."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    place = tmp_path / "env" / "bin"
    needed = cast("list[str]", hook()["additional_dependencies"])
    entry = str(place / cast("str", hook()["entry"]))
    install = [str(place / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    said = ""
    for packages, status in (([str(ROOT), *needed[:-1]], 2), (needed[-1:], 0)):
        subprocess.run([*install, *packages], check=True)
        done = ran([*entry.split(), str(TRACES / "kafka-clean-1k.jsonl")])
        assert done.returncode == status, done.stderr
        said = done.stdout
    assert "PASS" in said


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist and the wheel of a release, whose repository has a page."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    env = {**os.environ, "PROJECT_URL": "https://example.org/purgatorio"}
    said = ran(command, env=env)
    assert said.returncode == 0, said.stdout + said.stderr
    return folder


@pytest.mark.xdist_group("release")
def test_a_release_passes_the_index(built: Path) -> None:
    """What `twine check --strict` refuses, the index refuses."""
    files = [str(path) for path in built.iterdir()]
    assert len(files) == 2
    said = ran([sys.executable, "-m", "twine", "check", "--strict", *files])
    assert said.returncode == 0, said.stdout


@pytest.mark.xdist_group("release")
def test_a_wheel_brings_nothing_else_and_its_links_work(built: Path) -> None:
    """`pip install purgatorio` pulls no other package, and the README's links lead into the repository."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = archive.read(name).decode()
        assert any(member.endswith("/licenses/LICENSE") for member in archive.namelist())
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:")]
    assert required
    assert all("extra ==" in line for line in required)
    assert "](docs/" not in metadata
    assert "](https://example.org/purgatorio/blob/HEAD/docs/" in metadata
    assert wheel.stat().st_size < 2_000_000


@pytest.mark.xdist_group("release")
def test_the_source_has_no_recorded_traces(built: Path) -> None:
    """They are 13 MB. They are in the repository."""
    (source,) = built.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    assert any(name.endswith("/LICENSE") for name in names)
    assert not [name for name in names if "/examples/traces/" in name]
