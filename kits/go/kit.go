// Package purgatorio plugs a timer or a purgatory that is written in Go into the purgatorio oracle.
//
// An adapter implements [Timer], [Purgatory] or both, says in [Promises] what they are held to, and calls [Run] from its
// main function. The program then speaks the subject protocol on standard input and output, which
// `purgatorio verify --command ./adapter` drives; with the arguments `races FOLDER` it races its own goroutines and writes
// traces for `purgatorio check FOLDER`. The package judges nothing.
package purgatorio

import (
	"flag"
	"fmt"
	"os"
)

// Promises has the name of an implementation and its promises. A constant that is nil promises nothing. Times are nanoseconds.
type Promises struct {
	Name    string // of the implementation, as its makers call it
	Version string
	Profile string // "timer", "timer-cancel-barrier", "locked", "pending-flag" or another of docs/clauses.md

	TickNs      *int64 // granularity
	WheelSize   *int64 // buckets of one level
	EarlyNs     *int64 // how long before its deadline a task may fire
	EarlyRealNs *int64 // the same in real time, if it differs there
	LateNs      *int64 // how long after its deadline a task may fire, if the clock stops at every tick
	LateRealNs  *int64 // how long after its deadline a task may fire in real time, if no other program takes the processor

	PurgeInterval *int64 // completed operations that may stay watched

	UnitNs       int64  // times and delays are multiples of this number; 0: of a nanosecond
	LeastDelayNs int64  // the smallest delay that the timer accepts
	MostDelayNs  *int64 // the largest
	Lanes        int    // the number of callers, 1 to 16; 0: one caller

	CatchUp string // fixed rate: the rule for missed runs: "burst", "once", "skip" or "restart"
	Turn    string // a task that another task adds with delay 0 runs in the "same" AdvanceTo, or in the "next"

	// Can names capabilities of the protocol (docs/measured/subject-messages.md): "timer", "virtual-time", "cancel", ...
	Can []string

	// Lacks names the hooks that the adapter never calls: "timer_add", "timer_cancel" and "timer_fire" if the time-outs
	// are inside code that it cannot reach. Then the clauses of timers are SKIPPED.
	Lacks []string

	// Steps says that the code under test calls [Step].
	Steps bool
}

// Is returns a pointer to the value, for a constant of [Promises].
func Is(value int64) *int64 { return &value }

// Factory creates the subject of each run. In virtual time, the time is nowNs until the first AdvanceTo.
// A part that Promises.Can does not name may be nil.
type Factory struct {
	Timer     func(virtual bool, nowNs int64) Timer
	Purgatory func(virtual bool, nowNs int64) Purgatory
}

// Timer is a timer that is driven. Several goroutines may call all methods but AdvanceTo and Close. A panic is the error of
// the call. Embed [Plain], and leave out the methods that you do not need.
type Timer interface {
	// Add runs the task when delayNs have passed. The result identifies the task.
	Add(task func(), delayNs int64) (handle any)
	// AddAgain adds a task again: a finished task starts again, a waiting task is moved.
	AddAgain(handle any, delayNs int64)
	// Cancel says whether this call cancelled the task; known is false if the timer does not tell. The handle is nil
	// where a cancel comes before its Add has returned.
	Cancel(handle any) (cancelled, known bool)
	// Size is the number of pending tasks, or below zero if it is not known.
	Size() int
	Driven
}

// Periodic is a [Timer] with periodic tasks: each runs until it is cancelled. Only declared methods are called.
type Periodic interface {
	// FixedRate runs the task when firstNs have passed, and then at every period from that deadline on.
	FixedRate(task func(), firstNs, periodNs int64) (handle any)
	// FixedDelay runs the task when firstNs have passed, and then a period after the end of each run.
	FixedDelay(task func(), firstNs, periodNs int64) (handle any)
}

// Resettable is a [Timer] whose deadlines can be moved.
type Resettable interface {
	// Reset moves the deadline of a task to delayNs from now. moved is false if the task has ended: then nothing is
	// armed. known is false if a goroutine may have begun to run the task, or if the timer does not tell.
	Reset(handle any, delayNs int64) (moved, known bool)
}

// Purgatory is a purgatory that is driven, under the rules of [Timer].
type Purgatory interface {
	// New makes an operation that is in no list yet, whose callbacks hand on to hooks.
	New(hooks *Hooks) (operation any)
	// TryCompleteElseWatch says whether this call completed the operation.
	TryCompleteElseWatch(operation any, keys []string) bool
	// CheckAndComplete counts what this call completed.
	CheckAndComplete(key string) int
	// ForceComplete says whether this call completed the operation.
	ForceComplete(operation any) bool
	// CancelForKey removes the operations of the key without completing them.
	CancelForKey(key string) []any
	// Watched counts entries of the watch lists and Delayed tasks of the timer; below zero if that is not known.
	Watched() int
	Delayed() int
	Driven
}

// Listed is a purgatory that counts the keys that have a list, for P4.
type Listed interface {
	Keys() int
}

// Driven is what timers and purgatories have in common.
type Driven interface {
	// AdvanceTo says that it is nowNs now, in virtual time, and runs all that is due before it returns.
	AdvanceTo(nowNs int64)
	// Settle returns when nothing is under way any more, or when interrupted is closed: then a goroutine is paused. In
	// virtual time it is called after every call, in real time at the end of a run.
	Settle(interrupted <-chan struct{})
	// Close ends the run and its goroutines.
	Close()
}

// Plain stands for methods that an implementation does not have; embed it.
type Plain struct{}

// AddAgain panics: "add-again" is not declared.
func (Plain) AddAgain(any, int64) { panic("add-again is not declared") }

// FixedRate panics: "fixed-rate" is not declared.
func (Plain) FixedRate(func(), int64, int64) any { panic("fixed-rate is not declared") }

// FixedDelay panics: "fixed-delay" is not declared.
func (Plain) FixedDelay(func(), int64, int64) any { panic("fixed-delay is not declared") }

// Cancel panics: "cancel" is not declared.
func (Plain) Cancel(any) (cancelled, known bool) { panic("cancel is not declared") }

// ForceComplete panics: "force" is not declared.
func (Plain) ForceComplete(any) bool { panic("force is not declared") }

// CancelForKey panics: "cancel-key" is not declared.
func (Plain) CancelForKey(string) []any { panic("cancel-key is not declared") }

// Size is not known.
func (Plain) Size() int { return -1 }

// Watched is not known.
func (Plain) Watched() int { return -1 }

// Delayed is not known.
func (Plain) Delayed() int { return -1 }

// AdvanceTo panics: "virtual-time" is not declared.
func (Plain) AdvanceTo(int64) { panic("virtual-time is not declared") }

// Settle has nothing to wait for.
func (Plain) Settle(<-chan struct{}) {}

// Close has nothing to end.
func (Plain) Close() {}

// Run is the main function of an adapter. It does what the arguments say and ends the process: 0 done, 1 races that got
// stuck, 2 wrong arguments.
func Run(promises Promises, factory Factory) {
	if len(os.Args) == 1 {
		serve(promises, factory, os.Stdin, os.Stdout)
		os.Exit(0)
	}
	options := flag.NewFlagSet("races FOLDER", flag.ExitOnError)
	rounds := options.Int("rounds", 2000, "rounds of each part")
	seed := options.Int64("seed", 1, "of the plan")
	if os.Args[1] != "races" || len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "no argument: the subject protocol; races FOLDER [--rounds N] [--seed N]: races, as traces")
		os.Exit(2)
	}
	_ = options.Parse(os.Args[3:])
	if err := race(promises, factory, os.Args[2], *rounds, *seed); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Hooks tell what happens to one operation, from within its callbacks. Each callback of the operation hands on to the
// method of the same name, with its own code as the argument.
type Hooks struct {
	ID      string // unique in a run
	DelayNs int64  // its time-out
	Units   int64  // with `amounts`: the number of units that it waits for
	told    telling
	ready   flag32
}

// TryComplete is the condition: it calls force if the operation is ready, and says whether that completed it.
func (h *Hooks) TryComplete(force func() bool) bool {
	return h.answer("try_complete", func() bool {
		ready := h.ready.isSet()
		h.told.pause("try_complete", h.ID)
		return ready && force()
	})
}

// ForceComplete completes the operation by its own code.
func (h *Hooks) ForceComplete(own func() bool) bool {
	return h.answer("force_complete", func() bool {
		h.told.pause("force_complete", h.ID)
		return own()
	})
}

// OnComplete is the callback of completion, OnExpiration that of expiration. Without TimerFire, the goroutine that completed
// the operation calls OnExpiration.
func (h *Hooks) OnComplete()   { h.within("on_complete", nil, func() {}) }
func (h *Hooks) OnExpiration() { h.within("on_expiration", nil, func() {}) }

// TimerAdd gives the time-out to the timer, and TimerCancel takes it back.
func (h *Hooks) TimerAdd(own func())    { h.within("timer_add", &h.DelayNs, own) }
func (h *Hooks) TimerCancel(own func()) { h.within("timer_cancel", nil, own) }

// TimerFire runs when the time-out is over.
func (h *Hooks) TimerFire(own func()) { h.within("timer_fire", nil, own) }

func (h *Hooks) answer(f string, own func() bool) (out bool) {
	done := h.told.call(f, h.ID, nil)
	defer func() {
		problem := recover()
		done(result{out: &out, panicked: problem})
		if problem != nil {
			panic(problem)
		}
	}()
	return own()
}

func (h *Hooks) within(f string, delayNs *int64, own func()) {
	done := h.told.call(f, h.ID, delayNs)
	defer func() {
		problem := recover()
		done(result{panicked: problem})
		if problem != nil {
			panic(problem)
		}
	}()
	h.told.pause(f, h.ID)
	own()
}
