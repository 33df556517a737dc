"""Versions of the completion protocol, each a set of switches of the model.

`PENDING_FLAG` and `LOCKED` are the two dialects, and must have all properties. Every other version is a negative
control: an old release, or a known bug of another implementation. Such a version must break the property that `claims`
names.
"""

from dataclasses import dataclass, replace
from enum import Enum

from purgatorio_spec.known_bugs import bug_name


class Acquire(Enum):
    """How an event's thread gets the operation's lock before it evaluates `try_complete`."""

    RETRY_FLAG = "try-lock, with a pending flag and a retry loop"  # 1.1 to 2.6 (KAFKA-6653)
    GIVE_UP = "try-lock or give up"  # 1.0 (KAFKA-5970)
    RETRY_ONCE = "try-lock, once more on failure"
    NO_RESET = "try-lock and retry loop, the flag never cleared"
    BLOCK = "blocking lock"  # 2.7 and later (KAFKA-8334)


class ForceRule(Enum):
    """How `force_complete` decides which call completes the operation."""

    COMPARE_AND_SET = "compare-and-set, callback outside any lock"
    UNDER_LOCK = "flag set and callback run under the operation's lock"  # 4.1 (KAFKA-19312)
    CHECK_THEN_SET = "read the flag, then set it"
    AFTER_CALLBACK = "callback first, then the flag"


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    acquire: Acquire
    force: ForceRule
    register_locked: bool
    recheck: bool = True
    check_before_each_watch: bool = False
    cancel_after_late_add: bool = True
    expiry_needs_win: bool = True
    true_without_force: bool = False
    unlocks: bool = True


PENDING_FLAG = Variant("pending-flag", Acquire.RETRY_FLAG, ForceRule.COMPARE_AND_SET, register_locked=False)
LOCKED = Variant("locked", Acquire.BLOCK, ForceRule.UNDER_LOCK, register_locked=True)
DIALECTS = (PENDING_FLAG, LOCKED)

GIVE_UP = replace(PENDING_FLAG, name=bug_name(11), acquire=Acquire.GIVE_UP)
RETRY_ONCE = replace(PENDING_FLAG, name=bug_name(12), acquire=Acquire.RETRY_ONCE)
NO_RESET = replace(PENDING_FLAG, name=bug_name(13), acquire=Acquire.NO_RESET)
NO_RECHECK = replace(PENDING_FLAG, name=bug_name(1), recheck=False)
NO_RECHECK_LOCKED = replace(LOCKED, name=bug_name(1), recheck=False)
CHECK_BEFORE_EACH_WATCH = replace(PENDING_FLAG, name=bug_name(2), recheck=False, check_before_each_watch=True)
CHECK_THEN_SET = replace(PENDING_FLAG, name=bug_name(19), force=ForceRule.CHECK_THEN_SET)
FLAG_AFTER_CALLBACK = replace(PENDING_FLAG, name=bug_name(21), force=ForceRule.AFTER_CALLBACK)
UNLOCKED_FORCE = replace(LOCKED, name=bug_name(24), force=ForceRule.COMPARE_AND_SET)
NO_LATE_CANCEL = {
    dialect: replace(dialect, name=bug_name(40), cancel_after_late_add=False) for dialect in DIALECTS
}
EXPIRY_WITHOUT_WIN = {
    dialect: replace(dialect, name=bug_name(22), expiry_needs_win=False) for dialect in DIALECTS
}
TRUE_WITHOUT_FORCE = replace(LOCKED, name=bug_name(27), true_without_force=True)
LOCK_NEVER_RELEASED = replace(LOCKED, name="lock-again-instead-of-unlock", unlocks=False)
