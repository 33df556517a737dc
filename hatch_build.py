"""The hooks of the build.

The hook of the wheel is off by default. Then the wheel is pure Python and needs no compiler. With
HATCH_BUILD_HOOK_ENABLE_CUSTOM=true, mypyc compiles the reference in the wheel; see CONTRIBUTING.md.

The hook of the metadata gives the README of a release links that work on a package index. PROJECT_URL is the
repository's page. Only the release workflow sets PROJECT_URL, so no file of the repository names a host or an account.
Without PROJECT_URL the README stays as it is.
"""

import importlib.util
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")


class CustomMetadataHook(MetadataHookInterface):
    """The README as a package index shows it, and the project's URLs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """A relative link leads to the file in the repository."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        url = os.environ.get("PROJECT_URL", "").rstrip("/")
        metadata["urls"] = {}
        if url:
            text = RELATIVE_LINK.sub(rf"]({url}/blob/HEAD/\1)", text)
            metadata["urls"] = {
                "Homepage": url,
                "Documentation": f"{url}/tree/HEAD/docs",
                "Changelog": f"{url}/blob/HEAD/CHANGELOG.md",
                "Issues": f"{url}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds the extension modules to the wheel, in addition to the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile in a directory of its own; the tree stays as it is."""
        if version == "editable":
            raise RuntimeError("an editable install runs the source: build a wheel for the compiled one")
        root = Path(self.root)
        path = root / "benchmarks" / "compiled_package.py"
        spec = importlib.util.spec_from_file_location("compiled_package", path)
        assert spec is not None, "a path makes a spec"
        assert spec.loader is not None, "a path makes a loader"
        compiling = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(compiling)
        self._scratch = Path(tempfile.mkdtemp(prefix="purgatorio-wheel-"))
        compiling.compile_package(root / "reference" / "purgatorio", self._scratch / "made")
        made = self._scratch / "made"
        found = [path for path in made.rglob("*") if path.suffix in (".so", ".pyd")]
        build_data["force_include"].update({str(path): path.relative_to(made).as_posix() for path in found})
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel is written."""
        shutil.rmtree(self._scratch, ignore_errors=True)
