"""The kinds of violations of the wire's clauses. Each occasion (a case that can break a clause) can show one
kind. A scene (a sequence of requests) declares the kinds that it tests.

The kinds are public interface: results name them as causes, and a trace names those that its scenes test. The type
checker and the plan refuse a kind that no judge knows.
"""

from typing import Final, Literal, TypeAlias, get_args

Way: TypeAlias = Literal[
    "", "CompletingRebalance", "Empty", "PreparingRebalance", "Stable", "aborted-shown", "above-high-watermark",
    "acknowledgement-accepted", "acks-0-answered", "acks-0-records-lost", "acks-1-refused", "acquired-twice",
    "answered-out-of-order", "answered-twice", "answered-with-too-little", "append-outside", "append-time",
    "append-waits-for-deleted", "at-follower", "batch-missing", "before-the-leader", "before-the-replica-resumes",
    "before-the-time-out", "begin-refused", "below-min-insync", "beyond-the-end", "beyond-the-time-out", "by-time",
    "bytes-left", "change-ignored", "closed", "closed-after-acks-0", "committed", "coordinator-unavailable",
    "corrupt-accepted", "created-by-validation", "created-twice", "delayed-again", "delayed-by-another",
    "deleted-id-served", "deleted-records-other-error", "deleted-records-waits", "deleted-while-it-waits",
    "deleted-with-members", "deleted-without-error", "delivered-again", "delivery-count", "disturbs-the-others",
    "diverging-other-end", "diverging-waits", "early", "empty", "empty-at-max-wait", "empty-at-once",
    "empty-group-refused", "empty-not-deleted", "end-after-end", "end-refused", "epoch-goes-back",
    "error-without-reason", "fenced-producer-appends", "few-replicas", "files-stay-open", "forbidden-accepted",
    "generation-jumps", "generation-stays", "handled-out-of-order", "high-watermark", "id-required-late",
    "in-sync-again", "init-refused", "instance-id-refused", "invalid-acks-accepted", "last-stable-offset", "late",
    "late-join-not-awaited", "leader-changes", "leader-rejoin-ignored", "leader-returns", "leader-waits",
    "leave-by-instance-id", "leave-of-unknown-member", "leave-refused", "leave-without-rebalance",
    "leaves-with-other-error", "left-to-its-time-out", "listed", "listed-version-refused", "log-start",
    "log-start-offset", "long-metadata-accepted", "lost-by-a-deletion", "low-watermark", "low-watermark-moves",
    "member-id-reused", "members-after-rejoin", "members-missing", "members-to-a-follower", "missed-rebalance-kept",
    "negative-offset", "never-answered", "never-ended", "new-id-not-awaited", "new-id-unknown", "newest-id-fenced",
    "next-refused", "no-batch", "no-frame", "no-member-id", "no-member-rejoined", "not-a-new-epoch",
    "not-assigned-in-time", "not-delivered", "not-elected", "not-fenced", "not-in-effect", "not-listed", "not-refused",
    "not-refused-count", "not-removed", "not-throttled", "not-told", "not-woken", "offsets-do-not-grow",
    "open-transaction-shown", "other-answer", "other-assignment", "other-checksum", "other-clients-wait", "other-error",
    "other-instance", "other-leader", "other-offset", "other-protocol", "other-subscription", "other-than-preferred",
    "other-time", "other-topic-id", "out-of-order", "out-of-range-other-error", "out-of-range-waits", "part-of-a-batch",
    "partition-missing", "partition-starved", "partitions-not-added", "rebalance-not-reported",
    "rebalance-without-cause", "rebalances", "records-missing", "refused", "refused-as-rebalancing", "refused-but-open",
    "refused-late", "rejoin-waits", "removed-too-early", "repeated-end", "repeated-heartbeat", "replica-stopped",
    "return-waits", "returns-unsynced", "second-leave-accepted", "sent-again", "session-accepted", "session-evicted",
    "session-refused", "session-waits", "several-leaders", "silent-member-kept", "static-member-not-awaited",
    "timed-out", "timed-out-early", "too-few-in-sync", "too-much", "too-often", "topic-id-reused", "two-owners",
    "undecodable", "unknown-epoch-other-error", "unknown-epoch-waits", "unknown-leader-epoch", "unknown-member",
    "unknown-partition-other-error", "unknown-producer", "unknown-server-error", "unknown-session",
    "unknown-topic-other-error", "unknown-topic-waits", "unstable", "unsupported-protocol", "unsynced-member-kept",
    "unsynced-rejoin-waits", "waits-for-deleted", "waits-for-missing-sync", "waits-for-moved", "waits-for-no-leader",
    "waits-for-silent-member", "waits-in-rebalance", "waits-though-complete", "waits-though-left", "waits-though-ready",
    "waits-though-replaced", "waits-though-replica-left", "waits-though-resumed", "waits-though-synced",
    "waits-without-max-wait", "without-a-request", "without-a-transaction", "wrong-argument-accepted",
    "wrong-session-epoch",
]  # fmt: skip
"""A kind of violation. The code that makes its rows explains the kind. In a scene, "" stands for all kinds of a clause.
In a row, "" means that the clause does not distinguish kinds."""
WAYS: Final = frozenset(get_args(Way))
