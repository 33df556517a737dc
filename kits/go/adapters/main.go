// Adapters of Go timers that others wrote, one binary: env TIMER=timingwheel purgatorio verify --command ./adapters
package main

import (
	"fmt"
	"os"
	"time"

	purgatorio "example.com/purgatorio/kits/go"
	"github.com/RussellLuo/timingwheel"
	antlabs "github.com/antlabs/timer"
	timewheel "github.com/rfyiamcool/go-timewheel"
)

const msNs = 1_000_000

// one is a timer of these: how to add and stop a task, and how to end it.
type one struct {
	purgatorio.Plain
	add    func(task func(), delay time.Duration) (handle any)
	cancel func(handle any) (cancelled, known bool)
	end    func()
}

func (o one) Add(task func(), delayNs int64) any        { return o.add(task, time.Duration(delayNs)) }
func (o one) Cancel(handle any) (cancelled, known bool) { return o.cancel(handle) }
func (o one) Close()                                    { o.end() }

type stops interface{ Stop() bool }

func stop(handle any) (cancelled, known bool) { return handle.(stops).Stop(), true }

// afterFunc can be added again as well: time.Timer.Reset.
type afterFunc struct{ one }

func (afterFunc) AddAgain(handle any, delayNs int64) {
	handle.(*time.Timer).Reset(time.Duration(delayNs))
}

// timers: the promises of each, from its documentation. A timer is judged by its own promises only.
var timers = map[string]struct {
	promises purgatorio.Promises
	make     func() purgatorio.Timer
}{
	// "Stop prevents the Timer from firing. It returns true if the call stops the timer" (package time)
	"afterfunc": {
		purgatorio.Promises{Profile: "timer-cancel-barrier", EarlyNs: purgatorio.Is(0), Can: []string{"add-again"}},
		func() purgatorio.Timer {
			return afterFunc{one{
				add:    func(task func(), delay time.Duration) any { return time.AfterFunc(delay, task) },
				cancel: stop,
				end:    func() {},
			}}
		},
	},
	// "Stop prevents the Timer from firing. It returns true if the call stops the timer, false if the timer has already
	// expired or been stopped." Its clock counts whole milliseconds, and a bucket is due at its start.
	"timingwheel": {
		purgatorio.Promises{
			Profile: "timer-cancel-barrier", TickNs: purgatorio.Is(msNs), WheelSize: purgatorio.Is(20),
			EarlyNs: purgatorio.Is(msNs), LateNs: purgatorio.Is(msNs),
		},
		func() purgatorio.Timer {
			wheel := timingwheel.NewTimingWheel(time.Millisecond, 20)
			wheel.Start()
			return one{
				add:    func(task func(), delay time.Duration) any { return wheel.AfterFunc(delay, task) },
				cancel: stop,
				end:    wheel.Stop,
			}
		},
	},
	// Its README names a wheel of five levels, and says neither how exact it is nor what Stop answers.
	"antlabs": {
		purgatorio.Promises{Profile: "timer"},
		func() purgatorio.Timer {
			wheel := antlabs.NewTimer(antlabs.WithTimeWheel())
			go wheel.Run()
			return one{
				add: func(task func(), delay time.Duration) any { return wheel.AfterFunc(delay, task) },
				cancel: func(handle any) (bool, bool) {
					handle.(antlabs.TimeNoder).Stop()
					return false, false
				},
				end: wheel.Stop,
			}
		},
	},
	// Its README shows Add and Remove, and says no more.
	"go-timewheel": {
		purgatorio.Promises{Profile: "timer"},
		func() purgatorio.Timer {
			wheel, err := timewheel.NewTimeWheel(10*time.Millisecond, 60, timewheel.TickSafeMode())
			if err != nil {
				panic(err)
			}
			wheel.Start()
			return one{
				add: func(task func(), delay time.Duration) any { return wheel.Add(delay, task) },
				cancel: func(handle any) (bool, bool) {
					_ = wheel.Remove(handle.(*timewheel.Task))
					return false, false
				},
				end: wheel.Stop,
			}
		},
	},
}

func main() {
	name := os.Getenv("TIMER")
	timer, known := timers[name]
	if !known {
		fmt.Fprintln(os.Stderr, "TIMER is none of afterfunc, timingwheel, antlabs, go-timewheel")
		os.Exit(2)
	}
	timer.promises.Name, timer.promises.Lanes = name, 4
	timer.promises.Can = append(timer.promises.Can, "timer", "real-time", "cancel")
	purgatorio.Run(timer.promises, purgatorio.Factory{
		Timer: func(bool, int64) purgatorio.Timer { return timer.make() },
	})
}
