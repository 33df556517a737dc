// The adapter of the toy purgatory: purgatorio verify --command ./purgatory, and with the bug: env TOY_BUG=1 ./purgatory.
package main

import (
	"os"
	"time"

	purgatorio "example.com/purgatorio/kits/go"
	"example.com/purgatorio/kits/go/example/toy"
)

type purgatory struct {
	purgatorio.Plain
	toy  toy.Purgatory
	over chan struct{}
}

func (p *purgatory) New(hooks *purgatorio.Hooks) any {
	return &toy.Operation{Callbacks: hooks, DelayNs: hooks.DelayNs} // the hooks are the callbacks
}

func (p *purgatory) TryCompleteElseWatch(operation any, keys []string) bool {
	return p.toy.TryCompleteElseWatch(operation.(*toy.Operation), keys)
}

func (p *purgatory) ForceComplete(operation any) bool {
	return p.toy.ForceComplete(operation.(*toy.Operation))
}

func (p *purgatory) CancelForKey(key string) (back []any) {
	for _, operation := range p.toy.CancelForKey(key) {
		back = append(back, operation)
	}
	return back
}

func (p *purgatory) CheckAndComplete(key string) int { return p.toy.CheckAndComplete(key) }
func (p *purgatory) Watched() int                    { return p.toy.Watched() }
func (p *purgatory) Keys() int                       { return p.toy.Keys() }
func (p *purgatory) Delayed() int                    { return p.toy.Wheel.Size() }
func (p *purgatory) AdvanceTo(nowNs int64)           { p.toy.Wheel.AdvanceTo(nowNs) }
func (p *purgatory) Close()                          { close(p.over) }

func newPurgatory(virtual bool, nowNs int64) purgatorio.Purgatory {
	p := &purgatory{over: make(chan struct{})}
	p.toy.Bug = os.Getenv("TOY_BUG") != ""
	p.toy.Wheel, p.toy.Now = toy.NewWheel(nowNs), func() int64 { return 0 } // in virtual time the wheel knows
	if !virtual {
		begin := time.Now()
		p.toy.Now = func() int64 { return int64(time.Since(begin)) }
		go func() {
			for range time.Tick(toy.TickNs) {
				select {
				case <-p.over:
					return
				default:
					p.toy.Wheel.AdvanceTo(p.toy.Now())
				}
			}
		}()
	}
	return p
}

func main() {
	purgatorio.Run(purgatorio.Promises{
		Name: "toy-purgatory-go", Version: "1", Profile: "pending-flag", Lanes: 8, Steps: true,
		TickNs: purgatorio.Is(toy.TickNs), WheelSize: purgatorio.Is(16), EarlyNs: purgatorio.Is(0),
		LateNs: purgatorio.Is(toy.TickNs), PurgeInterval: purgatorio.Is(0),
		Can: []string{"purgatory", "virtual-time", "real-time", "cancel-key", "force", "gauge"},
	}, purgatorio.Factory{Purgatory: newPurgatory})
}
