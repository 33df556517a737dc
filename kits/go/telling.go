package purgatorio

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// telling receives the callbacks: the driver (over the protocol), or a recorder.
type telling interface {
	// call reports that the function starts. Its result reports the end.
	call(f, id string, delayNs *int64) func(result)
	// pause is a place where a goroutine may be paused.
	pause(f, id string)
}

type result struct {
	out      *bool
	panicked any
}

func (r result) fields(line map[string]any) {
	if r.panicked != nil {
		line["err"] = typeOf(r.panicked)
	} else if r.out != nil {
		line["out"] = asInt(*r.out)
	}
}

type flag32 struct{ value atomic.Bool }

func (f *flag32) set()        { f.value.Store(true) }
func (f *flag32) isSet() bool { return f.value.Load() }

// goroutine is the number of the calling goroutine, which Go tells only in its stacks. What a call does on its own goroutine
// and what others do at the same time must not be taken for each other.
func goroutine() uint64 {
	var space [64]byte
	words := bytes.Fields(space[:runtime.Stack(space[:], false)])
	number, err := strconv.ParseUint(string(words[1]), 10, 64)
	if err != nil {
		panic(err)
	}
	return number
}

func typeOf(problem any) string {
	name := fmt.Sprintf("%T", problem)
	if name == "string" {
		name = "panic"
	}
	return name
}

func asInt(value bool) int {
	if value {
		return 1
	}
	return 0
}

// slots names goroutines while they are inside reported functions. Many timers start a goroutine for each task; a
// name that is free again is used again. The protocol has 64 names: where more goroutines come at a time, they wait for one.
type slots struct {
	lock   sync.Mutex
	free   sync.Cond
	inside map[uint64]*slot
	taken  [48]bool
}

type slot struct {
	number, depth int
}

// enter says the name of the goroutine, which is inside one function more from here on.
func (s *slots) enter(me uint64) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	mine := s.inside[me]
	if mine == nil {
		s.free.L = &s.lock
		number := slices.Index(s.taken[:], false)
		for ; number < 0; number = slices.Index(s.taken[:], false) {
			s.free.Wait()
		}
		s.taken[number] = true
		mine = &slot{number: number}
		if s.inside == nil {
			s.inside = map[uint64]*slot{}
		}
		s.inside[me] = mine
	}
	mine.depth++
	return mine.name()
}

// leave ends the use of a slot by a goroutine that has reported all its calls.
func (s *slots) leave(me uint64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if mine := s.inside[me]; mine != nil {
		if mine.depth--; mine.depth == 0 {
			s.taken[mine.number] = false
			delete(s.inside, me)
			s.free.Signal()
		}
	}
}

func (s *slot) name() string { return fmt.Sprintf("goroutine-%d", s.number) }
