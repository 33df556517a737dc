// A semaphore with time-outs, and its adapter with the profile hand-over: purgatorio verify --command ./semaphore, and with
// the bug: env TOY_BUG=1 ./semaphore. A register waits for a permit of its key, and a check releases one.
package main

import (
	"os"
	"slices"
	"sync"
	"time"

	purgatorio "example.com/purgatorio/kits/go"
)

const tickNs = int64(time.Millisecond)

// semaphore hands each permit to the request that has waited for longest.
type semaphore struct {
	lock    sync.Mutex
	bug     bool
	permits int
	waiting []*request
}

func (s *semaphore) acquire(r *request) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.waiting = append(s.waiting, r)
	s.handOver()
}

func (s *semaphore) release() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.permits++
	s.handOver()
}

func (s *semaphore) handOver() {
	for s.permits > 0 && len(s.waiting) > 0 {
		first := s.waiting[0]
		s.waiting = s.waiting[1:]
		if first.take() || s.bug { // the bug: the permit of a request that has timed out is lost
			s.permits--
		}
	}
}

// request waits for a permit. Its time-out is in no timer that the adapter can reach, so it calls no hook of a timer.
type request struct {
	hooks      *purgatorio.Hooks
	deadlineNs int64
	over       sync.Once
}

// take completes the request by a permit, or by its time-out: whichever comes first.
func (r *request) take() bool {
	return r.hooks.ForceComplete(func() (first bool) {
		r.over.Do(func() { first = true; r.hooks.OnComplete() })
		return first
	})
}

// expire calls OnExpiration on the goroutine that has completed the request.
func (r *request) expire() {
	if r.take() {
		r.hooks.OnExpiration()
	}
}

type adapter struct {
	purgatorio.Plain
	virtual    bool
	lock       sync.Mutex
	nowNs      int64
	semaphores map[string]*semaphore
	pending    []*request
}

func (a *adapter) of(key string) *semaphore {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.semaphores[key] == nil {
		a.semaphores[key] = &semaphore{bug: os.Getenv("TOY_BUG") != ""}
	}
	return a.semaphores[key]
}

func (a *adapter) New(hooks *purgatorio.Hooks) any { return &request{hooks: hooks} }

func (a *adapter) TryCompleteElseWatch(operation any, keys []string) bool {
	r := operation.(*request)
	if a.virtual {
		r.deadlineNs = a.nowNs + r.hooks.DelayNs
		a.pending = append(a.pending, r)
	} else {
		time.AfterFunc(time.Duration(r.hooks.DelayNs), r.expire)
	}
	a.of(keys[0]).acquire(r)
	return false
}

// CheckAndComplete counts nothing: in the profile hand-over, the driver counts the permits itself.
func (a *adapter) CheckAndComplete(key string) int {
	a.of(key).release()
	return 0
}

func (a *adapter) AdvanceTo(nowNs int64) {
	a.nowNs = nowNs
	due := func(r *request) bool { return r.deadlineNs <= nowNs }
	for _, r := range a.pending {
		if due(r) {
			r.expire()
		}
	}
	a.pending = slices.DeleteFunc(a.pending, due)
}

func main() {
	purgatorio.Run(purgatorio.Promises{
		Name: "toy-semaphore-go", Version: "1", Profile: "hand-over", UnitNs: tickNs,
		TickNs: purgatorio.Is(tickNs), EarlyNs: purgatorio.Is(0), LateNs: purgatorio.Is(0),
		Can: []string{"purgatory", "virtual-time", "real-time"},
	}, purgatorio.Factory{Purgatory: func(virtual bool, nowNs int64) purgatorio.Purgatory {
		return &adapter{virtual: virtual, nowNs: nowNs, semaphores: map[string]*semaphore{}}
	}})
}
