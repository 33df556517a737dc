--------------------------------- MODULE Wheel ---------------------------------
(* The hierarchical wheel over a small clock: the twin of the Python model      *)
(* purgatorio_spec.model.wheel without cancels. Levels are counted from 1 here. *)
(* Equal tasks are interchangeable: `tasks` maps <<deadline, level, slot>> to   *)
(* how many there are. Ties of the delay queue are a choice (Flush).            *)
(*                                                                              *)
(* Distinct states, compared by a test with the Python search:                  *)
(* states: tick 1 size 2 tasks 2 = 1237                                         *)
(* states: tick 1 size 2 tasks 3 = 5681                                         *)
(* states: tick 1 size 2 tasks 4 = 20541                                        *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Tick, Size, Start, Delays, Tasks, Ticks

VARIABLES now, draining, left, clocks, tasks, queue, firedTick
vars == <<now, draining, left, clocks, tasks, queue, firedTick>>

Never == -1
RECURSIVE Power(_)
Power(level) == IF level = 0 THEN 1 ELSE Size * Power(level - 1)
TickOf(level) == Tick * Power(level - 1)
Floor(time, tick) == time - (time % tick)

(* The level that reaches the deadline, with the clocks of the levels made on the way. *)
RECURSIVE Reach(_, _, _)
Reach(cs, level, deadline) ==
  IF deadline < cs[level] + TickOf(level + 1) THEN <<level, cs>>
  ELSE LET grown == IF level = Len(cs) THEN Append(cs, Floor(cs[level], TickOf(level + 1))) ELSE cs
       IN  Reach(grown, level + 1, deadline)

Expired(cs, deadline) == deadline < cs[1] + Tick
TaskAt(level, deadline) == <<deadline, level, (deadline \div TickOf(level)) % Size>>
Offer(q, task) ==
  {b \in q : ~(b[2] = task[2] /\ b[3] = task[3])}
    \cup {<<Floor(task[1], TickOf(task[2])), task[2], task[3]>>}
Plus(bag, task, n) ==
  [x \in DOMAIN bag \cup {task} |->
     (IF x \in DOMAIN bag THEN bag[x] ELSE 0) + (IF x = task THEN n ELSE 0)]
Only(bag, kept) == [x \in kept |-> bag[x]]

Init ==
  /\ now = Start /\ draining = FALSE /\ left = Tasks
  /\ clocks = <<Floor(Start, Tick)>> /\ tasks = [x \in {} |-> 0] /\ queue = {}
  /\ firedTick = Never

Add(delay) ==
  LET deadline == now + delay IN
  /\ ~draining /\ left > 0 /\ left' = left - 1
  /\ IF Expired(clocks, deadline)
     THEN UNCHANGED <<clocks, tasks, queue>>
     ELSE LET found == Reach(clocks, 1, deadline)
              task  == TaskAt(found[1], deadline)
          IN  /\ clocks' = found[2]
              /\ tasks' = Plus(tasks, task, 1)
              /\ queue' = Offer(queue, task)
  /\ firedTick' = Never
  /\ UNCHANGED <<now, draining>>

Clock ==
  /\ ~draining /\ now < Start + Ticks * Tick /\ now' = now + Tick
  /\ UNCHANGED <<draining, left, clocks, tasks, queue, firedTick>>

Drain ==
  /\ ~draining /\ draining' = TRUE /\ firedTick' = Never
  /\ UNCHANGED <<now, left, clocks, tasks, queue>>

(* Level l moves only if every level below it moved. *)
RECURSIVE Advance(_, _, _)
Advance(cs, level, time) ==
  IF level > Len(cs) \/ time < cs[level] + TickOf(level) THEN cs
  ELSE Advance([cs EXCEPT ![level] = Floor(time, TickOf(level))], level + 1, time)

RECURSIVE PutAll(_, _, _, _, _)
PutAll(moved, cs, bag, counts, q) ==      \* counts: how many of each moved task there are
  IF moved = {} THEN <<bag, q>>
  ELSE LET task == CHOOSE x \in moved : TRUE
           new  == TaskAt(Reach(cs, 1, task[1])[1], task[1])
       IN  IF Expired(cs, task[1])
           THEN PutAll(moved \ {task}, cs, bag, counts, q)
           ELSE PutAll(moved \ {task}, cs, Plus(bag, new, counts[task]), counts, Offer(q, new))

Max(set) == CHOOSE x \in set : \A y \in set : y <= x

Flush(bucket) ==
  LET cs    == Advance(clocks, 1, bucket[1])
      moved == {x \in DOMAIN tasks : x[2] = bucket[2] /\ x[3] = bucket[3]}
      put   == PutAll(moved, cs, Only(tasks, DOMAIN tasks \ moved), tasks, queue \ {bucket})
      fired == {x[1] \div Tick : x \in {y \in moved : Expired(cs, y[1])}}
  IN
  /\ draining /\ bucket[1] <= now /\ \A other \in queue : bucket[1] <= other[1]
  /\ clocks' = cs /\ tasks' = put[1] /\ queue' = put[2]
  /\ firedTick' = IF fired = {} THEN firedTick ELSE Max(fired)
  /\ UNCHANGED <<now, draining, left>>

Drained ==
  /\ draining /\ \A bucket \in queue : bucket[1] > now
  /\ draining' = FALSE /\ firedTick' = Never
  /\ UNCHANGED <<now, left, clocks, tasks, queue>>

Next == Clock \/ Drain \/ Drained \/ (\E delay \in Delays : Add(delay)) \/ (\E b \in queue : Flush(b))
Spec == Init /\ [][Next]_vars

(* No bucket holds two ticks, and each is queued for the start of its tick. *)
OneTick == \A x \in DOMAIN tasks : <<Floor(x[1], TickOf(x[2])), x[2], x[3]>> \in queue
Floors == \A level \in 2..Len(clocks) : clocks[level] = Floor(clocks[level - 1], TickOf(level))
(* T2: what a drain leaves behind is not due. *)
NotLate == [][Drained => \A x \in DOMAIN tasks : Floor(x[1], Tick) > now]_vars
(* T1: what a flush fires is due. *)
NotEarly == [][\A b \in queue : Flush(b) =>
  \A x \in DOMAIN tasks : (x[2] = b[2] /\ x[3] = b[3] /\ Expired(clocks', x[1])) => Floor(x[1], Tick) <= now]_vars

(* What waits for a deadline, in whichever bucket, and whether its tick has come. *)
RECURSIVE Sum(_, _)
Sum(bag, set) == IF set = {} THEN 0 ELSE LET x == CHOOSE x \in set : TRUE IN bag[x] + Sum(bag, set \ {x})
Pending(bag, d) == Sum(bag, {x \in DOMAIN bag : x[1] = d})
Due(d) == Floor(d, Tick) <= now
Deadlines == {x[1] : x \in DOMAIN tasks} \cup {x[1] : x \in DOMAIN tasks'}
(* T3: an add puts one task more under its own deadline, or fires it at once, where it is due. *)
AddRefines == [][\A delay \in Delays : Add(delay) =>
  \/ \A d \in Deadlines \cup {now + delay} :
       Pending(tasks', d) = Pending(tasks, d) + (IF d = now + delay THEN 1 ELSE 0)
  \/ Due(now + delay) /\ \A d \in Deadlines : Pending(tasks', d) = Pending(tasks, d)]_vars
(* T1, T3: a flush takes away what is due, in the order of the ticks, and nothing else. *)
FlushRefines == [][\A b \in queue : Flush(b) => \A d \in Deadlines :
  /\ Pending(tasks', d) <= Pending(tasks, d)
  /\ Pending(tasks', d) < Pending(tasks, d) => Due(d) /\ d \div Tick >= firedTick]_vars
OthersKeep == [][(Clock \/ Drain \/ Drained) => tasks' = tasks]_vars
Monotone == [][\A l \in 1..Len(clocks) : clocks[l] <= clocks'[l]]_vars
(* A flush empties its bucket, and what it moves goes to a lower level. *)
Cascades == [][\A b \in queue : Flush(b) => \A x \in DOMAIN tasks' :
  /\ ~(x[2] = b[2] /\ x[3] = b[3])
  /\ (x \notin DOMAIN tasks \/ (x \in DOMAIN tasks /\ tasks'[x] > tasks[x])) => x[2] < b[2]]_vars
(* T7: a drain ends. *)
Fair == Spec /\ WF_vars(Drained \/ \E b \in queue : Flush(b))
DrainEnds == draining ~> ~draining
===============================================================================
