"""Prints one line of a list or of an error: wrapped and indented on a terminal, and unwrapped into a pipe, for
`grep`."""

import shutil
import sys
import textwrap

import click


def echo_line(text: str, indent: int, *, err: bool = False) -> None:
    """Print `text`. On a terminal, text that does not fit continues `indent` columns from the left."""
    whole = not (sys.stderr if err else sys.stdout).isatty()
    click.echo(text if whole else wrapped(text, indent, shutil.get_terminal_size().columns), err=err)


def wrapped(text: str, indent: int, columns: int) -> str:
    """`text` in lines of at most `columns`, unless one word is longer."""
    if len(text) <= columns:
        return text
    # The head is a column of a table, with its spaces. Only the text after the head may be wrapped.
    return textwrap.fill(
        text[indent:], columns, initial_indent=text[:indent], subsequent_indent=" " * indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
