"""The registration scenario under frontrun (PyPI), as a program of its own: `frontrun python -m ...`.

Run by `python -m benchmarks explorer`. The code is the same, the reference; its locks are the interpreter's, which
frontrun replaces, and it traces bytecode where the explorer has the sync seam. Prints one JSON object.
"""

import importlib
import json
import sys
import time

from purgatorio import DelayedOperation, MockTimer, Purgatory


class _Operation(DelayedOperation):
    def __init__(self) -> None:
        super().__init__(1 << 40)
        self.ready = self.sync.atomic_flag(False)

    def try_complete(self) -> bool:
        return self.force_complete() if self.ready.get() else False

    def on_complete(self) -> None:
        return None


class _State:
    def __init__(self) -> None:
        self.purgatory: Purgatory[_Operation] = Purgatory(
            "peer", MockTimer(), shards=1, reaper=False, timer_enabled=False
        )
        self.operation = _Operation()


def _register(state: _State) -> None:
    state.purgatory.try_complete_else_watch(state.operation, ["k"])


def _event(state: _State) -> None:
    state.operation.ready.set(True)
    state.purgatory.check_and_complete("k")


def main(executions: int) -> None:
    """Explore up to so many executions and print how many there were, and how long they took."""
    frontrun = importlib.import_module("frontrun")
    start = time.perf_counter()
    start_cpu = time.process_time()
    result = frontrun.explore(
        _State,
        [_register, _event],
        lambda state: state.operation.is_completed(),
        max_executions=executions,
        stop_on_first=False,
        reproduce_on_failure=0,
        trace_packages=["purgatorio.*"],
    )
    explored = getattr(result, "num_explored", 0)
    print(
        json.dumps(
            {
                "executions": int(explored),
                "seconds": time.perf_counter() - start,
                "cpu_seconds": time.process_time() - start_cpu,
                "holds": bool(getattr(result, "property_holds", False)),
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
