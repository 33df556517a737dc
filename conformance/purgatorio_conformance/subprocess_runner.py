"""Drives a program from another Python interpreter, because several drivers in one process would share one core.

The other interpreter runs this module as a program. It reads the subject, the seed and the size of the run from
standard input. It writes the progress and the result to standard output, as pickles. If its standard input is closed,
because the parent process has died, it ends the run.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from purgatorio_conformance.protocol.driver import CommandSubject
from purgatorio_conformance.protocol.played_order import Account
from purgatorio_conformance.subject.child import ALIVE, kill_all
from purgatorio_conformance.subject.contract import Progress, SubjectFailed

_FULL_COLLECTION_EVERY: Final = 1_000
"""Collections of the middle generation; some eight million objects."""
_LOOK_S: Final = 0.2


class _Driving(subprocess.Popen[bytes]):
    """The other interpreter."""

    def kill(self) -> None:
        """See `Killable`. It kills its own subjects, and tells how its run ended."""
        assert self.stdin is not None, "created with pipes"
        self.stdin.close()


def run_apart(subject: CommandSubject, seed: int, ops: int, path: Path, progress: Progress) -> None:
    """Runs `subject.run_seeded` in a new interpreter, and raises its exceptions here. If the interpreter dies, the run
    is unfinished."""
    # In a session of its own, because this process handles Ctrl-C.
    with _Driving(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None, "created with pipes"
        assert process.stdout is not None, "created with pipes"
        ALIVE.add(process)
        try:
            pickle.dump((subject, seed, ops, path), process.stdin)
            process.stdin.flush()
            while isinstance((said := pickle.load(process.stdout))[0], int):
                progress(subject.name, *said)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            status = process.wait()
            why = f"the driving process ended with status {status}; its standard error has the reason"
            if status == -signal.SIGKILL:
                why = "the driving process was killed, probably for lack of memory: lower `--operations`"
            raise SubjectFailed(subject.name, "unfinished", why, path if path.exists() else None) from None
    account, raised = said
    vars(subject.account).update(vars(account))
    if raised is not None:
        raise raised


@contextmanager
def few_full_collections() -> Iterator[None]:
    """Reduces the number of full garbage collections. A plan of 200,000 timers has a million objects without cycles.
    Full collections would take a quarter of the run."""
    young, middle, full = gc.get_threshold()
    gc.set_threshold(young, middle, _FULL_COLLECTION_EVERY)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, full)


def _end_when_told() -> None:
    os.read(0, 1)
    while True:
        # A run may start another program for its proof.
        kill_all()
        time.sleep(_LOOK_S)


def _main() -> None:
    subject, seed, ops, path = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_when_told, daemon=True).start()
    # Other output must not be mistaken for a message. Buffered, because a raw write may end early if the process is
    # stopped (Ctrl-Z, a debugger), and the rest of the message would be lost.
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as say:

        def tell(message: bytes) -> None:
            say.write(message)
            say.flush()

        os.dup2(2, 1)
        raised: BaseException | None = None
        try:
            with few_full_collections():
                subject.run_seeded(seed, ops, path, lambda _, *share: tell(pickle.dumps(share)))
        except BaseException as error:
            raised = error
        tell(result_of(subject.account, raised))


def result_of(account: Account, raised: BaseException | None) -> bytes:
    """The last message: the account of the run, and its exception. An exception that cannot be sent becomes text."""
    try:
        message = pickle.dumps((account, raised))
        pickle.loads(message)
        return message
    except Exception as error:
        return pickle.dumps((Account(), RuntimeError(f"{raised!r}, which cannot be sent: {error}")))


if __name__ == "__main__":
    _main()
