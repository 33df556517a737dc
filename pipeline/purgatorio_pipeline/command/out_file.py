"""The option that names a file to be written."""

import os
from pathlib import Path

import click


def file(value: str) -> Path:
    """An option for an output file. Before the work begins, the option tests whether the file can be written."""
    path = Path(value)
    place = next(folder for folder in path.absolute().parents if folder.exists())
    special = path.exists() and not path.is_file()  # a terminal or a pipe is written directly
    if path.is_dir():
        wrong = "it is a folder"
    elif not place.is_dir():
        wrong = f"{place} is not a folder"
    elif not special and not os.access(place, os.W_OK):
        wrong = f"{place} is read-only"
    else:
        return path
    raise click.BadParameter(f"{path} cannot be written: {wrong}")
