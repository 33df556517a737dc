package purgatorio

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	lateSlackNs = 10_000_000_000           // the allowed lateness of the machine
	stuck       = 20 * time.Second         // without progress
	never       = int64(600 * time.Second) // a time-out that would hide a lost completion if it passed
)

// race runs small programs on concurrent goroutines, round after round, and records the calls.
func race(promises Promises, factory Factory, folder string, rounds int, seed int64) error {
	if !slices.Contains(promises.Can, "real-time") {
		return fmt.Errorf("races need real time, which %s does not declare in Can", promises.Name)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if promises.LateNs != nil {
		promises.LateNs = Is(*promises.LateNs + lateSlackNs)
	}
	s := subject{promises: promises}
	for _, part := range []string{"timer", "purgatory"} {
		if !s.can(part) {
			continue
		}
		run := fmt.Sprintf("%s-%s-races-seed%d", promises.Name, part, seed)
		recorded := []string{"timer_add", "timer_cancel", "timer_fire", "quiesce"}
		if part == "purgatory" {
			recorded = append(promises.reported(ofOperations), "try_complete_else_watch", "check_and_complete", "cancel_for_key", "cancelled",
				"ready", "quiesce")
		}
		recorder, err := NewRecorder(filepath.Join(folder, run+".jsonl.gz"), promises, run, recorded)
		if err != nil {
			return err
		}
		recorder.paused = func(string, string) { dwell() }
		races := &races{subject: &s, recorder: recorder, dice: rand.New(rand.NewSource(seed))}
		if part == "timer" {
			races.timer = factory.Timer(false, 0)
		} else {
			races.purgatory = factory.Purgatory(false, 0)
		}
		for round := 0; round < rounds; round++ {
			if !together(races.program(round)) {
				return fmt.Errorf("%s: no progress for %v in round %d; send SIGQUIT for all stacks", run, stuck, round)
			}
		}
		races.rest()
		if err := recorder.Close(); err != nil {
			return err
		}
	}
	return nil
}

type races struct {
	*subject
	recorder  *Recorder
	dice      *rand.Rand
	timer     Timer
	purgatory Purgatory
}

// together starts all at once; false if they do not end.
func together(actors []func()) bool {
	var start, end sync.WaitGroup
	start.Add(len(actors))
	end.Add(len(actors))
	for _, actor := range actors {
		go func(actor func()) {
			defer end.Done()
			start.Done()
			start.Wait()
			actor()
		}(actor)
	}
	over := make(chan struct{})
	go func() { end.Wait(); close(over) }()
	select {
	case <-over:
		return true
	case <-time.After(stuck):
		return false
	}
}

func (r *races) program(round int) []func() {
	if r.timer != nil {
		return r.ofTimer(round)
	}
	return r.ofPurgatory(round)
}

func (r *races) ofTimer(round int) []func() {
	id := func(who int) string { return fmt.Sprintf("t-%d-%d", round, who) }
	unit := max(r.promises.UnitNs, 1)
	delayNs := func() int64 { return r.dice.Int63n(4_000_000) / unit * unit }
	add := func(name string, delayNs int64) (handle any) {
		done := r.recorder.call("timer_add", name, &delayNs)
		handle = r.timer.Add(func() {
			hooks := Hooks{ID: name, told: r.recorder}
			hooks.TimerFire(func() {})
		}, delayNs)
		done(result{})
		return handle
	}
	first, second, pauseNs := delayNs(), delayNs(), r.dice.Int63n(4_000_000)
	handles := make(chan any, 1)
	actors := []func(){
		func() { handles <- add(id(0), first) },
		func() { add(id(1), second) },
	}
	if r.can("cancel") {
		actors = append(actors, func() {
			handle := <-handles
			time.Sleep(time.Duration(pauseNs))
			done := r.recorder.call("timer_cancel", id(0), nil)
			cancelled, known := r.timer.Cancel(handle)
			if known {
				done(result{out: &cancelled})
			} else {
				done(result{})
			}
		})
	}
	return actors
}

func (r *races) ofPurgatory(round int) []func() {
	id, keys := fmt.Sprintf("op-%d", round), []string{fmt.Sprintf("a-%d", round), fmt.Sprintf("b-%d", round)}
	delayNs := never
	if round%4 == 0 {
		delayNs = r.dice.Int63n(2) * 1_000_000
	}
	hooks := &Hooks{ID: id, DelayNs: delayNs, told: r.recorder}
	operation := r.purgatory.New(hooks)
	var ready sync.Once // it becomes so once
	event := func(key string) func() {
		laterNs := r.dice.Int63n(500_000)
		return func() {
			// So that it comes before, during and after the registration.
			time.Sleep(time.Duration(laterNs))
			ready.Do(func() {
				since := r.recorder.now()
				hooks.ready.set()
				r.recorder.At("ready", map[string]any{"id": id, "t_call": since})
			})
			c := r.recorder.Call("check_and_complete", map[string]any{"keys": []string{key}})
			r.recorder.Return("check_and_complete", c, map[string]any{"out": r.purgatory.CheckAndComplete(key)})
		}
	}
	actors := []func(){
		func() {
			c := r.recorder.Call("try_complete_else_watch", map[string]any{"id": id, "keys": keys, "delay_ns": delayNs})
			out := r.purgatory.TryCompleteElseWatch(operation, keys)
			r.recorder.Return("try_complete_else_watch", c, map[string]any{"id": id, "out": asInt(out)})
		},
	}
	if round%8 == 0 {
		return actors // it expires
	}
	actors = append(actors, event(keys[0]))
	if round%3 == 0 {
		actors = append(actors, event(keys[1]))
	} else if round%3 == 1 && r.can("force") {
		actors = append(actors, func() { r.purgatory.ForceComplete(operation) })
	}
	return actors
}

// rest waits until nothing is under way and reads the sizes.
func (r *races) rest() {
	time.Sleep(50 * time.Millisecond)
	state := map[string]any{}
	if r.timer != nil {
		r.timer.Settle(nil)
		if size := r.timer.Size(); size >= 0 {
			state["delayed"] = size
		}
		r.timer.Close()
	} else {
		r.purgatory.Settle(nil)
		if size := r.purgatory.Watched(); size >= 0 {
			state["watched"] = size
		}
		if size := r.purgatory.Delayed(); size >= 0 {
			state["delayed"] = size
		}
		r.purgatory.Close()
	}
	fields := map[string]any{}
	if len(state) > 0 {
		fields["state"] = state
	}
	r.recorder.At("quiesce", fields)
}
