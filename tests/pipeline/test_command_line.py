"""Lines of lists: at 80 columns on a terminal, whole in a pipe."""

import pytest

from purgatorio_pipeline.command.line import echo_line, wrapped

ENTRY = f"{3:3} {'orphan-watcher-list':36} the list is looked up under the lock, appended after it [WatcherList.watch]"


def test_a_long_line_goes_on_under_its_text() -> None:
    """Nothing is lost, no line is too long, and the head stands alone."""
    lines = wrapped(ENTRY, 41, 80).splitlines()
    assert len(lines) == 2
    assert all(len(line) <= 80 for line in lines)
    assert all(line.startswith(" " * 41) for line in lines[1:])
    assert " ".join(" ".join(lines).split()) == " ".join(ENTRY.split())


def test_a_line_that_fits_stays() -> None:
    """Exactly, spaces too."""
    assert wrapped("a   b", 2, 5) == "a   b"


def test_a_pipe_gets_it_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """`grep` searches single lines."""
    echo_line(ENTRY, 41)
    assert capsys.readouterr().out == ENTRY + "\n"
