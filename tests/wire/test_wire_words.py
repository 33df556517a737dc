"""A counterexample's requests name what they are about, and what a verdict depends on."""

from __future__ import annotations

import pytest

from purgatorio_wire.counterexample import words
from purgatorio_wire.trace.record import WireEvent


@pytest.mark.parametrize(
    ("api", "body", "said"),
    [
        ("delete_topics", {"topic_names": ["t", "u"], "timeout_ms": 5}, "delete_topics(t, u; 5 ms)"),
        ("delete_groups", {"groups_names": list("abcdefg")}, "delete_groups(a, b, c, d, e, ...)"),
        ("find_coordinator", {"coordinator_keys": ["g"]}, "find_coordinator(g)"),
        (
            "create_topics",
            {"topics": [{"name": "t", "num_partitions": 2, "configs": [{"name": "x"}]}], "timeout_ms": 5},
            "create_topics(t, partitions 2; 5 ms)",
        ),
        ("create_partitions", {"topics": [{"name": "t", "count": 3}]}, "create_partitions(t, partitions 3)"),
        (
            "delete_records",
            {"topics": [{"name": "t", "partitions": [{"partition_index": 1, "offset": 7}]}], "timeout_ms": 5},
            "delete_records(t-1 before 7; 5 ms)",
        ),
        (
            "list_offsets",
            {"topics": [{"name": "t", "partitions": [{"partition_index": 1, "timestamp": -1}]}]},
            "list_offsets(t-1 time -1)",
        ),
        (
            "fetch",
            {
                "max_wait_ms": 500,
                "min_bytes": 300,
                "topics": [
                    {
                        "topic": "t",
                        "partitions": [
                            {"partition": 0, "fetch_offset": 4, "partition_max_bytes": 200},
                            {"partition": 1, "fetch_offset": 5, "current_leader_epoch": 9},
                        ],
                    }
                ],
            },
            "fetch(t-0 @4 room 200 B, t-1 @5 epoch 9; 500 ms, 300 B)",
        ),
        (
            "end_txn",
            {"transactional_id": "x", "producer_epoch": 1, "committed": True},
            "end_txn(x; epoch 1; commits)",
        ),
        (
            "end_txn",
            {"transactional_id": "x", "producer_epoch": 1, "committed": False},
            "end_txn(x; epoch 1)",
        ),
        (
            "add_partitions_to_txn",
            {
                "v3_and_below_transactional_id": "x",
                "v3_and_below_producer_epoch": 0,
                "v3_and_below_topics": [{"name": "t", "partitions": [0]}],
            },
            "add_partitions_to_txn(x, t; epoch 0)",
        ),
        (
            "produce",
            {"acks": -1, "timeout_ms": 5, "topic_data": [{"name": "t", "partition_data": [{"index": 2}]}]},
            "produce(t-2; acks -1; 5 ms)",
        ),
        (
            "join_group",
            {
                "group_id": "g",
                "member_id": "",
                "group_instance_id": "i",
                "session_timeout_ms": 6,
                "rebalance_timeout_ms": 7,
            },
            "join_group(no id, i; session 6 ms; rebalance 7 ms)",
        ),
        (
            "share_fetch",
            {
                "group_id": "g",
                "member_id": "a",
                "share_session_epoch": 2,
                "max_wait_ms": 500,
                "min_bytes": 1,
                "topics": [
                    {
                        "topic_id": "u",
                        "partitions": [
                            {
                                "partition_index": 0,
                                "acknowledgement_batches": [
                                    {"first_offset": 1, "last_offset": 2, "acknowledge_types": [2]}
                                ],
                            }
                        ],
                    }
                ],
            },
            "share_fetch(a, u-0 releases @1 to 2; 500 ms, 1 B; epoch 2)",
        ),
        (
            "sync_group",
            {"group_id": "g", "member_id": "a", "generation_id": 2, "assignments": [{"member_id": "a"}]},
            "sync_group(a, 2, gives 1)",
        ),
        (
            "leave_group",
            {"group_id": "g", "member_id": "a", "members": [{"member_id": "a"}, {"member_id": "b"}]},
            "leave_group(a, b)",
        ),
        (
            "offset_commit",
            {
                "group_id": "g",
                "member_id": "a",
                "generation_id_or_member_epoch": 2,
                "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 3}]}],
            },
            "offset_commit(a, t-0 @3, 2)",
        ),
    ],
)
def test_a_request_says_what_it_asks_for(api: str, body: dict[str, object], said: str) -> None:
    assert words(WireEvent(0, 0, "request", api=api, body=body)) == said
