// A toy timer with periodic tasks and resets, and its adapter: purgatorio verify --command ./periodic. With the bug:
// env TOY_BUG=1 ./periodic.
package main

import (
	"math"
	"os"

	purgatorio "example.com/purgatorio/kits/go"
)

const running = math.MaxInt64

type one struct {
	task            func()
	dueNs, periodNs int64
	atRate          bool
}

// timer is for one goroutine.
type timer struct {
	purgatorio.Plain
	nowNs   int64
	waiting map[*one]bool
	bug     bool
}

func (t *timer) enter(task func(), delayNs, periodNs int64, atRate bool) any {
	entered := &one{task, t.nowNs + delayNs, periodNs, atRate}
	t.waiting[entered] = true
	return entered
}

func (t *timer) Add(task func(), delayNs int64) any { return t.enter(task, delayNs, 0, false) }

func (t *timer) FixedRate(task func(), firstNs, periodNs int64) any {
	return t.enter(task, firstNs, periodNs, true)
}

func (t *timer) FixedDelay(task func(), firstNs, periodNs int64) any {
	return t.enter(task, firstNs, periodNs, false)
}

func (t *timer) Reset(handle any, delayNs int64) (moved, known bool) {
	waits := t.waiting[handle.(*one)]
	if waits {
		handle.(*one).dueNs = t.nowNs + delayNs
	}
	return waits, true
}

func (t *timer) Cancel(handle any) (cancelled, known bool) {
	waits := t.waiting[handle.(*one)]
	delete(t.waiting, handle.(*one))
	return waits, true
}

func (t *timer) AdvanceTo(nowNs int64) {
	t.nowNs = nowNs
	for {
		first := &one{dueNs: running}
		for waits := range t.waiting {
			if waits.dueNs < first.dueNs {
				first = waits
			}
		}
		switch {
		case first.dueNs > nowNs:
			return
		case first.atRate && t.bug: // a late run moves all later ones
			first.dueNs = nowNs + first.periodNs
		case first.atRate:
			first.dueNs += first.periodNs
		case first.periodNs > 0:
			first.dueNs = running
		default:
			delete(t.waiting, first)
		}
		first.task()
		if first.dueNs == running {
			first.dueNs = t.nowNs + first.periodNs
		}
	}
}

func main() {
	purgatorio.Run(purgatorio.Promises{
		Name: "toy-periodic-go", Version: "1", Profile: "timer-cancel-barrier", EarlyNs: purgatorio.Is(0),
		LateNs: purgatorio.Is(0), CatchUp: "burst",
		Can: []string{"timer", "virtual-time", "cancel", "fixed-rate", "fixed-delay", "reset"},
	}, purgatorio.Factory{Timer: func(virtual bool, nowNs int64) purgatorio.Timer {
		return &timer{nowNs: nowNs, waiting: map[*one]bool{}, bug: os.Getenv("TOY_BUG") != ""}
	}})
}
