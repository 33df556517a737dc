"""Handles the requests of a transactional producer, except its appends: InitProducerId, AddPartitionsToTxn,
AddOffsetsToTxn, TxnOffsetCommit, EndTxn."""

from kio.schema.errors import ErrorCode

from purgatorio_broker.network.fields import Fields, code_of, grouped
from purgatorio_broker.network.group_requests import answer_commit, named_offsets, refuses_held
from purgatorio_broker.network.node import Node
from purgatorio_broker.network.record_batch import ABORT, COMMIT
from purgatorio_broker.network.reply import Request

_ADDS_GROUP, _RENEWS_EPOCH = 5, 5
"""The first versions of TxnOffsetCommit and of EndTxn that do so (KIP-890)."""


def init_producer_id(node: Node, request: Request) -> None:
    """Kafka's InitProducerId, for idempotent producers (`sequences`) and transactional ones."""
    fields = request.fields
    if not fields.has("transactional_id"):
        made: ErrorCode | tuple[int, int] = (node.new_producer(), 0)
    elif not fields.text("transactional_id"):
        made = ErrorCode.invalid_request
    elif not node.leads:
        made = ErrorCode.not_coordinator
    else:
        known = fields.number("producer_id", -1), fields.number("producer_epoch", -1)
        made = node.transactions.init(
            fields.text("transactional_id"), fields.ms("transaction_timeout"), known
        )
    error, (producer, epoch) = (made, (-1, -1)) if isinstance(made, ErrorCode) else (ErrorCode.none, made)
    request.answer(error_code=error.value, producer_id=producer, producer_epoch=epoch)


def add_partitions_to_txn(node: Node, request: Request) -> None:
    """Kafka's AddPartitionsToTxn. If one partition is unknown, none is added."""
    fields = request.fields
    asked = [one.place for one in fields.partitions("v3_and_below_topics")]
    absent = {one for one in asked if not node.cluster.has(one)}
    by = fields.number("v3_and_below_producer_id"), fields.number("v3_and_below_producer_epoch")
    error = ErrorCode.not_coordinator
    if node.leads and absent:
        error = ErrorCode.operation_not_attempted
    elif node.leads:
        error = node.transactions.add(fields.text("v3_and_below_transactional_id"), by, asked)
    unknown = ErrorCode.unknown_topic_or_partition
    told = {one: {"partition_error_code": (unknown if one in absent else error).value} for one in asked}
    request.answer(results_by_topic_v3_and_below=grouped(told.items()))


def add_offsets_to_txn(node: Node, request: Request) -> None:
    fields, error = request.fields, ErrorCode.not_coordinator
    if node.leads:
        group = fields.text("group_id")
        error = node.transactions.add(fields.text("transactional_id"), _by(fields), (), group)
    request.answer(error_code=error.value)


def txn_offset_commit(node: Node, request: Request) -> None:
    """Kafka's TxnOffsetCommit. From version 5 on, it adds the group to the transaction itself."""
    fields = request.fields
    asked = fields.partitions("topics")
    held = named_offsets(node, asked)
    code = code_of(refuses_held(node, fields))
    group = fields.text("group_id")
    if not code and request.version >= _ADDS_GROUP:
        code = node.transactions.add(fields.text("transactional_id"), _by(fields), (), group).value
    if not code:
        code = node.transactions.hold(_by(fields), group, held).value
    answer_commit(request, asked, held, code)


def end_txn(node: Node, request: Request) -> None:
    """Kafka's EndTxn. The markers are written after the response."""
    ended: ErrorCode | tuple[int, int] = ErrorCode.not_coordinator
    if node.leads:
        marker = COMMIT if request.fields.number("committed") else ABORT
        end = node.transactions.end if request.version < _RENEWS_EPOCH else node.transactions.end_and_renew
        ended = end(request.fields.text("transactional_id"), _by(request.fields), marker)
    error, (producer, epoch) = (ended, (-1, -1)) if isinstance(ended, ErrorCode) else (ErrorCode.none, ended)
    request.answer(error_code=error.value, producer_id=producer, producer_epoch=epoch)


def _by(fields: Fields) -> tuple[int, int]:
    return fields.number("producer_id"), fields.number("producer_epoch")
