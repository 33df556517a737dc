"""Fills the templates of the HTML report, without injection: every text is escaped.

A value in a template that is no `Markup` counts as text of a trace. Its unprintable characters become visible, and then
`& < > " '` are escaped. Floats are coordinates: they are rounded to tenths. None adds nothing. A line end of a template
adds nothing with the spaces around it, or one space before a letter, which begins the next attribute of an element.
"""

from __future__ import annotations

import html
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from purgatorio_spec.durations import milliseconds
from purgatorio_spec.show.event_words import broken_here, line_of
from purgatorio_spec.show.selection import wording_of
from purgatorio_spec.show.visible import first_few, visible
from purgatorio_spec.verdict import Verdict

if TYPE_CHECKING:
    from jinja2 import Environment

_TEXT_LIMIT: Final = 2_000
"""The maximum number of characters of a text. A longer text is cut."""

SIGN: Final = {
    Verdict.PASS: "✓",
    Verdict.VIOLATED: "✗",
    Verdict.UNKNOWN: "?",
    Verdict.SKIPPED: "–",
    Verdict.INVALID_TRACE: "⚠",
}


def style_of(verdict: Verdict) -> str:
    return "invalid" if verdict is Verdict.INVALID_TRACE else str(verdict).lower()


def part(name: str, *shown: object) -> Markup:
    """What the macro `name` of `parts.html` makes of these values."""
    return Markup(getattr(_environment().get_template("parts.html").module, name)(*shown))


def filled(template: str, **shown: object) -> str:
    return _environment().get_template(template).render(shown)


@cache
def _environment() -> Environment:
    # Imported late: a check without a report must not wait for it.
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension

    class OneLine(Extension):
        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            return re.sub(r"\s*\n\s*", "", re.sub(r"\s*\n\s*(?=[A-Za-z])", " ", source))

    made = Environment(
        loader=PackageLoader("purgatorio_pipeline", "report/templates"), autoescape=True, finalize=_written,
        undefined=StrictUndefined, extensions=[OneLine],
    )  # fmt: skip
    made.filters |= {"comma": "{:,}".format, "whole": "{:.0f}".format, "visible": visible}
    for shared in (broken_here, first_few, line_of, milliseconds, style_of, visible, wording_of):
        made.globals[shared.__name__] = shared
    made.globals["SIGN"] = SIGN
    return made


def _written(value: Any) -> Markup:
    if value is None or isinstance(value, Markup):
        return value or Markup()
    text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
    return Markup(html.escape(visible(text, _TEXT_LIMIT)))
