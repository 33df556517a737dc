package purgatorio

import (
	"bytes"
	"fmt"
	"runtime"
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

// crowd counts the goroutines that are inside reported functions. The protocol has names for 64 at a time: where more come,
// they wait. The number of a goroutine is its name, so what it reports later is on the same thread.
type crowd struct {
	lock   sync.Mutex
	left   sync.Cond
	inside map[uint64]int
}

const crowdMost = 48

// enter says the name of the goroutine, which is inside one function more from here on.
func (c *crowd) enter(me uint64) string {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.inside == nil {
		c.inside, c.left.L = map[uint64]int{}, &c.lock
	}
	for c.inside[me] == 0 && len(c.inside) >= crowdMost {
		c.left.Wait()
	}
	c.inside[me]++
	return fmt.Sprintf("goroutine-%d", me)
}

// leave ends a function of the goroutine.
func (c *crowd) leave(me uint64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.inside[me]--; c.inside[me] == 0 {
		delete(c.inside, me)
		c.left.Signal()
	}
}
