"""Reads the sentences of clauses from text files. A line is `ID | sentence`, or `ID | title | sentences | causes`,
perhaps with ` | basis`. A line that begins with blanks continues the previous line.

A *cause* is a kind of violation of a clause. Each occasion (a case that can break a clause) can show one, and a scene
declares those that it tests. Causes are public, in results and in traces: others are refused.
"""

import re
from collections.abc import Mapping, Set
from importlib.resources import files
from typing import Final


def sentences(package: str) -> list[list[str]]:
    """The cells of each line of the package's `clauses.txt`."""
    text = files(package).joinpath("clauses.txt").read_text(encoding="utf-8")
    return [line.split(" | ") for line in re.sub(r"\n +", " ", text).splitlines()]


WAYS: Final[Mapping[str, Set[str]]] = {
    cells[0]: {"", *cells[3].split(", ")} for cells in sentences("purgatorio_wire.clause")
}
"""The causes of each clause. The code that makes the rows explains them. "" stands for all in a scene, and in a row for
the only one."""
