"""The programs of the threads in the model of completion: an event, the registration, the expiry, a holder of the
lock."""

from functools import partial

from purgatorio_spec.model.memory import ARMED, CANCELLED, TAKEN, EventVariables, Memory, look_up
from purgatorio_spec.model.packed import END, Bits, Instruction, act
from purgatorio_spec.model.variant import Acquire, ForceRule, Variant

Instructions = list[Instruction]


def is_at(bits: Bits, value: int) -> tuple[int, int]:
    return bits.mask, bits.put(0, value)


def branch(label: str, text: str, bit: Bits, if_set: str, if_clear: str) -> Instruction:
    return act(label, text, if_set, when=is_at(bit, 1), otherwise=if_clear)


def take(label: str, text: str, bit: Bits, target: str, *, held: str | None = None) -> Instruction:
    """Wait until a flag is clear, then set it. With `held`: if the flag is set, go to this label instead."""
    return act(label, text, target, when=is_at(bit, 0), otherwise=held, sets={bit: 1})


def clear_flag(label: str, text: str, bit: Bits, target: str) -> Instruction:
    return act(label, text, target, sets={bit: 0})


class Threads:
    """Programs over one memory, as a variant of the protocol has them."""

    def __init__(self, memory: Memory, variant: Variant) -> None:
        self.memory = memory
        self.variant = variant

    def event(self, record: EventVariables, key: int) -> Instructions:
        publish, check = f"make its part of the condition true (key k{key})", f"check_and_complete(k{key})"
        there = {"look": "the operation is there", END: "nothing watched"}
        return [
            act("publish", publish, "look-up", sets={record.published: 1}),
            look_up("look-up", f"{check}: read the list", self.memory, record, key, "look", END).says(there),
            self._completed("look", END, "lock"),
            *self._try("", END),
        ]

    def registration(self, timed: bool) -> Instructions:
        """`try_complete_else_watch`; the timer task is added only if `timed`."""
        after = "add-look" if timed else END
        body = self._register_locked(after) if self.variant.register_locked else self._register(after)
        return body + (self._add_to_timer() if timed else [])

    def expiry(self) -> Instructions:
        memory, lost = self.memory, END if self.variant.expiry_needs_win else "expire"
        locks = self.variant.force is ForceRule.UNDER_LOCK
        due = act(
            "take", "the time-out is due", "peek" if locks else "force", when=is_at(memory.timer, ARMED),
            sets={memory.timer: TAKEN},
        )  # fmt: skip
        forces = self._force("", "won", lost)
        if locks:
            peek = branch("peek", "force_complete: completed?", memory.completed, lost, "lock")
            forces = [
                peek.says({lost: "yes, lost", "lock": "no"}),
                take("lock", "lock the operation", memory.lock, "force"),
                clear_flag("unlock-won", "unlock", memory.lock, "won"),
                clear_flag("unlock-lost", "unlock", memory.lock, lost),
                *self._force("", "unlock-won", "unlock-lost"),
            ]
        return [
            due,
            *forces,
            act("won", "force_complete returns true", "expire", sets={memory.expiry_won: 1}),
            act("expire", "on_expiration", END, counts=memory.expirations),
        ]

    def holder(self) -> Instructions:
        """A thread that holds the operation's lock outside of any check (KAFKA-8334)."""
        lock = self.memory.lock
        return [
            take("hold", "lock the operation, for another purpose", lock, "release"),
            clear_flag("release", "unlock", lock, END),
        ]

    def _cancel(self, label: str, target: str) -> Instruction:
        """Cancel the timer task. No effect if it is not in the timer yet, or was taken already."""
        timer = self.memory.timer
        return act(
            label,
            "cancel the timer task",
            target,
            when=is_at(timer, ARMED),
            otherwise=target,
            sets={timer: CANCELLED},
        )

    def _completed(self, label: str, if_yes: str, if_no: str, text: str = "completed?") -> Instruction:
        return branch(label, text, self.memory.completed, if_yes, if_no).says({if_yes: "yes", if_no: "no"})

    def _force(self, prefix: str, won: str, lost: str) -> Instructions:
        """`force_complete` from a thread that may hold the lock already; it starts at `prefix`force."""
        memory, how = self.memory, self.variant.force
        force, claiming, cancel, begin, finish = (
            prefix + name for name in ("force", "claim", "cancel", "begin", "finish")
        )
        completes = partial(act, sets={memory.completed: 1}, counts=memory.wins)
        if how in (ForceRule.CHECK_THEN_SET, ForceRule.AFTER_CALLBACK):
            sets_next = how is ForceRule.CHECK_THEN_SET
            unset = claiming if sets_next else cancel
            look = branch(force, "force_complete: completed?", memory.completed, lost, unset)
            decide = [
                look.says({lost: "lost", unset: "not completed"}),
                completes(claiming, "set completed", cancel if sets_next else won),
            ]
        else:
            wins = completes(force, "force_complete", cancel, when=is_at(memory.completed, 0), otherwise=lost)
            decide = [wins.says({lost: "lost", cancel: "won"})]
        return [
            *decide,
            self._cancel(cancel, begin),
            act(begin, "on_complete starts", finish, counts=memory.calls),
            act(finish, "on_complete ends", claiming if how is ForceRule.AFTER_CALLBACK else won),
        ]

    def _evaluate(self, prefix: str, won: str, lost: str) -> Instructions:
        """`try_complete`: read the condition, and if it holds call `force_complete`; starts at `prefix`evaluate."""
        skips = self.variant.true_without_force
        ready = won if skips else prefix + "force"
        mask = self.memory.ready_mask
        read = act(
            prefix + "evaluate", "try_complete reads the condition", ready, when=(mask, mask), otherwise=lost
        )
        return [read.says({ready: "true", lost: "false"}), *([] if skips else self._force(prefix, won, lost))]

    def _try(self, prefix: str, leave: str) -> Instructions:
        if self.variant.acquire is Acquire.BLOCK:
            return self._safe_try(prefix, leave)
        if self.variant.acquire is Acquire.RETRY_ONCE:
            first = self._maybe_try(prefix, leave, again=prefix + "again-lock")
            return first + self._maybe_try(prefix + "again-", leave, again=leave)
        return self._maybe_try(prefix, leave, again=prefix + "lock")

    def _safe_try(self, prefix: str, leave: str) -> Instructions:
        lock, unlock = self.memory.lock, prefix + "unlock"
        unlocks = clear_flag(unlock, "unlock", lock, leave)
        return [
            take(prefix + "lock", "lock the operation", lock, prefix + "held"),
            self._completed(prefix + "held", unlock, prefix + "evaluate"),
            *self._evaluate(prefix, unlock, unlock),
            unlocks if self.variant.unlocks else act(unlock, "return without unlocking", leave),
        ]

    def _maybe_try(self, prefix: str, leave: str, again: str) -> Instructions:
        """One iteration of the try-lock loop. `again`: the label for the next iteration (after a test of
        `completed`)."""
        memory, acquire = self.memory, self.variant.acquire
        gives_up = acquire is Acquire.GIVE_UP
        clears = acquire in (Acquire.RETRY_FLAG, Acquire.RETRY_ONCE)
        unlock, read, set_flag, loop, clear, begin = (
            prefix + name for name in ("unlock", "read-flag", "set-flag", "loop", "clear", "evaluate")
        )
        held, entered = leave if gives_up else set_flag, clear if clears else begin
        taken = take(prefix + "lock", "try_lock", memory.lock, entered, held=held)
        section = [
            taken.says({held: "held by another thread", entered: "taken"}),
            *([clear_flag(clear, "clear the pending flag", memory.pending, begin)] if clears else []),
            *self._evaluate(prefix, unlock, unlock),
            clear_flag(unlock, "unlock", memory.lock, leave if gives_up else read),
        ]
        if gives_up:
            return section
        last = again == leave
        retry = leave if last else loop
        reads = branch(read, "read the pending flag", memory.pending, retry, leave)
        sets = take(set_flag, "set the pending flag", memory.pending, retry, held=leave)
        if last:
            return [*section, reads, sets]
        return [
            *section,
            reads.says({loop: "set, retry", leave: "clear, leave"}),
            sets.says({loop: "was clear, retry", leave: "was set, leave"}),
            self._completed(loop, leave, again),
        ]

    def _register_locked(self, after: str) -> Instructions:
        lock, rechecks = self.memory.lock, self.variant.recheck
        watched = "second-evaluate" if rechecks else "r-unlock"
        return [
            take("r-lock", "lock the operation", lock, "first-evaluate"),
            *self._evaluate("first-", "r-unlock", "see-0"),
            *(step for key, then in self._keys(watched) for step in self._watch(key, then, "r-unlock")),
            *(self._evaluate("second-", "r-unlock", "r-unlock") if rechecks else []),
            clear_flag("r-unlock", "unlock", lock, after),
        ]

    def _register(self, after: str) -> Instructions:
        body = self._evaluate("first-", END, "see-0")
        last = "second-look" if self.variant.recheck else after
        for key, then in self._keys(last):
            if self.variant.check_before_each_watch and then != last:
                body += self._watch(key, f"between-{key}-evaluate", END)
                body += self._evaluate(f"between-{key}-", END, then)
            else:
                body += self._watch(key, then, END)
        if self.variant.recheck:
            body += [self._completed("second-look", END, "second-lock"), *self._try("second-", after)]
        return body

    def _keys(self, last: str) -> list[tuple[int, str]]:
        """Each key, and the label that follows when it is watched."""
        keys = range(len(self.memory.watched))
        return [(key, last if key == keys[-1] else f"see-{key + 1}") for key in keys]

    def _watch(self, key: int, following: str, leave: str) -> Instructions:
        put, completed = f"watch-{key}", self.memory.completed
        return [
            branch(f"see-{key}", "completed?", completed, leave, put).says({leave: "yes, stop", put: "no"}),
            act(put, f"watch under k{key}", following, sets={self.memory.watched[key]: 1}),
        ]

    def _add_to_timer(self) -> Instructions:
        timer, looks_again = self.memory.timer, self.variant.cancel_after_late_add
        section = [
            self._completed("add-look", END, "add"),
            act("add", "add to the timer", "late-look" if looks_again else END, sets={timer: ARMED}),
        ]
        if looks_again:
            section += [
                self._completed("late-look", "late-cancel", END, "completed meanwhile?"),
                self._cancel("late-cancel", END),
            ]
        return section
