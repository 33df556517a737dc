"""Makes a command from a dataclass. A field of the class is an option or an argument of the command, so its name, its
type, its default and its help stand in one place."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

A = TypeVar("A")
_PARAMETER, _SHARED = "parameter", "shared"


def taking(
    asked: type[A], name: str | None = None, *, epilog: str = "", cls: type[click.Command] = click.Command
) -> Callable[[Callable[[A], None]], click.Command]:
    """A decorator that makes a command of a function. The function gets the options as a value of `asked`."""

    def made(function: Callable[[A], None]) -> click.Command:
        @functools.wraps(function)
        def called(**given: Any) -> None:
            function(_value_of(asked, given))

        return click.command(name, cls=cls, epilog=epilog, params=[*_parameters(asked)])(called)

    return made


def _parameters(asked: Any) -> Iterator[click.Parameter]:
    for one in fields(asked):
        if _SHARED in one.metadata:
            yield from _parameters(one.metadata[_SHARED])
        elif _PARAMETER in one.metadata:
            yield one.metadata[_PARAMETER](one.name)


def _value_of(asked: Any, given: Mapping[str, Any]) -> Any:
    values = {
        one.name: _value_of(one.metadata[_SHARED], given) if _SHARED in one.metadata else given.get(one.name)
        for one in fields(asked)
    }
    return asked(**values)


def shared(asked: type[A]) -> Any:
    """A field with the options of another dataclass, which several commands have."""
    return field(kw_only=True, metadata={_SHARED: asked})


def argument(**more: Any) -> Any:
    """A field that is an argument. `more`: parameters of `click.Argument`."""
    return field(kw_only=True, metadata={_PARAMETER: lambda name: click.Argument([name], **more)})


def option(explained: str, *, named: str = "", default: Any = None, **more: Any) -> Any:
    """A field that is an option. `named`: the names of the option, if it is not named as the field. `default`: also
    that of the field. `more`: parameters of `click.Option`."""
    if default is not None:
        more["default"] = default

    def made(name: str) -> click.Option:
        names = named.split() or [f"--{name.replace('_', '-')}"]
        return click.Option([*names, name], help=explained, **more)

    return field(default=default, metadata={_PARAMETER: made})


def flag(explained: str, *, named: str = "") -> Any:
    return option(explained, named=named, default=False, is_flag=True)


def number(
    explained: str,
    default: float | None = None,
    *,
    named: str = "",
    least: int | None = None,
    most: int | None = None,
) -> Any:
    """An option whose value is a number: a whole number, unless the default is a float. The help shows the default."""
    whole = not isinstance(default, float)
    bounded = (click.IntRange if whole else click.FloatRange)(least, most)
    kind = bounded if least is not None or most is not None else int if whole else float
    return option(explained, named=named, default=default, type=kind, show_default=default is not None)


def folder(explained: str, *, required: bool = False) -> Any:
    return option(explained, type=click.Path(path_type=Path, file_okay=False), required=required)


def json_flag() -> Any:
    return flag("Print one JSON object and nothing else.", named="--json")


def refuse(because: str, *names: str) -> None:
    """Raises a usage error if one of these parameters was given on the command line, because it would have no
    effect."""
    context = click.get_current_context()
    for one in context.command.params:
        if one.name in names and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE:
            name = one.opts[0] if isinstance(one, click.Option) else one.make_metavar(context)
            raise click.UsageError(f"{name} has no effect {because}: remove it")


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
