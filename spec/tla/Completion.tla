------------------------------ MODULE Completion ------------------------------
(* The completion protocol of one delayed operation: the twin of the Python    *)
(* model purgatorio_spec.model.completion without registration and time-out.   *)
(* N threads each make one part of the condition true and then check the key;  *)
(* the operation is watched from the start. Labels and steps are the Python    *)
(* model's, one action for each. `calls`, `wins` and `obliged` only observe.   *)
(*                                                                             *)
(* Distinct states, compared by a test with the Python search:                 *)
(* states: pending-flag 2 = 708                                                *)
(* states: pending-flag 3 = 17471                                              *)
(* states: pending-flag 4 = 320152                                             *)
(* states: locked 2 = 215                                                      *)
(* states: locked 3 = 2375                                                     *)
(* states: locked 4 = 21855                                                    *)
EXTENDS Naturals

CONSTANTS N, Dialect          \* Dialect is "pending-flag" or "locked"

Threads == 1..N

VARIABLES pc, published, obliged, completed, lock, pending, calls, wins
vars == <<pc, published, obliged, completed, lock, pending, calls, wins>>

Ready == \A t \in Threads : published[t]
Count(n) == IF n < 2 THEN n + 1 ELSE n
Goto(t, label) == pc' = [pc EXCEPT ![t] = label]
Locked == Dialect = "locked"

Init ==
  /\ pc = [t \in Threads |-> "publish"]
  /\ published = [t \in Threads |-> FALSE]
  /\ obliged = [t \in Threads |-> FALSE]
  /\ completed = FALSE /\ lock = FALSE /\ pending = FALSE
  /\ calls = 0 /\ wins = 0

Publish(t) ==
  /\ pc[t] = "publish" /\ Goto(t, "look-up")
  /\ published' = [published EXCEPT ![t] = TRUE]
  /\ UNCHANGED <<obliged, completed, lock, pending, calls, wins>>

LookUp(t) ==
  /\ pc[t] = "look-up" /\ Goto(t, "look")
  /\ obliged' = [obliged EXCEPT ![t] = Ready]
  /\ UNCHANGED <<published, completed, lock, pending, calls, wins>>

Look(t) ==
  /\ pc[t] = "look" /\ Goto(t, IF completed THEN "end" ELSE "lock")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, calls, wins>>

BlockingLock(t) ==
  /\ Locked /\ pc[t] = "lock" /\ ~lock
  /\ lock' = TRUE /\ Goto(t, "held")
  /\ UNCHANGED <<published, obliged, completed, pending, calls, wins>>

Held(t) ==
  /\ pc[t] = "held" /\ Goto(t, IF completed THEN "unlock" ELSE "evaluate")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, calls, wins>>

TryLock(t) ==
  /\ ~Locked /\ pc[t] = "lock"
  /\ lock' = TRUE /\ Goto(t, IF lock THEN "set-flag" ELSE "clear")
  /\ UNCHANGED <<published, obliged, completed, pending, calls, wins>>

Clear(t) ==
  /\ pc[t] = "clear" /\ pending' = FALSE /\ Goto(t, "evaluate")
  /\ UNCHANGED <<published, obliged, completed, lock, calls, wins>>

Evaluate(t) ==
  /\ pc[t] = "evaluate" /\ Goto(t, IF Ready THEN "force" ELSE "unlock")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, calls, wins>>

Force(t) ==
  /\ pc[t] = "force" /\ completed' = TRUE
  /\ Goto(t, IF completed THEN "unlock" ELSE "cancel")
  /\ wins' = IF completed THEN wins ELSE Count(wins)
  /\ UNCHANGED <<published, obliged, lock, pending, calls>>

Cancel(t) ==
  /\ pc[t] = "cancel" /\ Goto(t, "begin")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, calls, wins>>

Begin(t) ==
  /\ pc[t] = "begin" /\ calls' = Count(calls) /\ Goto(t, "finish")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, wins>>

Finish(t) ==
  /\ pc[t] = "finish" /\ Goto(t, "unlock")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, calls, wins>>

Unlock(t) ==
  /\ pc[t] = "unlock" /\ lock' = FALSE
  /\ Goto(t, IF Locked THEN "end" ELSE "read-flag")
  /\ UNCHANGED <<published, obliged, completed, pending, calls, wins>>

ReadFlag(t) ==
  /\ pc[t] = "read-flag" /\ Goto(t, IF pending THEN "loop" ELSE "end")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, calls, wins>>

SetFlag(t) ==
  /\ pc[t] = "set-flag" /\ pending' = TRUE
  /\ Goto(t, IF pending THEN "end" ELSE "loop")
  /\ UNCHANGED <<published, obliged, completed, lock, calls, wins>>

Loop(t) ==
  /\ pc[t] = "loop" /\ Goto(t, IF completed THEN "end" ELSE "lock")
  /\ UNCHANGED <<published, obliged, completed, lock, pending, calls, wins>>

Step(t) ==
  \/ Publish(t) \/ LookUp(t) \/ Look(t) \/ BlockingLock(t) \/ Held(t) \/ TryLock(t) \/ Clear(t)
  \/ Evaluate(t) \/ Force(t) \/ Cancel(t) \/ Begin(t) \/ Finish(t) \/ Unlock(t)
  \/ ReadFlag(t) \/ SetFlag(t) \/ Loop(t)

Next == \E t \in Threads : Step(t)
Spec == Init /\ [][Next]_vars /\ \A t \in Threads : WF_vars(Step(t))

Over == \A t \in Threads : pc[t] = "end"
Once == calls < 2 /\ wins < 2                                    \* O1
NoLostCompletion == Over => completed                            \* O4
CompletedAtReturn ==                                             \* O4, locked
  Locked => \A t \in Threads : obliged[t] /\ pc[t] = "end" => completed
NoOverlap ==                                                     \* O6, locked
  Locked => ~\E t, u \in Threads : pc[t] = "finish" /\ pc[u] \in {"evaluate", "force"}
OnlyReady == completed => Ready                                  \* O2
Ends == <>Over                                                   \* P3
===============================================================================
