"""Makes command-line options. A text has the names of an option, such as `--limit limit_s`. The last name, without
dashes, is the name of the Python parameter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


def flag(names: str, explained: str) -> Option:
    return click.option(*names.split(), is_flag=True, help=explained)


def number(
    names: str,
    explained: str,
    default: float | None = None,
    *,
    least: int | None = None,
    most: int | None = None,
) -> Option:
    """An option whose value is a number: a whole number, unless the default is a float. The help shows the default."""
    whole = not isinstance(default, float)
    bounded = (click.IntRange if whole else click.FloatRange)(least, most)
    kind = bounded if least is not None or most is not None else int if whole else float
    shown: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    return click.option(*names.split(), type=kind, help=explained, **shown)


def folder(names: str, explained: str, *, required: bool = False) -> Option:
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option(*names.split(), type=kind, help=explained, required=required)


as_json: Final = flag("--json as_json", "Print one JSON object and nothing else.")


def refuse(because: str, *names: str) -> None:
    """Raises a usage error if one of these parameters was given on the command line, because it would have no
    effect."""
    context = click.get_current_context()
    for one in context.command.params:
        if one.name in names and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE:
            name = one.opts[0] if isinstance(one, click.Option) else one.make_metavar(context)
            raise click.UsageError(f"{name} has no effect {because}: remove it")
