"""The programs of the threads in the completion model: an event, the registration, the expiry, a lock holder."""

from __future__ import annotations

from purgatorio_spec.model.memory import Memory, Record
from purgatorio_spec.model.packed import END, Instruction
from purgatorio_spec.model.variant import Acquire, Force, Variant

Instructions = list[Instruction]


def force_section(memory: Memory, variant: Variant, prefix: str, won: str, lost: str) -> Instructions:
    """`force_complete` from a thread that may hold the lock already; it starts at `prefix`force."""

    def at(name: str) -> str:
        return prefix + name

    outcome = {lost: "lost", at("cancel"): "won", at("claim"): "not completed"}
    after_callback = won
    if variant.force is Force.CHECK_THEN_SET:
        decide = [
            Instruction(
                at("force"),
                "force_complete: completed?",
                lambda p: memory.branch(p, memory.completed, lost, at("claim")),
                outcome,
            ),
            Instruction(at("claim"), "set completed", lambda p: memory.claim(p, at("cancel"))),
        ]
    elif variant.force is Force.AFTER_CALLBACK:
        after_callback = at("claim")
        decide = [
            Instruction(
                at("force"),
                "force_complete: completed?",
                lambda p: memory.branch(p, memory.completed, lost, at("cancel")),
                {lost: "lost", at("cancel"): "not completed"},
            ),
            Instruction(at("claim"), "set completed", lambda p: memory.claim(p, won)),
        ]
    else:
        decide = [
            Instruction(at("force"), "force_complete", lambda p: memory.win(p, lost, at("cancel")), outcome)
        ]
    return [
        *decide,
        Instruction(at("cancel"), "cancel the timer task", lambda p: memory.cancel_timer(p, at("begin"))),
        Instruction(at("begin"), "on_complete starts", lambda p: memory.bump(p, memory.calls, at("finish"))),
        Instruction(at("finish"), "on_complete ends", lambda p: memory.goto(p, after_callback)),
    ]


def evaluate_section(memory: Memory, variant: Variant, prefix: str, won: str, lost: str) -> Instructions:
    """`try_complete`: read the condition, and if it holds call `force_complete`; starts at `prefix`evaluate."""
    ready = won if variant.true_without_force else prefix + "force"
    body = [
        Instruction(
            prefix + "evaluate",
            "try_complete reads the condition",
            lambda p: memory.evaluate(p, ready, lost),
            {ready: "true", lost: "false"},
        )
    ]
    if not variant.true_without_force:
        body += force_section(memory, variant, prefix, won, lost)
    return body


def try_section(memory: Memory, variant: Variant, prefix: str, leave: str) -> Instructions:
    """`maybe_try_complete` or `safe_try_complete`, whichever the variant has; starts at `prefix`lock."""
    if variant.acquire is Acquire.BLOCK:
        return _safe_try(memory, variant, prefix, leave)
    if variant.acquire is Acquire.RETRY_ONCE:
        first = _maybe_try(memory, variant, prefix, leave, again=prefix + "again-lock")
        return first + _maybe_try(memory, variant, prefix + "again-", leave, again=leave)
    return _maybe_try(memory, variant, prefix, leave, again=prefix + "lock")


def _safe_try(memory: Memory, variant: Variant, prefix: str, leave: str) -> Instructions:
    unlock = prefix + "unlock"
    return [
        Instruction(prefix + "lock", "lock the operation", lambda p: memory.block(p, prefix + "held")),
        Instruction(
            prefix + "held",
            "completed?",
            lambda p: memory.branch(p, memory.completed, unlock, prefix + "evaluate"),
            {unlock: "yes", prefix + "evaluate": "no"},
        ),
        *evaluate_section(memory, variant, prefix, unlock, unlock),
        Instruction(unlock, "unlock", lambda p: memory.clear_flag(p, memory.lock, leave))
        if variant.unlocks
        else Instruction(unlock, "return without unlocking", lambda p: memory.goto(p, leave)),
    ]


def _maybe_try(memory: Memory, variant: Variant, prefix: str, leave: str, again: str) -> Instructions:
    """One pass of the try-lock loop; `again` is where a retry goes (after asking for `completed`)."""
    gives_up = variant.acquire is Acquire.GIVE_UP
    clears = variant.acquire in (Acquire.RETRY_FLAG, Acquire.RETRY_ONCE)
    held = leave if gives_up else prefix + "set-flag"
    entered = prefix + "clear" if clears else prefix + "evaluate"
    unlock, read, loop = prefix + "unlock", prefix + "read-flag", prefix + "loop"
    section = [
        Instruction(
            prefix + "lock",
            "try_lock",
            lambda p: memory.test_and_set(p, memory.lock, held, entered),
            {held: "held by another thread", entered: "taken"},
        )
    ]
    if clears:
        section.append(
            Instruction(
                entered,
                "clear the pending flag",
                lambda p: memory.clear_flag(p, memory.pending, prefix + "evaluate"),
            )
        )
    section += evaluate_section(memory, variant, prefix, unlock, unlock)
    after_unlock = leave if gives_up else read
    section.append(Instruction(unlock, "unlock", lambda p: memory.clear_flag(p, memory.lock, after_unlock)))
    if gives_up:
        return section
    last = again == leave
    retry = leave if last else loop
    section += [
        Instruction(
            read,
            "read the pending flag",
            lambda p: memory.branch(p, memory.pending, retry, leave),
            {} if last else {loop: "set, retry", leave: "clear, leave"},
        ),
        Instruction(
            prefix + "set-flag",
            "set the pending flag",
            lambda p: memory.test_and_set(p, memory.pending, leave, retry),
            {} if last else {loop: "was clear, retry", leave: "was set, leave"},
        ),
    ]
    if not last:
        section.append(
            Instruction(
                loop,
                "completed?",
                lambda p: memory.branch(p, memory.completed, leave, again),
                {leave: "yes", again: "no"},
            )
        )
    return section


def event(memory: Memory, variant: Variant, record: Record, key: int) -> Instructions:
    """Publish one event, then `check_and_complete` its key."""
    return [
        Instruction(
            "publish",
            f"make its part of the condition true (key k{key})",
            lambda p: memory.raise_flag(p, record.published, "look-up"),
        ),
        Instruction(
            "look-up",
            f"check_and_complete(k{key}): read the list",
            lambda p: memory.look_up(p, record, key, "look", END),
            {"look": "the operation is there", END: "nothing watched"},
        ),
        Instruction(
            "look",
            "completed?",
            lambda p: memory.branch(p, memory.completed, END, "lock"),
            {END: "yes", "lock": "no"},
        ),
        *try_section(memory, variant, "", END),
    ]


def registration(memory: Memory, variant: Variant, timed: bool) -> Instructions:
    """`try_complete_else_watch`; the timer task is added only if `timed`."""
    keys = range(len(memory.watched))
    after = "add-look" if timed else END
    if variant.register_locked:
        body = [
            Instruction("r-lock", "lock the operation", lambda p: memory.block(p, "first-evaluate")),
            *evaluate_section(memory, variant, "first-", "r-unlock", "see-0"),
        ]
        watched = "second-evaluate" if variant.recheck else "r-unlock"
        for key in keys:
            body += _watch(memory, key, watched if key == keys[-1] else f"see-{key + 1}", "r-unlock")
        if variant.recheck:
            body += evaluate_section(memory, variant, "second-", "r-unlock", "r-unlock")
        body.append(Instruction("r-unlock", "unlock", lambda p: memory.clear_flag(p, memory.lock, after)))
    else:
        body = evaluate_section(memory, variant, "first-", END, "see-0")
        for key in keys:
            last = "second-look" if variant.recheck else after
            following = last if key == keys[-1] else f"see-{key + 1}"
            if variant.check_before_each_watch and key != keys[-1]:
                prefix = f"between-{key}-"
                body += _watch(memory, key, prefix + "evaluate", END)
                body += evaluate_section(memory, variant, prefix, END, following)
            else:
                body += _watch(memory, key, following, END)
        if variant.recheck:
            body.append(
                Instruction(
                    "second-look",
                    "completed?",
                    lambda p: memory.branch(p, memory.completed, END, "second-lock"),
                    {END: "yes", "second-lock": "no"},
                )
            )
            body += try_section(memory, variant, "second-", after)
    return body + (_add_to_timer(memory, variant) if timed else [])


def _watch(memory: Memory, key: int, following: str, leave: str) -> Instructions:
    put = f"watch-{key}"
    return [
        Instruction(
            f"see-{key}",
            "completed?",
            lambda p: memory.branch(p, memory.completed, leave, put),
            {leave: "yes, stop", put: "no"},
        ),
        Instruction(
            put, f"watch under k{key}", lambda p: memory.raise_flag(p, memory.watched[key], following)
        ),
    ]


def _add_to_timer(memory: Memory, variant: Variant) -> Instructions:
    late = "late-look" if variant.cancel_after_late_add else END
    section = [
        Instruction(
            "add-look",
            "completed?",
            lambda p: memory.branch(p, memory.completed, END, "add"),
            {END: "yes", "add": "no"},
        ),
        Instruction("add", "add to the timer", lambda p: memory.arm_timer(p, late)),
    ]
    if variant.cancel_after_late_add:
        section += [
            Instruction(
                late,
                "completed meanwhile?",
                lambda p: memory.branch(p, memory.completed, "late-cancel", END),
                {END: "no", "late-cancel": "yes"},
            ),
            Instruction("late-cancel", "cancel the timer task", lambda p: memory.cancel_timer(p, END)),
        ]
    return section


def expiry(memory: Memory, variant: Variant) -> Instructions:
    """The executor's run of the timer task: `force_complete`, and `on_expiration` if it won."""
    lost = END if variant.expiry_needs_win else "expire"
    locks = variant.force is Force.UNDER_LOCK
    section = [
        Instruction(
            "take", "the time-out is due", lambda p: memory.take_timer(p, "peek" if locks else "force")
        )
    ]
    if locks:
        section += [
            Instruction(
                "peek",
                "force_complete: completed?",
                lambda p: memory.branch(p, memory.completed, lost, "lock"),
                {lost: "yes, lost", "lock": "no"},
            ),
            Instruction("lock", "lock the operation", lambda p: memory.block(p, "force")),
            Instruction("unlock-won", "unlock", lambda p: memory.clear_flag(p, memory.lock, "won")),
            Instruction("unlock-lost", "unlock", lambda p: memory.clear_flag(p, memory.lock, lost)),
        ]
    section += force_section(
        memory, variant, "", "unlock-won" if locks else "won", "unlock-lost" if locks else lost
    )
    return [
        *section,
        Instruction(
            "won", "force_complete returns true", lambda p: memory.raise_flag(p, memory.expiry_won, "expire")
        ),
        Instruction("expire", "on_expiration", lambda p: memory.bump(p, memory.expirations, END)),
    ]


def holder(memory: Memory) -> Instructions:
    """A thread that holds the operation's lock for its own business (KAFKA-8334), outside any check."""
    return [
        Instruction("hold", "lock the operation, for another purpose", lambda p: memory.block(p, "release")),
        Instruction("release", "unlock", lambda p: memory.clear_flag(p, memory.lock, END)),
    ]
