"""The known bugs: mistakes that were made in real systems of this kind.

Models, proofs, mutants and pages name a known bug by its number. The numbers are public interface. Some numbers are
not used. The list of mutants has the bugs that the reference cannot have.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownBug:
    """`source`: the number of the bug in its project. `clauses`: the clauses that the bug may break; `CHECK` is an
    invariant of a data structure."""

    number: int
    name: str
    source: str
    sentence: str
    clauses: tuple[str, ...]


def bug_name(twin: int | str) -> str:
    """The name of a known bug by its number; a negative control that is none of them says its own."""
    return twin if isinstance(twin, str) else KNOWN_BUGS[twin].name


def bug_number(twin: int | str) -> int | None:
    return twin if isinstance(twin, int) else None


_BUGS: Final = (
    KnownBug(1, "no-recheck-after-watch", "KAFKA-1952", "no second try after watching", ("O4",)),
    KnownBug(2, "check-per-key-then-watch", "KAFKA-1952", "a try before each watch, none after", ("O4",)),
    KnownBug(3, "orphan-watcher-list", "KAFKA-2160",
             "the list is looked up under the lock, appended to after it", ("O4", "CHECK")),
    KnownBug(4, "remove-key-no-emptiness-recheck", "KAFKA-2253",
             "a key's list is dropped though it has refilled", ("O4", "CHECK")),
    KnownBug(6, "list-lock-over-removal", "KAFKA-2253",
             "a list's lock is held while the watcher list's is taken", ("P3",)),
    KnownBug(7, "list-lock-over-try-complete", "KAFKA-3994",
             "a list's lock is held while operations are tried", ("P3",)),
    KnownBug(9, "blocking-foreign-operation-lock", "KAFKA-5970",
             "a key is checked under another group's lock", ("P3",)),
    KnownBug(10, "callback-lock-is-not-operation-lock", "KAFKA-6042",
             "on_complete takes a lock the caller holds", ("P3",)),
    KnownBug(11, "trylock-give-up", "KAFKA-6653", "a thread that does not get the lock gives up", ("O4",)),
    KnownBug(12, "trylock-retry-once", "KAFKA-6653", "one more try instead of a loop", ("O4",)),
    KnownBug(13, "pending-not-reset", "KAFKA-6653", "the flag is never cleared", ("P3",)),
    KnownBug(14, "trylock-foreign-holder", "KAFKA-8334", "try_lock though others hold the operation's lock", ("O4",)),
    KnownBug(16, "skip-actions-on-expiry", "KAFKA-8334", "on_expiration does not run what was queued", ("B408",)),
    KnownBug(17, "check-under-exclusive-lock", "KAFKA-8334",
             "a key is checked under a lock that try_complete needs", ("P3",)),
    KnownBug(18, "reader-writer-chain", "KAFKA-7697", "an operation is completed under a read lock", ("P3",)),
    KnownBug(19, "force-complete-without-cas", "KAFKA-19325", "check the flag, then set it", ("O1",)),
    KnownBug(21, "complete-flag-after-callback", "KAFKA-10080", "the flag is set after on_complete", ("O1",)),
    KnownBug(22, "on-expiration-unconditional", "KAFKA-1989",
             "on_expiration though the time-out did not win", ("O3",)),
    KnownBug(24, "try-complete-beside-on-complete", "KAFKA-19312",
             "expiry completes without the operation's lock", ("O6",)),
    KnownBug(25, "ignore-force-complete-result", "KAFKA-17848",
             "a try that took locks does not ask who completed", ("B925",)),
    KnownBug(27, "true-without-complete", "KAFKA-7909", "try_complete is True without force_complete", ("B108",)),
    KnownBug(28, "stale-satisfied-rearm", "KAFKA-9752",
             "the next session is begun with the flag still set", ("B608",)),
    KnownBug(30, "leave-op-armed-on-remove", "KAFKA-7196", "a member is removed, its session continues", ("B604",)),
    KnownBug(31, "missing-trigger", "KAFKA-2960", "a follower's progress checks no key", ("B108",)),
    KnownBug(32, "trigger-before-update", "KAFKA-1148", "the key is checked, then the follower is noted", ("B108",)),
    KnownBug(33, "exception-aborts-pass", "KAFKA-17240",
             "one operation's exception ends the pass over the list", ("O8", "O4")),
    KnownBug(34, "exception-kills-reaper", "KAFKA-14601", "an exception leaves the reaper's loop", ("O8",)),
    KnownBug(36, "direct-recheck-in-on-complete", "KAFKA-17509", "the next check is made, not queued", ("O8", "P3")),
    KnownBug(37, "action-queue-exception", "KAFKA-8334", "an action's exception ends the drain", ("O8",)),
    KnownBug(39, "no-cancel-in-force-complete", "KAFKA-16663",
             "a completed operation stays in the timer", ("T5", "P2")),
    KnownBug(40, "no-cancel-after-late-add", "KAFKA-2226", "no recheck after the timer's add", ("T5", "P2")),
    KnownBug(41, "watch-rest-after-complete", "KAFKA-18027", "no check of the flag between keys", ("P1",)),
    KnownBug(45, "estimate-not-reset", "latent in Kafka", "the purge does not reset the estimate", ("P2",)),
    KnownBug(46, "purge-compare-reversed", "KAFKA-664", "the difference is taken the wrong way round", ("P1", "P2")),
    KnownBug(49, "remove-wrong-list", "KAFKA-2226",
             "remove trusts that the entry is in some list", ("T5", "CHECK", "O8", "P3")),
    KnownBug(51, "reinsert-no-cancel-check", "Go timingwheel #31",
             "re-inserted without a test whether cancelled", ("T5", "T4")),
    KnownBug(52, "insert-after-cancel", "tokio #8252", "add ignores that the task was cancelled before", ("T5",)),
    KnownBug(53, "overflow-wheel-twice", "KAFKA-2112",
             "the level above is made without a lock", ("T2", "T3", "T5", "CHECK")),
    KnownBug(55, "flush-resets-expiration-late", "Go timingwheel PR 35",
             "the expiration is reset after unlocking", ("T3",)),
    KnownBug(56, "flush-next-after-unlink", "Go timingwheel 469a18e",
             "the next entry is read after unlinking", ("T3", "T2", "CHECK")),
    KnownBug(57, "nonreentrant-bucket-lock", "Go timingwheel #25", "a bucket's lock is not re-entrant", ("P3",)),
    KnownBug(58, "sleep-flag-outside-lock", "Go timingwheel #5",
             "the test and the sleep are two critical sections", ("T2", "P3")),
    KnownBug(60, "next-wake-published-late", "tokio #6682",
             "the wake-up time is published after unlocking", ("T2", "P3")),
    KnownBug(61, "no-reoffer-on-reuse", "hierarchical wheel",
             "a bucket is offered the first time only", ("T3", "T2", "CHECK")),
    KnownBug(63, "no-overflow-advance", "hierarchical wheel",
             "the level above does not advance", ("T2", "T3", "P3", "CHECK", "O8")),
    KnownBug(64, "fire-on-flush", "rpc-perf #180", "the tasks of a coarse bucket run when it is flushed", ("T1",)),
    KnownBug(65, "off-by-one-current-tick", "wheel", "the next tick counts as expired", ("T1",)),
    KnownBug(66, "interval-inclusive", "wheel", "the interval's end counts as within", ("T2", "CHECK", "O8", "T3")),
    KnownBug(67, "advance-to-now", "agrona 38ad7a8e",
             "the wheel advances to the time, not to the bucket", ("T2", "CHECK", "O8", "T3")),
    KnownBug(69, "relative-slot", "wheel", "the slot is counted from the clock", ("T2", "T1", "T3", "CHECK", "O8")),
    KnownBug(70, "relative-deadline-from-cursor", "akka #1547",
             "the deadline counts from the wheel's clock", ("T1",)),
    KnownBug(72, "rounds-from-absolute-tick", "netty #1959",
             "rounds are counted from zero", ("T2", "T3", "CHECK", "O8")),
    KnownBug(73, "stop-scan-at-first-not-due", "netty #12888",
             "the scan of a slot stops at the first not due", ("T2", "T3", "CHECK", "O8")),
    KnownBug(74, "early-visited-dropped", "agrona #73", "what is visited before its time is dropped", ("T3",)),
    KnownBug(76, "beyond-capacity-clamp", "Linux timer wheel",
             "what is beyond the wheel's reach is clamped to it", ("T1", "CHECK", "O8")),
    KnownBug(78, "wall-clock", "KAFKA-4051", "the queue goes by a wall clock that is set back", ("T2", "T3")),
    KnownBug(79, "unit-mix", "KAFKA-938", "a wait a thousand times too long", ("T2",)),
    KnownBug(80, "sleep-rounds-to-zero", "netty #356", "a wait is rounded down, to zero near its end", ("P3",)),
    KnownBug(81, "deadline-overflow", "netty #7760", "deadlines wrap at 64 bits", ("T1",)),
    KnownBug(83, "cancel-flag-only", "asyncio", "cancel does not unlink", ("T5",)),
    KnownBug(84, "cancel-double-decrement", "netty #14959", "the counter is decremented twice", ("T5", "CHECK")),
    KnownBug(88, "re-arm-no-wake", "tokio #2290", "an earlier item does not wake the sleeper", ("T2",)),
    KnownBug(92, "stop-does-not-complete", "KAFKA-17483", "shutdown leaves operations pending", ("O5",)),
    KnownBug(94, "stop-from-callback", "netty #365", "a task waits for its own thread", ("P3",)),
    KnownBug(96, "parked-params-dropped", "KAFKA-5355", "a fetch that waited forgets its isolation", ("B215",)),
    KnownBug(97, "predicate-is-not-result", "KAFKA-3159",
             "the condition checks the log's end, the read does not", ("B214",)),
    KnownBug(98, "alias-clear-before-release", "KAFKA-18918", "what is to be released is forgotten first", ("B925",)),
)  # fmt: skip

KNOWN_BUGS: Final[dict[int, KnownBug]] = {bug.number: bug for bug in _BUGS}
"""By number."""
