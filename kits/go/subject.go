package purgatorio

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const protocol = "purgatorio-subject/1.2"

var ofOperations = []string{
	"try_complete", "force_complete", "on_complete", "on_expiration", "timer_add", "timer_cancel", "timer_fire",
}

// message is a line of the driver.
type message struct {
	M       string   `json:"m"`
	N       int64    `json:"n"`
	Part    string   `json:"part"`
	Time    string   `json:"time"`
	NowNs   int64    `json:"now_ns"`
	Gates   []string `json:"gates"`
	ID      string   `json:"id"`
	Key     string   `json:"key"`
	Keys    []string `json:"keys"`
	DelayNs int64    `json:"delay_ns"`
	Units   int64    `json:"units"`
	Kind    string   `json:"kind"`
	Period  int64    `json:"period_ns"`
	Lane    int      `json:"lane"`
	Hold    *int64   `json:"hold"`
	Holds   []int64  `json:"holds"`
	Fail    int      `json:"fail"`
	Step    *int     `json:"step"`
	Again   *int     `json:"again"`
	Settle  *int     `json:"settle"`
	Drain   int      `json:"drain"`
}

type subject struct {
	promises   Promises
	factory    Factory
	reports    []string
	lock       sync.Mutex // of out
	out        *bufio.Writer
	holds      atomic.Int64
	current    atomic.Pointer[run]
	unanswered sync.WaitGroup
}

// under says of each goroutine which call it makes, and at which of its steps it is to wait.
type under struct {
	call  int64
	steps []int
	seen  int
}

type run struct {
	*subject
	virtual   bool
	gates     []string
	timer     Timer
	purgatory Purgatory
	lanes     []chan message

	lock     sync.Mutex
	over     bool
	calls    map[uint64]*under
	handles  map[string]any
	names    map[any]string
	hooks    map[string]*Hooks
	ready    map[string]bool
	held     map[int64]chan message
	settling map[chan struct{}]uint64
	crowd    crowd
}

// failure is the panic value of a callback that the driver makes fail.
type failure struct{}

func serve(promises Promises, factory Factory, in io.Reader, out io.Writer) {
	s := &subject{promises: promises, factory: factory, out: bufio.NewWriter(out), reports: []string{"timer_fire"}}
	if s.can("purgatory") {
		s.reports = promises.reported(ofOperations)
	}
	stepping.Store(nil)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call message
		err := json.Unmarshal(lines.Bytes(), &call)
		r := s.current.Load()
		if err != nil || (r == nil && call.M != "describe" && call.M != "start") {
			fmt.Fprintf(os.Stderr, "no call of the subject protocol, or one before start: %q\n", lines.Text())
			os.Exit(2)
		}
		switch {
		case call.M == "describe":
			s.say(s.description(call.N))
		case call.M == "start":
			if r != nil {
				r.abandon()
			}
			answer := map[string]any{"m": "answer", "n": call.N}
			if problem := s.start(call); problem != nil {
				answer["err"] = typeOf(problem)
			}
			s.say(answer)
		case call.M == "go":
			s.say(map[string]any{"m": "answer", "n": call.N})
			r.resume(call)
		case call.Hold != nil:
			r.lock.Lock()
			there := r.held[*call.Hold]
			r.lock.Unlock()
			there <- call
		default:
			s.unanswered.Add(1)
			r.lanes[call.Lane] <- call
		}
	}
	// Calls that were read are answered, except a call that waits for the driver.
	answered := make(chan struct{})
	go func() { s.unanswered.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(time.Second):
	}
}

// reported is the functions without those that the adapter never reports.
func (p Promises) reported(functions []string) []string {
	return slices.DeleteFunc(slices.Clone(functions), func(f string) bool { return slices.Contains(p.Lacks, f) })
}

func (s *subject) can(capability string) bool { return slices.Contains(s.promises.Can, capability) }

func (s *subject) description(n int64) map[string]any {
	p := s.promises
	gates := s.reports
	if p.Steps {
		gates = append(slices.Clone(gates), "step")
	}
	line := map[string]any{
		"m": "description", "n": n, "protocol": protocol, "name": p.Name, "version": p.Version, "language": "Go",
		"capabilities": p.Can, "reports": s.reports, "gates": gates, "lanes": max(p.Lanes, 1),
		"unit_ns": max(p.UnitNs, 1), "least_delay_ns": p.LeastDelayNs,
	}
	for name, word := range map[string]string{"profile": p.Profile, "catch_up": p.CatchUp, "turn": p.Turn} {
		if word != "" {
			line[name] = word
		}
	}
	for name, value := range map[string]*int64{
		"tick_ns": p.TickNs, "wheel_size": p.WheelSize, "early_ns": p.EarlyNs, "early_real_ns": p.EarlyRealNs,
		"late_ns": p.LateNs, "late_real_ns": p.LateRealNs, "purge_interval": p.PurgeInterval, "most_delay_ns": p.MostDelayNs,
	} {
		if value != nil {
			line[name] = *value
		}
	}
	return line
}

func (s *subject) say(line map[string]any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	_, _ = s.out.Write(append(text, '\n'))
	if s.out.Flush() != nil {
		os.Exit(4) // the driver has gone
	}
}

func (s *subject) start(call message) (problem any) {
	defer func() { problem = recover() }()
	r := &run{
		subject: s, virtual: call.Time == "virtual", gates: call.Gates, calls: map[uint64]*under{}, handles: map[string]any{},
		names: map[any]string{}, hooks: map[string]*Hooks{}, ready: map[string]bool{}, held: map[int64]chan message{},
		settling: map[chan struct{}]uint64{},
	}
	if call.Part == "timer" {
		r.timer = s.factory.Timer(r.virtual, call.NowNs)
	} else {
		r.purgatory = s.factory.Purgatory(r.virtual, call.NowNs)
	}
	for lane := 0; lane < max(s.promises.Lanes, 1); lane++ {
		calls := make(chan message, 1024)
		r.lanes = append(r.lanes, calls)
		go func() {
			for call := range calls {
				r.make(call)
				s.unanswered.Done()
			}
		}()
	}
	s.current.Store(r)
	if slices.Contains(r.gates, "step") {
		stepping.Store(r)
	} else {
		stepping.Store(nil)
	}
	return nil
}

// report writes a line unless the run has ended, because a late goroutine must not write into the next run.
func (r *run) report(line map[string]any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if !r.over {
		r.say(line)
	}
}

func (r *run) abandon() {
	r.lock.Lock()
	stopped := r.over
	r.over = true
	for _, there := range r.held {
		there <- message{M: "go"}
	}
	r.lock.Unlock()
	for _, calls := range r.lanes {
		close(calls)
	}
	if !stopped {
		go func() {
			defer func() { _ = recover() }()
			r.driven().Close()
		}()
	}
}

func (r *run) resume(call message) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, hold := range call.Holds {
		r.held[hold] <- call
		delete(r.held, hold)
	}
}

func (r *run) driven() Driven {
	if r.timer != nil {
		return r.timer
	}
	return r.purgatory
}

// make makes a call on this goroutine and answers it.
func (r *run) make(call message) {
	me := goroutine()
	mine := &under{call: call.N}
	for _, step := range []*int{call.Step, call.Again} {
		if step != nil {
			mine.steps = append(mine.steps, *step)
		}
	}
	r.lock.Lock()
	before := r.calls[me]
	r.calls[me] = mine
	r.lock.Unlock()
	line := map[string]any{"m": "answer", "n": call.N}
	func() {
		defer func() {
			if problem := recover(); problem != nil {
				line["err"] = typeOf(problem)
				if _, told := problem.(failure); !told {
					fmt.Fprintf(os.Stderr, "%v\n%s", problem, debug.Stack())
				}
			}
		}()
		r.answer(call, line)
	}()
	r.lock.Lock()
	if before == nil {
		delete(r.calls, me)
	} else {
		r.calls[me] = before
	}
	r.lock.Unlock()
	if call.M == "stop" {
		r.say(line)
	} else {
		r.report(line)
	}
}

func (r *run) answer(call message, line map[string]any) {
	switch call.M {
	case "stop":
		r.lock.Lock()
		r.over = call.Drain == 0
		r.lock.Unlock()
		r.driven().Close()
		return
	case "advance":
		r.driven().AdvanceTo(call.NowNs)
	case "gauge", "quiesce":
	case "add", "cancel", "repeat", "reset":
		r.ofTimer(call, line)
	default:
		r.ofPurgatory(call, line)
	}
	if call.M == "quiesce" || r.virtual && (call.Settle == nil || *call.Settle != 0) {
		r.settle()
	}
	if call.M == "gauge" || call.M == "quiesce" {
		r.sizes(line)
	}
}

func (r *run) ofTimer(call message, line map[string]any) {
	r.lock.Lock()
	handle, known := r.handles[call.ID]
	r.lock.Unlock()
	switch {
	case call.M == "cancel" && !known:
		// It comes before its add has returned: the adapter has no handle yet.
		line["out"] = asInt(false)
	case call.M == "cancel":
		if cancelled, tells := r.timer.Cancel(handle); tells {
			line["out"] = asInt(cancelled)
		}
	case call.M == "reset":
		if moved, tells := r.timer.(Resettable).Reset(handle, call.DelayNs); tells {
			line["out"] = asInt(moved)
		}
	case known:
		r.timer.AddAgain(handle, call.DelayNs)
	default:
		handle = r.newTask(call)
		r.lock.Lock()
		r.handles[call.ID] = handle
		r.lock.Unlock()
	}
}

func (r *run) newTask(call message) (handle any) {
	task := func() {
		hooks := Hooks{ID: call.ID, told: r}
		hooks.TimerFire(func() {})
	}
	switch call.Kind {
	case "fixed-rate":
		return r.timer.(Periodic).FixedRate(task, call.DelayNs, call.Period)
	case "fixed-delay":
		return r.timer.(Periodic).FixedDelay(task, call.DelayNs, call.Period)
	}
	return r.timer.Add(task, call.DelayNs)
}

func (r *run) ofPurgatory(call message, line map[string]any) {
	switch call.M {
	case "register":
		hooks := &Hooks{ID: call.ID, DelayNs: call.DelayNs, Units: max(call.Units, 1), told: r}
		operation := r.purgatory.New(hooks)
		r.lock.Lock()
		r.handles[call.ID], r.names[operation], r.hooks[call.ID] = operation, call.ID, hooks
		if r.ready[call.ID] {
			hooks.ready.set()
		}
		r.lock.Unlock()
		line["out"] = asInt(r.purgatory.TryCompleteElseWatch(operation, call.Keys))
	case "ready":
		r.lock.Lock()
		r.ready[call.ID] = true
		if hooks := r.hooks[call.ID]; hooks != nil {
			hooks.ready.set()
		}
		r.lock.Unlock()
	case "check":
		line["out"] = r.purgatory.CheckAndComplete(call.Key)
	case "force":
		r.lock.Lock()
		operation := r.handles[call.ID]
		r.lock.Unlock()
		line["out"] = asInt(r.purgatory.ForceComplete(operation))
	case "cancel_key":
		ids := []string{}
		for _, operation := range r.purgatory.CancelForKey(call.Key) {
			r.lock.Lock()
			ids = append(ids, r.names[operation])
			r.lock.Unlock()
		}
		line["ids"] = ids
	default:
		panic("unknown call " + call.M)
	}
}

func (r *run) sizes(line map[string]any) {
	watched, delayed := -1, -1
	if r.timer != nil {
		delayed = r.timer.Size()
	} else {
		watched, delayed = r.purgatory.Watched(), r.purgatory.Delayed()
	}
	if watched >= 0 {
		line["watched"] = watched
	}
	if delayed >= 0 {
		line["delayed"] = delayed
	}
	if listed, ok := r.purgatory.(Listed); ok {
		line["keys"] = listed.Keys()
	}
}

// settle waits until the implementation's own goroutines have finished, or a goroutine is paused.
func (r *run) settle() {
	interrupted := make(chan struct{})
	r.lock.Lock()
	if len(r.held) > 0 {
		r.lock.Unlock()
		return
	}
	r.settling[interrupted] = goroutine()
	r.lock.Unlock()
	r.driven().Settle(interrupted)
	r.lock.Lock()
	delete(r.settling, interrupted)
	r.lock.Unlock()
}

// here says whose doing a line is: that of a call, or of a goroutine of the implementation's own.
func (r *run) here(line map[string]any, me uint64, name string) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if mine := r.calls[me]; mine != nil {
		line["during"] = mine.call
	} else {
		line["th"] = name
	}
}

func (r *run) call(f, id string, _ *int64) func(result) {
	if !slices.Contains(r.reports, f) {
		return func(result) {}
	}
	me := goroutine()
	name := r.crowd.enter(me)
	line := map[string]any{"m": "enter", "f": f, "id": id}
	r.here(line, me, name)
	r.report(line)
	return func(ended result) {
		line := map[string]any{"m": "leave", "f": f, "id": id}
		ended.fields(line)
		r.here(line, me, name)
		r.report(line)
		r.crowd.leave(me)
	}
}

func (r *run) pause(f, id string) {
	if slices.Contains(r.gates, f) {
		r.hold(f, id, "")
	} else if !r.virtual && len(r.gates) == 0 {
		dwell()
	}
}

// hold makes this goroutine wait for the driver's word, and make the calls that it is given meanwhile.
func (r *run) hold(f, id, at string) {
	me := goroutine()
	number := r.holds.Add(1)
	there := make(chan message, 64)
	r.lock.Lock()
	if r.over {
		r.lock.Unlock()
		return
	}
	r.held[number] = there
	for interrupted, waiter := range r.settling {
		if waiter != me {
			close(interrupted)
			delete(r.settling, interrupted)
		}
	}
	r.lock.Unlock()
	line := map[string]any{"m": "held", "hold": number, "f": f}
	if id != "" {
		line["id"] = id
	}
	if at != "" {
		line["at"] = at
	}
	r.here(line, me, r.crowd.enter(me))
	defer r.crowd.leave(me)
	r.report(line)
	for call := range there {
		if call.M != "go" {
			r.make(call)
			continue
		}
		if call.Fail == 1 {
			panic(failure{})
		}
		return
	}
}

// dwell lets goroutines meet inside callbacks: one in eight sleeps for up to a millisecond.
func dwell() {
	if rand.Intn(8) == 0 {
		time.Sleep(time.Duration(rand.Intn(1_000_000)))
	}
}

var stepping atomic.Pointer[run]

// place names the code that called Step, and its caller: of a wrapped lock, the code that takes it.
func place() string {
	pcs := make([]uintptr, 2)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	inner, more := frames.Next()
	said := where(inner)
	if more {
		outer, _ := frames.Next()
		said += " from " + where(outer)
	}
	return said[:min(len(said), 200)]
}

func where(frame runtime.Frame) string {
	return fmt.Sprintf("%s (%s:%d)", path.Base(frame.Function), path.Base(frame.File), frame.Line)
}

// Step is a scheduling point in the code under test, where the driver may make a goroutine wait. Put it between two
// accesses to shared state, and set Promises.Steps. Without a driver it costs one atomic read.
func Step() {
	r := stepping.Load()
	if r == nil {
		return
	}
	r.lock.Lock()
	mine := r.calls[goroutine()]
	stop := false
	if mine != nil && len(mine.steps) > 0 {
		mine.seen++
		if stop = mine.seen > mine.steps[0]; stop {
			mine.steps = mine.steps[1:]
		}
	}
	r.lock.Unlock()
	if stop {
		r.hold("step", "", place())
	}
}
