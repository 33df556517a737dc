"""`DelayedProduce`: a Produce with acks=-1 waits for the replication of its records (Kafka's DelayedProduce).

Each request is one operation, watched under each of its partitions.

The append has happened before the wait, so the offsets of the response are known. Only the error of each partition can
still change. The error is REQUEST_TIMED_OUT at first, and is replaced when the partition is decided: the records of
the partition are replicated, or the partition failed (`purgatorio_broker.delayed_parts`). A decided partition is never
evaluated again. If the ISR shrinks later, the acknowledgement stays valid.

Clauses B101 to B109. The clauses B108 and B109 are about the whole request.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from purgatorio_broker.delayed_parts import DelayedParts
from purgatorio_broker.error import Error
from purgatorio_broker.key import TopicPartition
from purgatorio_broker.meter import ExpirationMeter
from purgatorio_broker.partition import EnoughReplicas
from purgatorio_broker.runtime import Runtime


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """A partition's answer. `required_offset`: what the high watermark must reach, the end of the append; both
    offsets are -1 where nothing was appended."""

    error: Error
    base_offset: int = -1
    required_offset: int = -1


ProduceCallback = Callable[[Mapping[TopicPartition, ProduceResult]], None]
"""Gets every partition's result, once."""

Validator = Callable[[TopicPartition, int], EnoughReplicas]
"""Says whether a partition has enough replicas up to an offset; must not raise and must not block."""


class DelayedProduce(DelayedParts[TopicPartition, ProduceResult]):
    """Waits until every partition's records are replicated, or have failed. `results`: those of the append, one a
    partition."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, ProduceResult],
        validator: Validator,
        callback: ProduceCallback,
        meter: ExpirationMeter,
        runtime: Runtime,
    ) -> None:
        super().__init__(timeout_ms, results, _at_time_out, callback, runtime, meter)
        self._validator = validator

    def ask(self, part: TopicPartition, result: ProduceResult) -> ProduceResult | None:
        """NONE or an error, once there is nothing to wait for."""
        verdict = self._validator(part, result.required_offset)
        decided = verdict.enough or verdict.error is not Error.NONE
        return replace(result, error=verdict.error) if decided else None  # [B107]


def _at_time_out(appended: ProduceResult) -> ProduceResult | None:
    return replace(appended, error=Error.REQUEST_TIMED_OUT) if appended.error is Error.NONE else None
