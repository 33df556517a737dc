"""An error of ours on the way from a trace to what is shown of it: reported beside the verdicts, which stand."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from traceback import format_exception
from typing import Final

TRACEBACK_KEPT: Final = 4_000
"""Characters of a traceback that are kept: its end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed (`stage`), the type and text of the error, and the end of its traceback. `refused`: the machine
    refused it (a full disk, a missing folder), which is no error of ours."""

    stage: str
    error: str
    traceback: str
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"


def failure_of(stage: str, error: Exception) -> Failure:
    """The record of an error."""
    text = "".join(format_exception(error))[-TRACEBACK_KEPT:]
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        return Failure(stage, f"{where}{error.strerror or error}", text, refused=True)
    return Failure(stage, f"{type(error).__name__}: {error}", text)


@contextmanager
def surviving(stage: str, failures: list[Failure]) -> Iterator[None]:
    """Add an error in the block to `failures`. A closed pipe is none: who reads our output has gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except Exception as error:
        failures.append(failure_of(stage, error))
