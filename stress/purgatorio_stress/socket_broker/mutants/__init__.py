"""Bugs that a client can feel, to be put into the broker behind the socket: what `purgatorio wire` must convict.

A module a subject: its bugs as a table, and what these need beside them. `felt_mutant` has the ways to write one down.
"""

from collections.abc import Mapping
from typing import Final

from purgatorio_stress.socket_broker.mutants import (
    appends,
    committed_offsets,
    connections,
    fetch_sessions,
    fetches,
    group_joins,
    group_members,
    group_rebalances,
    group_syncs,
    log_bounds,
    share_groups,
    static_members,
    topics,
    transactions,
    waiting,
)
from purgatorio_stress.socket_broker.mutants.felt_mutant import FeltMutant

_ALL: Final = (
    *connections.MUTANTS, *waiting.MUTANTS, *appends.MUTANTS, *fetches.MUTANTS, *fetch_sessions.MUTANTS,
    *log_bounds.MUTANTS, *topics.MUTANTS, *group_joins.MUTANTS, *group_rebalances.MUTANTS, *group_syncs.MUTANTS,
    *group_members.MUTANTS, *static_members.MUTANTS, *committed_offsets.MUTANTS, *transactions.MUTANTS,
    *share_groups.MUTANTS,
)  # fmt: skip

_LISTED: Final = """
    answered-twice heartbeat-unanswered last-first older-version offered-not-answered acks-0-answered
    acks-0-closes offset-0 acknowledged-unreadable any-acks min-in-sync-ignored min-in-sync-for-all
    acks-all-as-1 time-out-answered-well missing-trigger trigger-before-update late-timer early-timer
    never-armed fetch-never-waits min-bytes-ignored min-bytes-by-partition lost-check first-key-only
    not-re-armed min-bytes-0-waits max-wait-0-empty waited-for-nothing error-waits epoch-unchecked wrong-error
    deleted-topic-silent unreplicated-shown predicate-is-not-result created-not-there created-again
    deleted-still-there records-stay delete-beyond-end below-start-served no-member-id no-initial-delay
    everybody-leads same-generation generation-jumps heartbeat-silent join-not-waiting join-waits-on
    sync-not-waiting sync-not-woken same-assignment absent-member-stays rebalance-late rebalance-early
    session-not-evicted half-a-session stale-satisfied-rearm leave-starts-nothing any-generation stranger-heard
    generation-as-member heartbeat-in-vain one-in-fifty-lost first-waiter-only time-outs-rounded-up
    eight-seconds-at-most more-than-min-bytes deletion-ends-fetches end-listed-short first-partition-answers
    leave-unseen-in-rebalance late-sync-empty static-return-rebalances session-unseen-in-rebalance
    expected-unseen vain-in-rebalance shortest-rebalance leader-never-out past-generation sync-left-in-rebalance
    absent-static-out deletion-left deletion-times-out-well first-topic-only one-check-a-request
    replicas-wake-produce low-watermark-unseen append-waits-for-deleted parts-time-out-together
    acks-0-error-told partition-room-ignored first-topic-answers first-topic-watched static-return-unassigned
    second-join-unanswered cut-request-left cut-leaves names-of-all-groups commit-unheard part-left-out
    unknown-is-out-of-range creation-refused growth-left corrupt-taken refused-part-waits validated-growth
    acks-0-dropped acks-0-wakes-nobody acks-0-checks-left topics-by-id-stay forgotten-partition-fetched
    session-stands-still session-of-any-epoch older-segment-adds-nothing id-forgotten second-join-unheard
    initial-delay-uncapped protocol-of-the-leader subscription-of-the-leader absent-leads rejoin-rebalances
    expected-not-awaited sync-refused unsynced-left-alone commit-unchecked stranger-leaves any-protocol
    change-unheard first-subscription-kept expected-for-ever newcomer-out-by-its-session
    no-session-before-the-sync nobody-commits a-batch-of-each min-bytes-beyond-max-bytes all-in-a-transaction
    no-leader-named delay-without-end static-leaves-quietly high-watermark-of-before sync-waits-in-rebalance
    commit-refused-in-rebalance commit-dropped offsets-outlive-the-topic other-protocol-synced session-unbounded
    leader-told-nobody-again rejoin-unsynced-rebalances left-join-waits replaced-waits replaced-unsynced
    unsynced-stays synced-behind-out followers-sync-unawaited votes-uncounted leader-changes
    fenced-commit-unknown leave-by-name-unknown session-of-another leaving-told-unknown waiting-sync-unheard
    silent-leader-awaited leave-together-unseen longest-time-out-overflows lost-protocol-kept
    offsets-of-the-first-group offsets-of-one-partition offsets-left-out first-group-described
    deleted-as-nothing start-untold recreated-wakes-nobody grown-wakes-nobody election-of-nothing-waits
    cut-ends-the-check cut-stays-open first-session-kept join-puts-off nobody-rejoined-goes-on
    session-error-untold one-forgotten grows-once expected-left-alone session-healed-untold closed-session-stays
    former-session-stays refused-counts first-partition-first deleted-untold-in-a-session first-room-kept
    one-topic-elected first-coordinator-told note-kept listed-in-any-epoch later-than-the-time
    election-timed-out-at-once last-one-stays put-out-not-empty static-rejoin-in-vain static-out-with-the-others
    static-session-kept leaving-ends-the-delay ended-rebalance-again former-syncs-awaited given-up-protocol-kept
    commit-unheard-in-rebalance beat-unheard-before-the-sync waiting-join-unheard static-return-unseen
    first-rebalance-kept static-leader-unheard static-rejoin-rebalances static-leave-unseen
    smallest-partition-first earliest-is-0 given-up-acknowledged ready-part-unwatched forgotten-and-known
    records-outlive-the-topic offsets-outlive-the-group eight-keys-at-most kind-outlives-the-members
    name-outlives-the-leaving sent-again-there-again sequence-gap-taken last-batch-known duplicate-at-its-end
    sequences-of-any-producer longest-session-refused static-never-back protocols-of-the-generation
    open-transaction-wakes open-transaction-read open-transaction-counted open-transaction-read-in-a-session
    end-wakes-nobody abort-wakes-nobody aborted-stay-open stable-behind-the-newest stable-when-all-ended
    stable-offset-not-listed aborted-not-told aborted-told-from-its-begin aborted-once-told one-marker
    ended-before-its-markers never-ended epoch-stays former-ends former-appends taken-over-committed
    taken-over-stays-open none-ended offsets-of-any-end offsets-of-no-end offsets-of-any-generation
    offsets-of-strangers no-offsets-in-a-rebalance offsets-of-nobody-alone last-end-wins former-name-kept
    unstable-not-told unstable-for-good strangers-taken absent-shifts-the-keys handled-ahead once-with-members
    four-batches-known unknown-in-a-transaction refused-and-known given-up-left-waiting
    former-time-out-ends-the-next follower-wakes-nobody any-generation-in-a-rebalance share-append-wakes-nobody
    share-never-waits share-waits-twice share-waits-unasked share-acquired-twice share-count-stays
    share-part-without-records share-accepted-again share-rejected-again share-released-kept
    share-first-type-of-all share-said-with-a-fetch-lost share-anybody-acknowledges share-released-acknowledged
    share-lock-wakes-nobody share-lock-never-over share-lock-short share-lock-cancelled-in-part
    share-former-lock-frees share-end-frees-nothing share-end-frees-one-partition share-cut-unseen
    share-any-epoch share-refusal-counts share-session-made-up
""".split()
"""As they came; a name that is not here is listed behind them, with its subject."""

_BY_NAME: Final = {mutant.name: mutant for mutant in _ALL}

FELT: Final[Mapping[str, FeltMutant]] = {
    name: _BY_NAME[name] for name in dict.fromkeys([*_LISTED, *_BY_NAME])
}
"""By name."""
