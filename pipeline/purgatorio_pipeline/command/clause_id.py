"""A clause named on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Collection

import click

NEAREST = 3


def no_clause(name: str, ids: Collection[str]) -> str:
    """What is said of an id that is not there: those that resemble it, and where all are."""
    near = difflib.get_close_matches(name.upper(), ids, NEAREST, 0.5) or [
        one for one in ids if one[:1] == name[:1].upper()
    ]
    resembling = f" Nearest: {', '.join(near[:NEAREST])}." if near else ""
    return f"no clause {name!r}.{resembling} `purgatorio check --clauses` lists all"


class ClauseId(click.ParamType):
    """An id out of `ids`, in letters of either case."""

    name = "clause"

    def __init__(self, ids: Collection[str]) -> None:
        self._ids = ids

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id as it is written in the pages."""
        if value.upper() not in self._ids:
            self.fail(no_clause(value, self._ids), param, ctx)
        return value.upper()
