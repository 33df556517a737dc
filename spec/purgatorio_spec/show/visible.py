r"""Escapes text of a trace for a terminal, because the author of the trace must not control the terminal.

Control characters (terminal escapes, line ends), characters that change the direction of text, and lone surrogates
become `\x..` escapes. If a CI system would read a line as a command, the first character of the line is escaped too.
Long text is cut. Not done here: escaping for HTML or a shell.
"""

import re
import shlex
from collections.abc import Sequence
from typing import Final

NAME_LIMIT: Final = 60
"""The maximum number of shown characters of an id, key, thread or type name."""

WIDTH: Final = 80
"""The columns of a text that is not written for one terminal."""

TEXT_LIMIT: Final = 400
"""The maximum number of shown characters of a sentence (allowed, seen, a problem)."""

_COMMAND: Final = re.compile(
    r":(?=:(add-[a-z]+|debug|echo|(end)?group|error|notice|remove-matcher|save-state|set-[a-z]+|stop-commands|warning)"
    r"[ :])|#(?=#(\[|vso\[|teamcity\[))"
)
"""A command to GitHub's runner, which begins a line that may be wrapped anywhere; to Azure's agent and to TeamCity."""


def visible(text: str, limit: int = NAME_LIMIT) -> str:
    """`text` with escaped unprintable characters, at most `limit` characters. A cut text ends with `...`."""
    cut = text if len(text) <= limit else text[: max(limit - 3, 0)] + "..."
    harmless = _COMMAND.search(cut) is None
    if cut.isprintable() and harmless:
        return cut
    if not harmless:
        cut = _COMMAND.sub(lambda mark: f"\\x{ord(mark[0]):02x}", cut)
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in cut)
    return shown if len(shown) <= limit else shown[: max(limit - 3, 0)] + "..."


def shell_word(text: str) -> str:
    """`text` as one word of a POSIX shell, to be pasted. It is never cut.

    A text with escaped characters has the form `$'...'` of bash, zsh and ksh.
    """
    commands = {mark.start() for mark in _COMMAND.finditer(text)}
    if text.isprintable() and not commands:
        return shlex.quote(text)
    return "$'" + "".join(_in_dollar_quotes(one, at in commands) for at, one in enumerate(text)) + "'"


def _in_dollar_quotes(one: str, is_command: bool) -> str:
    if one in "'\\":
        return "\\" + one
    if one.isprintable() and not is_command:
        return one
    code = ord(one)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_few(names: Sequence[str]) -> str:
    """At most five names, and `...` if there are more: `a, b`, `a, b, c, d, e, ...`."""
    return ", ".join((*names[:5], *(["..."] if len(names) > 5 else ())))
