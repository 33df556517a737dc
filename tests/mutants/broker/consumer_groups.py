"""Bugs of the consumer groups of KIP-848: who has which partitions, and who is a member (G11, G14, G15)."""

from typing import Final

from mutants.broker.client_visible_mutant import felt
from purgatorio_broker.network.consumers import Consumers, _Member
from purgatorio_stress.mutant.patch import edited

MUTANTS: Final = (
    felt("epoch-stays-where-one-leaves", "who leaves changes nothing for the others", "G14",
         edited(Consumers, "beat", "del group.members[member_id]\n            self._change(group)",
                "del group.members[member_id]")),
    felt("epoch-stays-where-one-expires", "who is removed changes nothing for the others", "G14 G15",
         edited(Consumers, "_expire", "self._change(group)", "pass")),
    felt("unsaid-is-revoked", "a heartbeat that says nothing of partitions counts as their revocation", "G14",
         edited(Consumers, "_reconcile", "owned is not None and not owned", "not (owned or frozenset())")),
    felt("given-before-revoked", "what a member is to revoke goes to another at once", "G14",
         edited(Consumers, "_reconcile", "one.assigned | one.revoking", "one.assigned")),
    felt("silent-consumer-stays", "who is silent stays in a consumer group", "G15",
         edited(_Member, "over", "return late or", "return late and")),
    felt("unrevoked-stays", "who does not revoke is not removed for that", "G15",
         edited(_Member, "over", "return late or", "return")),
    felt("any-epoch", "a heartbeat may name any epoch", "G15",
         edited(_Member, "takes", "return epoch", "return epoch > 0 or epoch")),
    felt("instance-id-in-use-taken", "a client takes the place of a static member that is there", "G11",
         edited(Consumers, "beat", "or not group.members[holder].away", "")),
    felt("away-is-gone", "the partitions of a static member that is to come back go to others", "G11",
         edited(Consumers, "beat", "epoch == AWAY and", "False and")),
    felt("former-instance-stays", "who has lost its place to another with its instance id is no member",
         "G11",
         edited(Consumers, "beat", "ErrorCode.fenced_instance_id if", "ErrorCode.unknown_member_id if")),
    felt("any-epoch-commits", "a commit may name any epoch", "G15",
         edited(Consumers, "refuses_commit", "if member.epoch == epoch", "if member.epoch")),
    felt("former-epoch-fenced", "who lost a response with its new epoch is fenced", "G15",
         edited(_Member, "takes", "epoch == self.former and", "False and")),
)  # fmt: skip
