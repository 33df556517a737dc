"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from purgatorio_pipeline.cli import COMMANDS
from purgatorio_spec.clause.page import page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")
COMMAND = re.compile(r"^(?:\$ )?purgatorio ([a-z]+)", re.MULTILINE)


def test_the_clause_page_is_the_registry() -> None:
    """One text a clause: the page is made from the code."""
    assert (ROOT / "docs" / "clauses.md").read_text() == page()


def test_links_lead_somewhere() -> None:
    """A page that links to nothing was not read by its writer."""
    broken = [
        f"{p.relative_to(ROOT)}: {found[1]}"
        for p in PAGES
        for found in LINK.finditer(p.read_text())
        if not (p.parent / found[1]).exists()
    ]
    assert not broken


def test_the_commands_of_the_readme_exist() -> None:
    """What the README tells a stranger to type is a command."""
    named = set(COMMAND.findall((ROOT / "README.md").read_text()))
    assert named
    assert named <= set(COMMANDS)
