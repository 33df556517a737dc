"""The import table of ARCHITECTURE.md, held by import-linter."""

import shutil
import subprocess
import sys
from pathlib import Path

from program_text import ran

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "purgatorio": "reference",
    "purgatorio_spec": "spec",
    "purgatorio_wire": "wire",
    "purgatorio_broker": "wire",
    "purgatorio_stress": "stress",
    "purgatorio_conformance": "conformance",
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
    return ran(command, cwd=folder)


def test_the_import_table_holds() -> None:
    """The spec never imports the reference, the reference nothing at all, the pipeline not the reference."""
    found = lint(ROOT)
    assert found.returncode == 0, found.stdout


FORBIDDEN = (
    ("spec/purgatorio_spec/verdict.py", "purgatorio", "- purgatorio_spec.verdict -> purgatorio (l."),
    ("reference/purgatorio/__init__.py", "rich", "- purgatorio -> rich (l."),
    ("reference/purgatorio/__init__.py", "purgatorio_spec", "- purgatorio -> purgatorio_spec (l."),
    ("reference/purgatorio/__init__.py", "purgatorio_broker", "- purgatorio -> purgatorio_broker (l."),
    ("wire/purgatorio_broker/__init__.py", "rich", "- purgatorio_broker -> rich (l."),
    ("wire/purgatorio_broker/network/sequences.py", "purgatorio_wire.trace.record",
     "- purgatorio_broker.network.sequences -> purgatorio_wire.trace.record ("),
    ("reference/purgatorio/delayed/dialect.py", "purgatorio.delayed.operation", "- .dialect -> .operation ("),
    ("wire/purgatorio_wire/judge.py", "purgatorio_broker", "- purgatorio_wire.judge -> purgatorio_broker (l."),
    ("conformance/purgatorio_conformance/cache_dir.py", "purgatorio_stress",
     "- purgatorio_conformance.cache_dir -> purgatorio_stress ("),
    ("stress/purgatorio_stress/exploring.py", "purgatorio_conformance",
     "- purgatorio_stress.exploring -> purgatorio_conformance ("),
    ("stress/purgatorio_stress/recorded.py", "purgatorio_broker",
     "- purgatorio_stress.recorded -> purgatorio_broker ("),
    ("spec/purgatorio_spec/profile.py", "purgatorio_wire", "- purgatorio_spec.profile -> purgatorio_wire ("),
    ("reference/purgatorio/clock.py", "purgatorio.reaper", "- .clock -> .reaper ("),
    ("stress/purgatorio_stress/__init__.py", "purgatorio_pipeline", "- purgatorio_stress -> purgatorio_pipeline ("),
    ("stress/purgatorio_stress/scenario/world.py", "purgatorio_stress.harness.round", "- .scenario -> .harness ("),
    ("stress/purgatorio_stress/explorer/task.py", "purgatorio_stress.explorer.run", "- .task -> .run ("),
    ("pipeline/purgatorio_pipeline/finding.py", "purgatorio_pipeline.gather", "- .finding -> .gather ("),
    ("pipeline/purgatorio_pipeline/cli.py", "purgatorio", "- purgatorio_pipeline.cli -> purgatorio (l."),
)  # fmt: skip
"""The file, the import, and the text of the linter."""


def test_forbidden_imports_are_found(tmp_path: Path) -> None:
    """The twin of the table: each rule, broken in a copy, is reported with the import that breaks it."""
    for package, root in PACKAGES.items():
        ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(ROOT / root / package, tmp_path / root / package, ignore=ignore)
    for module, imported, _ in FORBIDDEN:
        broken = tmp_path / module
        broken.write_text(broken.read_text() + f"\nimport {imported}\n")
    found = lint(tmp_path)
    assert found.returncode != 0
    said = " ".join(found.stdout.split())
    assert [told for _, _, told in FORBIDDEN if told not in said] == [], found.stdout
