"""The worked example of the docs is what the reference really does."""

from pathlib import Path

import pytest

from docs.makers.worked_example import events_of, page
from purgatorio import LOCKED, PENDING_FLAG
from purgatorio.delayed.dialect import Dialect

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measured" / "worked-example.md"


def test_the_page_is_the_output_of_a_run() -> None:
    """Three runs print the very page, so the events in it are real and not a matter of luck."""
    written = PAGE.read_text(encoding="utf-8")
    for _ in range(3):
        assert page() == written, (
            "print it again: python -m docs.makers.worked_example > docs/measured/worked-example.md"
        )


@pytest.mark.parametrize(("dialect", "completer"), [(PENDING_FLAG, "follower-1"), (LOCKED, "follower-2")])
def test_the_completing_thread_is_the_difference(dialect: Dialect, completer: str) -> None:
    """The statement of the page: the thread that completes, and the result of the second check."""
    meeting, _ = events_of(dialect)
    (completion,) = (event for event in meeting if event.f == "on_complete" and event.ph == "call")
    (answer,) = (
        event.out
        for event in meeting
        if event.th == "follower-2" and event.f == "check_and_complete" and event.ph == "ret"
    )
    assert completion.th == completer
    assert answer == (1 if dialect is LOCKED else 0)
