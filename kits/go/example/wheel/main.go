// The adapter of the toy wheel: purgatorio verify --command ./wheel, and with the bug: env TOY_BUG=1 ./wheel.
package main

import (
	"os"
	"time"

	purgatorio "example.com/purgatorio/kits/go"
	"example.com/purgatorio/kits/go/example/toy"
)

type wheel struct {
	purgatorio.Plain
	*toy.Wheel
	now  func() int64
	over chan struct{}
}

func (w *wheel) Add(task func(), delayNs int64) any {
	added := &toy.Task{Run: task}
	w.Wheel.Add(added, w.now(), delayNs)
	return added
}

func (w *wheel) Cancel(handle any) (cancelled, known bool) {
	return w.Wheel.Cancel(handle.(*toy.Task)), true
}

func (w *wheel) AdvanceTo(nowNs int64) { w.Wheel.AdvanceTo(nowNs) }
func (w *wheel) Size() int             { return w.Wheel.Size() }
func (w *wheel) Close()                { close(w.over) }

func timer(virtual bool, nowNs int64) purgatorio.Timer {
	w := &wheel{over: make(chan struct{})}
	if virtual {
		w.now = func() int64 { return 0 } // the wheel knows
		w.Wheel = toy.NewWheel(nowNs)
	} else {
		begin := time.Now()
		w.now = func() int64 { return int64(time.Since(begin)) }
		w.Wheel = toy.NewWheel(0)
		go func() {
			for range time.Tick(toy.TickNs) {
				select {
				case <-w.over:
					return
				default:
					w.Wheel.AdvanceTo(w.now())
				}
			}
		}()
	}
	w.Bug = os.Getenv("TOY_BUG") != ""
	return w
}

func main() {
	purgatorio.Run(purgatorio.Promises{
		Name: "toy-wheel-go", Version: "1", Profile: "timer-cancel-barrier", Lanes: 4,
		TickNs: purgatorio.Is(toy.TickNs), WheelSize: purgatorio.Is(16), EarlyNs: purgatorio.Is(0),
		LateNs: purgatorio.Is(toy.TickNs),
		Can:    []string{"timer", "virtual-time", "real-time", "cancel", "gauge"},
	}, purgatorio.Factory{Timer: timer})
}
