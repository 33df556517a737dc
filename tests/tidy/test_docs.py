"""The documents say what the code does."""

import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest

from docs.makers import clauses
from program_text import ran

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


@pytest.mark.parametrize("path", clauses.PAGES)
def test_the_clause_pages_are_the_registry(path: str, request: pytest.FixtureRequest) -> None:
    """One text a clause: the pages are made from the code. Refresh with --refresh-golden."""
    written, made = ROOT / "docs" / path, clauses.PAGES[path]()
    if request.config.getoption("--refresh-golden"):
        written.write_text(made)
    assert written.read_text() == made


def test_links_lead_somewhere() -> None:
    """A page that links to nothing was not read by its writer."""
    broken = [
        f"{p.relative_to(ROOT)}: {found[1]}"
        for p in PAGES
        for found in LINK.finditer(p.read_text())
        if not (p.parent / found[1]).exists()
    ]
    assert not broken


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_begins_with_its_purpose(path: Path) -> None:
    """And it links the glossary, whose terms it uses."""
    text = path.read_text()
    assert re.search(r"^After this page you (can|know) ", text, re.MULTILINE)
    assert path.name == "glossary.md" or "](glossary.md)" in text


def test_the_readme_and_the_glossary_stay_short() -> None:
    """A stranger reads them to the end."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    terms = re.findall(r"^\| (.+?) \| ", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert terms[0] == "term"
    assert len(terms) - 2 <= 25


def listed(index: str) -> list[str]:
    """The pages of an index: one list item a page, with a line about it."""
    return re.findall(r"^- \[.+?\]\((.+?)\): \S.+\.$", index, re.MULTILINE)


def test_the_index_has_every_page_once() -> None:
    """The site's order is this list, so a page that is not in it cannot be found."""
    pages = listed((ROOT / "docs" / "index.md").read_text())
    docs = ROOT / "docs"
    there = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md") if path != docs / "index.md"]
    assert sorted(page for page in pages if not page.startswith("../")) == sorted(there)
    assert len(set(pages)) == len(pages)


def test_a_page_without_a_line_about_it_is_not_listed() -> None:
    """The twin: an item that says nothing does not count."""
    assert listed("- [A](a.md): what it is.\n- [B](b.md)\n") == ["a.md"]


def test_the_site_builds(tmp_path: Path) -> None:
    """`strict`: a link between pages, or an anchor's page, that leads nowhere is an error."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path / "site")]
    said = ran(command, cwd=ROOT)
    assert said.returncode == 0, said.stderr
    page = (tmp_path / "site" / "index.html").read_text()
    assert "using/" in page
    assert (tmp_path / "site" / "search" / "search_index.json").stat().st_size > 100_000


MODULES = (
    "purgatorio.arithmetic",
    "purgatorio.timer.intrusive.wheel",
    "purgatorio.timer.wheel",
    "purgatorio_spec.oracle.timer_set",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_are_right(name: str) -> None:
    """Each of these modules has some."""
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert not failed
