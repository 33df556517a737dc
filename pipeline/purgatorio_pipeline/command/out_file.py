"""The option that names a file to be written."""

import os
from pathlib import Path

import click


class OutFile(click.ParamType):  # type: ignore[type-arg]  # generic in newer releases of click only
    """A file that is to be written. Whether it can be is asked before the work is done, not after it."""

    name = "file"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        place = next(folder for folder in path.absolute().parents if folder.exists())
        special = path.exists() and not path.is_file()  # a terminal, a pipe: written to where it is
        wrong = (
            "it is a folder"
            if path.is_dir()
            else f"{place} is not a folder"
            if not place.is_dir()
            else f"{place} is read-only"
            if not special and not os.access(place, os.W_OK)
            else ""
        )
        if wrong:
            self.fail(f"{path} cannot be written: {wrong}", param, ctx)
        return path
