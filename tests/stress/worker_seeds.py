"""Seeds shared out to workers side by side, so that no two of them repeat each other."""

from collections.abc import Mapping


class SeedShare:
    """The seeds of worker `worker` of `workers`: `first + worker`, and every `workers`-th after it.

    ValueError where there is no such worker.
    """

    __slots__ = ("_next", "_workers")

    def __init__(self, worker: int, workers: int, first: int = 1) -> None:
        if not 0 <= worker < workers:
            raise ValueError(f"worker {worker} of {workers}: workers count from 0")
        self._next = first + worker
        self._workers = workers

    def take(self) -> int:
        """A seed that no other worker gets, and this one not again."""
        seed = self._next
        self._next += self._workers
        return seed


def share_of_worker(environment: Mapping[str, str], first: int = 1) -> SeedShare:
    """The share of this pytest-xdist worker (`gw0`, `gw1`, ...), or all seeds where there is no xdist."""
    name, count = (
        environment.get("PYTEST_XDIST_WORKER", "gw0"),
        environment.get("PYTEST_XDIST_WORKER_COUNT", "1"),
    )
    return SeedShare(int(name.removeprefix("gw")), int(count), first)
