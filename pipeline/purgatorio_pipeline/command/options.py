"""Makes a command from a dataclass. A field of the class is an option or an argument of the command, so its name, its
type, its default and its help stand in one place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, TypeVar

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
