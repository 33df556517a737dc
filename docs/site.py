"""What mkdocs does not know of this repository: pages that lie beside `docs/`, and an order that `docs/index.md` has.

A link out of `docs/` leads to a page of the site where there is one. Else it leads to the repository's own page, where
PROJECT_URL names it (as for a release), or becomes plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
BESIDE = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
ENTRY = re.compile(r"^- \[(.+?)\]\((.+?)\): ", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation is the index page's lists."""
    _, *parts = SECTION.split((ROOT / "docs" / "index.md").read_text())
    nav: list[object] = [{"Start": ["README.md", "index.md"]}]
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        nav.append({title: [{name: page.removeprefix("../")} for name, page in ENTRY.findall(text)]})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The README and its like become pages."""
    for name in BESIDE:
        # Under its own name the README would be the start page, which docs/index.md is.
        address = "readme.md" if name == "README.md" else name
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
        files.get_file_from_path(name).dest_uri = address.removesuffix(".md").lower() + "/index.html"  # type: ignore[union-attr]  # it was just added
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them."""
    url = os.environ.get("PROJECT_URL", "").rstrip("/")
    beside = page.file.src_uri in BESIDE
    folder = os.path.dirname(page.file.src_uri)

    def led(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        path = os.path.normpath(target if beside else os.path.join("docs", folder, target))
        inside = path.removeprefix("docs/")
        if files.get_file_from_path(inside) is not None:
            return f"[{text}]({os.path.relpath(inside, folder or '.')}{anchor})"
        return f"[{text}]({url}/blob/HEAD/{path})" if url else text

    return LINK.sub(led, markdown)
