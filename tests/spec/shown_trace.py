"""Small traces written by hand, each with one broken promise: for the tests of what is shown."""

from spec.trace_builder import MS, Trace


def shown(run: str, profile: str = "locked") -> Trace:
    """A run of a subject that promises no bound of its lateness."""
    return Trace(profile, run=run, late_ns=None)


def completed_twice() -> Trace:
    """O1: two threads force at once and both see the operation incomplete."""
    made = shown("two-winners")
    made.register("op-22", ["k44", "k45"], delay_ns=293 * MS, th="worker-0")
    first = made.start("force_complete", "op-22", th="worker-1")
    second = made.start("force_complete", "op-22", th="worker-0")
    made.cancel("op-22", None, th="worker-1")
    made.both("on_complete", "op-22", th="worker-1")
    made.end(first, 1)
    made.cancel("op-22", None, th="worker-0")
    made.both("on_complete", "op-22", th="worker-0")
    made.end(second, 1)
    return made


def lost_when_locked() -> Trace:
    """O4, `locked`: no second `try_complete` after watching, so a condition that came in between is not seen."""
    made = shown("no-recheck")
    call = made.start(
        "try_complete_else_watch", "op-467", keys=["k934", "k935"], delay_ns=152 * MS, th="worker-0"
    )
    attempt = made.start("try_complete", "op-467", th="worker-0")
    made.ready("op-467", th="worker-1")
    made.both("check_and_complete", out=0, keys=["k935"], th="worker-1")
    made.end(attempt, 0)
    made.add("op-467", delay_ns=152 * MS, th="worker-0")
    made.end(call, 0)
    made.wait(152 * MS)
    made.expire("op-467")
    return made


def lost_with_a_flag() -> Trace:
    """O4, `pending-flag`: the thread that made it ready finds the lock held and gives up (KAFKA-6653)."""
    made = shown("give-up", "pending-flag")
    made.register("op-116", ["k232", "k233"], delay_ns=160 * MS, th="worker-0")
    attempt = made.start("try_complete", "op-116", th="worker-1")
    made.ready("op-116", th="worker-0")
    made.both("check_and_complete", out=0, keys=["k232"], th="worker-0")
    made.end(attempt, 0)
    made.both("check_and_complete", out=0, keys=["k7"], th="worker-1")
    made.wait(160 * MS)
    made.expire("op-116")
    return made


def fired_early(operation: str = "op-13", run: str = "early-fire") -> Trace:
    """T1: the task fires 3 ms before its deadline."""
    made = shown(run)
    made.register(operation, ["k35", "k28", "k60"], delay_ns=17 * MS, th="worker-4")
    made.attempt(operation, 0, th="worker-6")
    made.wait(14 * MS)
    made.expire(operation)
    return made


def fired_after_completion() -> Trace:
    """T4: completed, not cancelled, and the task fires at its deadline all the same."""
    made = shown("no-cancel")
    made.register("op-36", ["k27"], delay_ns=12 * MS, th="worker-2")
    made.ready("op-36", th="worker-1")
    with (
        made.call("check_and_complete", keys=["k27"], th="worker-1", out=1),
        made.call("try_complete", "op-36", th="worker-1", out=1),
    ):
        made.complete("op-36", th="worker-1", cancel=False)
    made.wait(13 * MS)
    with made.call("timer_fire", "op-36", th="exec"):
        made.both("force_complete", "op-36", out=0, th="exec")
    return made


def garbage_kept() -> Trace:
    """P1: at rest more entries are watched than the purge interval allows."""
    made = shown("garbage")
    for number in range(5):
        made.register(f"op-{number}", ["k0"], delay_ns=100 * MS, th="worker-0")
        made.complete(f"op-{number}", th="worker-0")
    made.gauge(5, 0)
    return made


def size_wrong(tasks: int = 3) -> Trace:
    """T5: of the tasks one was cancelled, fired or moved by a second add, and the size counts all."""
    made = shown("size-wrong")
    for number in range(tasks):
        made.add(f"task-{number}", delay_ns=(5 + number) * MS, th="worker-0")
        made.both("check_and_complete", out=0, keys=["k"], th="worker-1")
    made.cancel("task-1", 1, th="worker-1")
    made.cancel("task-2", 0, th="worker-1")
    made.wait(6 * MS)
    made.fire("task-0")
    made.gauge(0, tasks)
    return made


def miscounted() -> Trace:
    """O7: the check completed one operation and says none, while another thread goes about its business."""
    made = shown("miscounted")
    made.register("op-1", ["k1"], delay_ns=50 * MS, th="worker-0")
    made.ready("op-1", th="worker-0")
    with made.call("check_and_complete", keys=["k1"], th="worker-0", out=0):
        made.both("check_and_complete", out=0, keys=["k2"], th="worker-1")
        with made.call("try_complete", "op-1", th="worker-0", out=1):
            made.complete("op-1", th="worker-0")
    return made
