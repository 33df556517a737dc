"""The table of the requests that the broker answers, with their versions. ApiVersions returns this table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from purgatorio_broker.network import (
    data_requests,
    group_requests,
    share_requests,
    topic_requests,
    transaction_requests,
)
from purgatorio_broker.network.fields import Values
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.reply import Request

API_VERSIONS: Final = 18


@dataclass(frozen=True, slots=True)
class Api:
    """A kind of request: its versions, and its handler, which decides the reply now or later."""

    key: int
    name: str
    oldest: int
    newest: int
    handle: Callable[[Node, Request], None]


def api_versions(node: Node, request: Request) -> None:
    request.reply.send(offered)


def offered(code: int = ErrorCode.none.value) -> Values:
    """The APIs of an ApiVersions response, with this error."""
    return {
        "error_code": code,
        "api_keys": [
            {"api_key": api.key, "min_version": api.oldest, "max_version": api.newest}
            for api in APIS.values()
        ],
        "finalized_features": [
            {"name": "transaction.version", "min_version_level": 2, "max_version_level": 2}
        ],
    }


APIS: Final[Mapping[int, Api]] = {
    api.key: api
    for api in (
        Api(0, "Produce", 3, 13, data_requests.produce),
        Api(1, "Fetch", 4, 17, data_requests.fetch),
        Api(2, "ListOffsets", 1, 9, data_requests.list_offsets),
        Api(3, "Metadata", 0, 13, topic_requests.metadata),
        Api(8, "OffsetCommit", 2, 9, group_requests.offset_commit),
        Api(9, "OffsetFetch", 1, 9, group_requests.offset_fetch),
        Api(10, "FindCoordinator", 0, 6, group_requests.find_coordinator),
        Api(11, "JoinGroup", 0, 9, group_requests.join_group),
        Api(12, "Heartbeat", 0, 4, group_requests.heartbeat),
        Api(13, "LeaveGroup", 0, 5, group_requests.leave_group),
        Api(14, "SyncGroup", 0, 5, group_requests.sync_group),
        Api(15, "DescribeGroups", 0, 6, group_requests.describe_groups),
        Api(16, "ListGroups", 0, 5, group_requests.list_groups),
        Api(API_VERSIONS, "ApiVersions", 0, 4, api_versions),
        Api(19, "CreateTopics", 2, 7, topic_requests.create_topics),
        Api(20, "DeleteTopics", 1, 6, topic_requests.delete_topics),
        Api(21, "DeleteRecords", 0, 2, data_requests.delete_records),
        Api(22, "InitProducerId", 0, 5, transaction_requests.init_producer_id),
        Api(24, "AddPartitionsToTxn", 0, 3, transaction_requests.add_partitions_to_txn),
        Api(25, "AddOffsetsToTxn", 0, 3, transaction_requests.add_offsets_to_txn),
        Api(28, "TxnOffsetCommit", 0, 5, transaction_requests.txn_offset_commit),
        Api(26, "EndTxn", 0, 5, transaction_requests.end_txn),
        Api(32, "DescribeConfigs", 1, 4, topic_requests.describe_configs),
        Api(37, "CreatePartitions", 0, 3, topic_requests.create_partitions),
        Api(42, "DeleteGroups", 0, 2, group_requests.delete_groups),
        Api(43, "ElectLeaders", 0, 2, topic_requests.elect_leaders),
        Api(49, "AlterClientQuotas", 0, 1, topic_requests.alter_client_quotas),
        Api(62, "BrokerRegistration", 0, 0, topic_requests.register_broker),
        Api(68, "ConsumerGroupHeartbeat", 0, 1, group_requests.consumer_group_heartbeat),
        Api(76, "ShareGroupHeartbeat", 1, 1, share_requests.share_group_heartbeat),
        Api(78, "ShareFetch", 1, 2, share_requests.share_fetch),
        Api(79, "ShareAcknowledge", 1, 2, share_requests.share_acknowledge),
    )
}
"""By key."""
