package purgatorio

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Recorder writes the trace format `purgatorio-trace/1`. All methods may be called by several goroutines at once.
type Recorder struct {
	begin  time.Time
	ticket atomic.Int64
	lock   sync.Mutex
	events []event
	file   io.WriteCloser
	out    *bufio.Writer
	paused func(f, id string)
	crowd  crowd
}

// event is a line, by its place in the order of all.
type event struct {
	i    int64
	line map[string]any
}

// NewRecorder opens a trace at this path, compressed if it ends with .gz. recorded names the functions that are always
// recorded.
func NewRecorder(path string, promises Promises, run string, recorded []string) (*Recorder, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	r := &Recorder{begin: time.Now(), file: file, paused: func(string, string) {}}
	var into io.Writer = file
	if strings.HasSuffix(path, ".gz") {
		r.file = &zipped{gzip.NewWriter(file), file}
		into = r.file
	}
	r.out = bufio.NewWriterSize(into, 1<<16)
	timer := map[string]int64{}
	early := promises.EarlyNs
	if promises.EarlyRealNs != nil {
		early = promises.EarlyRealNs
	}
	for name, value := range map[string]*int64{
		"tick_ns": promises.TickNs, "wheel_size": promises.WheelSize, "early_ns": early, "late_ns": promises.LateNs,
	} {
		if value != nil {
			timer[name] = *value
		}
	}
	header := map[string]any{
		"kind": "header", "format": "purgatorio-trace/1", "run": run, "profile": promises.Profile, "timer": timer,
		"implementation": map[string]string{"name": promises.Name, "version": promises.Version, "language": "Go"},
		"clock":          map[string]string{"id": "monotonic", "unit": "ns"}, "recorded": recorded,
	}
	if promises.PurgeInterval != nil {
		header["purge_interval"] = *promises.PurgeInterval
	}
	return r, r.write(header)
}

type zipped struct {
	*gzip.Writer
	file *os.File
}

func (z *zipped) Close() error {
	if err := z.Writer.Close(); err != nil {
		return err
	}
	return z.file.Close()
}

func (r *Recorder) write(line map[string]any) error {
	text, err := json.Marshal(line)
	if err == nil {
		_, err = r.out.Write(append(text, '\n'))
	}
	return err
}

func (r *Recorder) now() int64 { return int64(time.Since(r.begin)) }

func (r *Recorder) event(line map[string]any, ph, f string) int64 {
	me := goroutine()
	line["kind"], line["ph"], line["f"] = "event", ph, f
	line["th"] = r.crowd.enter(me)
	line["t"] = r.now()
	r.lock.Lock()
	i := r.ticket.Add(1) - 1
	line["i"] = i
	r.events = append(r.events, event{i, line})
	r.lock.Unlock()
	// A goroutine keeps its name from a call to its return.
	if ph != "call" {
		r.crowd.leave(me)
	}
	if ph == "ret" {
		r.crowd.leave(me)
	}
	return i
}

// Call records that f starts. Fields are those of the trace format: id, keys, delay_ns, deadline_t. The same goroutine
// records the return.
func (r *Recorder) Call(f string, fields map[string]any) (c int64) { return r.event(fields, "call", f) }

// Return records that the call c of f has ended. Fields: id, out, err, deadline_t, state.
func (r *Recorder) Return(f string, c int64, fields map[string]any) {
	fields["c"] = c
	r.event(fields, "ret", f)
}

// At records a point: ready (with t_call), cancelled.
func (r *Recorder) At(f string, fields map[string]any) { r.event(fields, "at", f) }

// Close writes the events and the end record.
func (r *Recorder) Close() error {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, event := range r.events {
		if err := r.write(event.line); err != nil {
			return err
		}
	}
	err := r.write(map[string]any{"kind": "end", "events": len(r.events), "dropped": 0})
	if err == nil {
		err = r.out.Flush()
	}
	if closing := r.file.Close(); err == nil {
		err = closing
	}
	return err
}

func (r *Recorder) call(f, id string, delayNs *int64) func(result) {
	fields := map[string]any{"id": id}
	called := r.now()
	if delayNs != nil {
		fields["delay_ns"] = *delayNs
	}
	c := r.Call(f, fields)
	return func(ended result) {
		fields := map[string]any{"id": id}
		ended.fields(fields)
		if delayNs != nil && ended.panicked == nil {
			fields["deadline_t"] = called + max(*delayNs, 0)
		}
		r.Return(f, c, fields)
	}
}

func (r *Recorder) pause(f, id string) { r.paused(f, id) }
