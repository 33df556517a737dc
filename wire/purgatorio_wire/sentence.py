"""Reads the sentences of clauses from text files. A line is `ID | sentence`, or `ID | title | sentences | causes`,
perhaps with ` | basis`. A line that begins with blanks continues the previous line."""

import re
from importlib.resources import files


def sentences(package: str) -> list[list[str]]:
    """The cells of each line of the package's `clauses.txt`."""
    text = files(package).joinpath("clauses.txt").read_text(encoding="utf-8")
    return [line.split(" | ") for line in re.sub(r"\n +", " ", text).splitlines()]
