"""The import table of ARCHITECTURE.md, held by import-linter."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "purgatorio": "reference",
    "purgatorio_broker": "reference",
    "purgatorio_spec": "spec",
    "purgatorio_stress": "stress",
    "purgatorio_pipeline": "pipeline",
}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with this project's contracts over the packages below `folder`."""
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(config_filename=sys.argv[1], no_cache=True))"
    )
    roots = [str(folder / root) for root in PACKAGES.values()]
    command = [sys.executable, "-c", code, str(ROOT / "pyproject.toml"), *roots]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_import_table_holds() -> None:
    """The spec never imports the reference, the reference nothing at all, the pipeline not the reference."""
    found = lint(ROOT)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("spec/purgatorio_spec/verdict.py", "import purgatorio"),
        ("reference/purgatorio/__init__.py", "import rich"),
        ("reference/purgatorio/__init__.py", "import purgatorio_spec"),
        ("reference/purgatorio/__init__.py", "import purgatorio_broker"),
        ("reference/purgatorio_broker/__init__.py", "import rich"),
        ("reference/purgatorio/delayed/dialect.py", "import purgatorio.delayed.operation"),
        ("reference/purgatorio/clock.py", "import purgatorio.reaper"),
        ("stress/purgatorio_stress/__init__.py", "import purgatorio_pipeline"),
        ("stress/purgatorio_stress/scenario/world.py", "import purgatorio_stress.harness.round"),
        ("stress/purgatorio_stress/explorer/task.py", "import purgatorio_stress.explorer.run"),
        ("pipeline/purgatorio_pipeline/finding.py", "import purgatorio_pipeline.gather"),
        ("pipeline/purgatorio_pipeline/cli.py", "import purgatorio"),
    ],
)
def test_a_forbidden_import_is_found(module: str, line: str, tmp_path: Path) -> None:
    """The twin of the table: each rule, broken in a copy, is reported."""
    for package, root in PACKAGES.items():
        ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(ROOT / root / package, tmp_path / root / package, ignore=ignore)
    broken = tmp_path / module
    broken.write_text(broken.read_text() + f"\n{line}\n")
    found = lint(tmp_path)
    assert found.returncode != 0
    assert "BROKEN" in found.stdout
