package toy

import (
	"sync"
	"sync/atomic"

	purgatorio "example.com/purgatorio/kits/go"
)

// Operation waits in a [Purgatory].
type Operation struct {
	Callbacks
	DelayNs   int64
	busy      atomic.Bool // a goroutine evaluates it
	again     atomic.Bool // and is asked to evaluate it once more
	completed atomic.Bool
	timeOut   Task
}

// Callbacks of an operation. Those with an argument run it, and may do more.
type Callbacks interface {
	TryComplete(force func() bool) bool // calls force if its condition holds
	ForceComplete(own func() bool) bool
	OnComplete()
	OnExpiration()
	TimerAdd(own func())
	TimerCancel(own func())
	TimerFire(own func())
}

// Purgatory keeps operations under keys until a check completes them, or until their time-out. No goroutine waits for one
// that evaluates an operation: it asks that one to evaluate it again.
type Purgatory struct {
	Bug   bool // it sets no flag, and leaves
	Wheel *Wheel
	Now   func() int64

	lock    sync.Mutex
	watched map[string][]*Operation
}

// TryCompleteElseWatch says whether it completed the operation.
func (p *Purgatory) TryCompleteElseWatch(operation *Operation, keys []string) bool {
	if p.try(operation) {
		return true
	}
	for _, key := range keys {
		purgatorio.Step()
		p.lock.Lock()
		if p.watched == nil {
			p.watched = map[string][]*Operation{}
		}
		p.watched[key] = append(p.watched[key], operation)
		p.lock.Unlock()
	}
	purgatorio.Step()
	if p.try(operation) {
		return true
	}
	if !operation.completed.Load() {
		operation.timeOut.Run = func() { operation.TimerFire(func() { p.expire(operation) }) }
		operation.TimerAdd(func() { p.Wheel.Add(&operation.timeOut, p.Now(), operation.DelayNs) })
		purgatorio.Step()
		if operation.completed.Load() {
			p.disarm(operation)
		}
	}
	return false
}

// try evaluates the operation, or makes the evaluating goroutine repeat. It returns whether this call completed it.
func (p *Purgatory) try(operation *Operation) (done bool) {
	for more := true; more && !operation.completed.Load(); {
		if operation.busy.CompareAndSwap(false, true) {
			operation.again.Store(false)
			done = operation.TryComplete(func() bool { return p.ForceComplete(operation) })
			operation.busy.Store(false)
			purgatorio.Step()
			more = operation.again.Load()
		} else {
			more = !p.Bug && !operation.again.Swap(true)
		}
	}
	return done
}

// CheckAndComplete tries the operations of the key, and returns the number of completed operations.
func (p *Purgatory) CheckAndComplete(key string) int {
	p.lock.Lock()
	there := append([]*Operation(nil), p.watched[key]...)
	p.lock.Unlock()
	count := 0
	for _, operation := range there {
		purgatorio.Step()
		if p.try(operation) {
			count++
		}
	}
	p.drop(key)
	return count
}

// ForceComplete completes the operation, ready or not; whether this call did.
func (p *Purgatory) ForceComplete(operation *Operation) bool {
	return operation.Callbacks.ForceComplete(func() bool {
		if operation.completed.Swap(true) {
			return false
		}
		p.disarm(operation)
		operation.OnComplete()
		return true
	})
}

func (p *Purgatory) disarm(operation *Operation) {
	operation.TimerCancel(func() { p.Wheel.Cancel(&operation.timeOut) })
}

func (p *Purgatory) expire(operation *Operation) {
	if p.ForceComplete(operation) {
		operation.OnExpiration()
	}
}

// drop takes completed operations off the key's list.
func (p *Purgatory) drop(key string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	var left []*Operation
	for _, operation := range p.watched[key] {
		if !operation.completed.Load() {
			left = append(left, operation)
		}
	}
	if len(left) == 0 {
		delete(p.watched, key)
	} else {
		p.watched[key] = left
	}
}

// CancelForKey removes the operations of the key.
func (p *Purgatory) CancelForKey(key string) []*Operation {
	p.lock.Lock()
	back := p.watched[key]
	delete(p.watched, key)
	p.lock.Unlock()
	for _, operation := range back {
		p.disarm(operation)
	}
	return back
}

// Keys counts the keys that have a list.
func (p *Purgatory) Keys() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.watched)
}

// Watched counts entries, without those of completed operations.
func (p *Purgatory) Watched() int {
	p.lock.Lock()
	keys := make([]string, 0, len(p.watched))
	for key := range p.watched {
		keys = append(keys, key)
	}
	p.lock.Unlock()
	count := 0
	for _, key := range keys {
		p.drop(key)
		p.lock.Lock()
		count += len(p.watched[key])
		p.lock.Unlock()
	}
	return count
}
