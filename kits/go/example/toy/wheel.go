// Package toy has a timing wheel and a purgatory to try the kit on. Each has a bug of a line that can be switched on.
package toy

import "sync"

// TickNs is the wheel's granularity: a millisecond.
const TickNs = 1_000_000

const buckets = 16

// Task is added to one wheel at most once.
type Task struct {
	Run func()
	due int64 // tick
}

// Wheel keeps tasks in buckets by the tick in which they are due. Whoever advances it runs them.
type Wheel struct {
	Bug bool // a task that is due one turn of the wheel later runs a turn early

	lock sync.Mutex
	tick int64
	// nowNs is the last time of the clock.
	nowNs   int64
	buckets [buckets]map[*Task]bool
	size    int
}

// NewWheel is empty; the clock says nowNs.
func NewWheel(nowNs int64) *Wheel {
	wheel := &Wheel{tick: nowNs / TickNs, nowNs: nowNs}
	for index := range wheel.buckets {
		wheel.buckets[index] = map[*Task]bool{}
	}
	return wheel
}

// Add runs the task when delayNs are over, rounded up to a tick; at once if they are over by now.
func (w *Wheel) Add(task *Task, nowNs, delayNs int64) {
	w.lock.Lock()
	task.due = (max(nowNs, w.nowNs) + delayNs + TickNs - 1) / TickNs
	due := task.due <= w.tick
	if !due {
		w.buckets[task.due%buckets][task] = true
		w.size++
	}
	w.lock.Unlock()
	if due {
		task.Run()
	}
}

// Cancel says whether the task was waiting. If it was, it does not run.
func (w *Wheel) Cancel(task *Task) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.take(task)
}

func (w *Wheel) take(task *Task) bool {
	bucket := w.buckets[task.due%buckets]
	there := bucket[task]
	if there {
		delete(bucket, task)
		w.size--
	}
	return there
}

// AdvanceTo runs the tasks that are due by nowNs.
func (w *Wheel) AdvanceTo(nowNs int64) {
	w.lock.Lock()
	from := w.tick
	w.nowNs = max(nowNs, w.nowNs)
	w.tick = w.nowNs / TickNs
	var due []*Task
	for tick := max(from, w.tick-buckets) + 1; tick <= w.tick; tick++ {
		for task := range w.buckets[tick%buckets] {
			if task.due <= w.tick || w.Bug && task.due == w.tick+buckets {
				due = append(due, task)
			}
		}
	}
	w.lock.Unlock()
	for _, task := range due {
		// It may have been cancelled while another one ran.
		if w.Cancel(task) {
			task.Run()
		}
	}
}

// Size counts the tasks that wait.
func (w *Wheel) Size() int {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.size
}
