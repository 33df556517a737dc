"""Internal errors while a trace is judged or reported. The report lists these errors. An internal error
never makes a PASS or a VIOLATED."""

from dataclasses import dataclass
from traceback import format_exception
from typing import Final

TRACEBACK_KEPT: Final = 4_000
"""Characters of a traceback that are kept: its end."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The `stage` that failed, the type and text of the error, and the end of its traceback. `refused`: the cause is
    the machine (a full disk, a missing folder), so the error is not internal."""

    stage: str
    error: str
    traceback: str
    refused: bool = False

    def __str__(self) -> str:
        return f"{self.stage}: {self.error}"


def failure_of(stage: str, error: Exception) -> Failure:
    text = "".join(format_exception(error))[-TRACEBACK_KEPT:]
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        return Failure(stage, f"{where}{error.strerror or error}", text, refused=True)
    return Failure(stage, f"{type(error).__name__}: {error}", text)


class surviving:  # noqa: N801 - a verb, as `suppress`
    """If the `with` block raises an error, add it to `failures`, and continue after the block. A closed pipe is no
    error: the reader of the output has ended."""

    def __init__(self, stage: str, failures: list[Failure]) -> None:
        self._stage, self._failures = stage, failures

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, BrokenPipeError):
            return False
        self._failures.append(failure_of(self._stage, error))
        return True
