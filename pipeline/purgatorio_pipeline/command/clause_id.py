"""The parameter type of a clause id on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from typing import Final

import click

NEAREST: Final = 3


def no_clause(name: str, ids: Collection[str]) -> str:
    """The message for an unknown id: similar ids, and where to list all."""
    near = difflib.get_close_matches(name.upper(), ids, NEAREST, 0.5) or [
        one for one in ids if one[:1] == name[:1].upper()
    ]
    resembling = f" Nearest: {', '.join(near[:NEAREST])}." if near else ""
    return f"no clause {name!r}.{resembling} See `check --clauses`"


def clause_out_of(ids: Collection[str]) -> Callable[[str], str]:
    """The type of an option that takes one of these ids, in letters of either case."""

    def clause(value: str) -> str:
        if value.upper() not in ids:
            raise click.BadParameter(no_clause(value, ids))
        return value.upper()

    return clause
