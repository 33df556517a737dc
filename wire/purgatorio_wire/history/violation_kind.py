"""The kinds of violations of the wire's clauses. A row is an occasion of one kind, and a scene declares the kinds that
the scene tests.

The kinds are public interface: they are the causes in results, and appear in traces (`{"what": "asks"}`). The type
checker and the plan refuse a kind that no judge knows.
"""

from typing import Final, Literal, TypeAlias, get_args

Way: TypeAlias = Literal[
    "", "above-high-watermark", "acks-0-answered", "acks-1-refused", "acks-taken", "again", "answered-twice",
    "appends-on", "append-waits-for-deleted", "at-follower", "away", "before-the-leader", "before-the-replica",
    "before-the-time-out", "begins", "below-min-insync", "below-zero", "beyond-the-end", "beyond-the-time-out",
    "bytes-left", "by-time", "change-unheard", "closed", "closed-after-acks-0", "committed", "corrupt",
    "corrupt-taken", "count", "deleted", "deleted-records-other-error", "deleted-records-waits",
    "deleted-while-it-waits", "deleted-without-error", "did-not-wait", "diverging-otherwise", "diverging-waits",
    "does-not-go-on", "does-not-grow", "early", "elsewhere", "elected", "empty", "empty-at-max-wait",
    "empty-at-once", "ended", "ends", "epoch", "error-untold", "error-without-reason", "expected-not-awaited",
    "failed", "fenced", "few-replicas", "files-stay-open", "follower-told", "forgotten", "generation-jumps",
    "generation-stays", "given-up", "grows", "handled-ahead", "held", "held-up", "high-watermark", "id-again",
    "id-not-known", "init-refused", "in-sync-again", "joins-again", "joins-again-unsynced",
    "last-stable-offset", "late", "leaders", "leader-changes", "leader-not-told", "leader-unheard",
    "leader-waits", "leads-on", "leaves-unknown", "leave-by-name", "leave-refused", "led", "left-otherwise",
    "left-out", "left-to-its-time-out", "left-twice", "left-waiting", "let-in", "listed", "log-start",
    "log-start-offset", "lost", "low-moves", "low-watermark", "made-though-validated", "made-twice",
    "never-answered", "never-ended", "never-seen", "next-refused", "nobody-rejoined", "note", "not-all-named",
    "not-asked-for", "not-deleted", "not-fenced", "not-given", "not-listed", "not-out", "not-put-out",
    "not-refused", "not-there", "not-throttled", "not-told", "not-woken", "no-batch", "no-frame",
    "no-member-id", "offered-not-answered", "offsets-do-not-grow", "of-nobody", "of-none", "others-rebalance",
    "other-assignment", "other-error", "other-id", "other-instance", "other-protocol", "other-subscription",
    "other-time", "out-of-order", "out-of-range-other-error", "out-of-range-waits", "overtaken",
    "part-of-a-batch", "protocol", "put-off-again", "put-out", "rebalances", "rebalance-not-told",
    "refusal-waits", "refused", "replica-stopped", "same-id", "sent-again", "served-by-its-id",
    "session-refused", "session-taken", "session-waits", "starved", "CompletingRebalance", "Empty",
    "PreparingRebalance", "Stable", "static-not-awaited", "stays-though-silent", "stranger", "taken",
    "taken-though-wrong", "timed-out", "timed-out-early", "told-again", "told-for-nothing",
    "two-owners",
    "told-of-a-rebalance", "told-otherwise", "too-few-have-it", "too-much", "too-often", "undecided-shown",
    "undecodable", "unknown", "unknown-epoch-other-error", "unknown-epoch-waits", "unknown-topic-other-error",
    "unknown-topic-waits", "unstable", "unsynced", "unsynced-stays", "votes", "waits", "waits-for-a-sync",
    "waits-for-deleted", "waits-for-no-leader", "waits-for-the-silent", "waits-in-rebalance", "waits-on",
    "waits-though-complete", "waits-though-ready", "waits-though-replaced", "waits-though-synced",
    "waits-though-told", "with-records", "woken-without-it",
]  # fmt: skip
"""A way in which a clause may break; the code that makes its rows explains it. "" is any, of a scene that asks for a
clause; of a row, one that is not distinguished."""
WAYS: Final = frozenset(get_args(Way))
