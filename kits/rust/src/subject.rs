//! The subject protocol: a thread for each lane makes the calls of the driver. A paused thread makes requested calls, too.

use crate::json::{self, list, number, quote, text, Fields, Value};
use crate::{Hooks, Interrupted, Promises, Purgatory, Task, Telling, Timer};
use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufRead, Write as _};
use std::panic::{catch_unwind, panic_any, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const PROTOCOL: &str = "purgatorio-subject/1.2";
const OF_OPERATIONS: [&str; 7] =
    ["try_complete", "force_complete", "on_complete", "on_expiration", "timer_add", "timer_cancel", "timer_fire"];
const CROWD: usize = 48; // the protocol has names for 64 threads at a time

/// Drive a timer: `make(virtual, now_ns)` makes one for each run. Returns when standard input ends.
pub fn run_timer<T: Timer>(promises: Promises, make: impl Fn(bool, i64) -> T + 'static) {
    let make = move |virtual_time, now_ns, run: &Arc<Run>| -> Arc<dyn Part> {
        let timer = make(virtual_time, now_ns);
        Arc::new(OfTimer { timer, handles: Mutex::default(), run: Arc::clone(run) })
    };
    serve(&promises, "timer", &make);
}

/// Drive a purgatory: `make(virtual, now_ns)` makes one for each run. Returns when standard input ends.
pub fn run_purgatory<P: Purgatory>(promises: Promises, make: impl Fn(bool, i64) -> P + 'static) {
    let make = move |virtual_time, now_ns, run: &Arc<Run>| -> Arc<dyn Part> {
        let purgatory = make(virtual_time, now_ns);
        let run = Arc::clone(run);
        Arc::new(OfPurgatory { purgatory, operations: Mutex::default(), ready: Mutex::default(), run })
    };
    serve(&promises, "purgatory", &make);
}

/// A scheduling point in the code under test, where the driver may pause a thread. Put it between two accesses to shared
/// state and set [`Promises::steps`]. Without a driver it does almost nothing.
pub fn step() {
    let stop = HERE.with(|here| {
        let mut here = here.borrow_mut();
        let call = here.calls.last_mut()?;
        let next = *call.steps.first()?;
        call.seen += 1;
        (call.seen > next).then(|| {
            call.steps.remove(0);
            Arc::clone(&call.run)
        })
    });
    if let Some(run) = stop {
        run.hold("step", "");
    }
}

/// The panic value of a callback that the driver makes fail.
struct Failure;

struct Here {
    calls: Vec<Under>,
    /// The name of the thread, so that what it reports later is on the same thread.
    name: usize,
    depth: usize,
    counted: bool,
    dice: u64,
}

struct Under {
    run: Arc<Run>,
    call: i64,
    steps: Vec<i64>,
    seen: i64,
}

thread_local! {
    static HERE: RefCell<Here> = RefCell::new(Here {
        calls: Vec::new(), name: THREADS.fetch_add(1, Ordering::SeqCst), depth: 0, counted: false,
        dice: RandomState::new().build_hasher().finish(),
    });
}

/// Counts the threads that are inside reported functions. Where more come than the protocol has names for, they wait.
#[derive(Default)]
struct Crowd {
    inside: Mutex<usize>,
    left: Condvar,
}

trait Part: Send + Sync {
    fn answer(&self, name: &str, call: &Fields) -> String;
    /// `watched`, `delayed` and `keys`, read in this order.
    fn sizes(&self) -> [(&'static str, Option<usize>); 3];
    fn advance_to(&self, now_ns: i64);
    fn settle(&self, interrupted: &Interrupted);
    fn close(&self);
}

type Makes = dyn Fn(bool, i64, &Arc<Run>) -> Arc<dyn Part>;

struct Run {
    virtual_time: bool,
    reports: Vec<&'static str>,
    gates: Vec<String>,
    crowd: Crowd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    over: bool,
    held: HashMap<i64, Sender<Fields>>,
    settling: Vec<(std::thread::ThreadId, Arc<Interrupted>)>,
}

static THREADS: AtomicUsize = AtomicUsize::new(0);
static HOLDS: AtomicI64 = AtomicI64::new(0);
static UNANSWERED: AtomicI64 = AtomicI64::new(0);

fn say(line: &str) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{{{line}}}").and_then(|()| out.flush()).is_err() {
        std::process::exit(4); // the driver has gone
    }
}

struct Driven {
    run: Arc<Run>,
    part: Arc<dyn Part>,
    lanes: Vec<Sender<Fields>>,
}

fn serve(promises: &Promises, part: &'static str, make: &Makes) {
    let mut current: Option<Driven> = None;
    for line in io::stdin().lock().lines() {
        let call = json::read(&line.expect("the driver writes UTF-8"));
        let n = number(&call, "n").expect("each call has a number");
        match (text(&call, "m"), &current) {
            ("describe", _) => say(&description(promises, part, n)),
            ("start", _) => {
                if let Some(before) = current.take() {
                    before.abandon();
                }
                match catch_unwind(AssertUnwindSafe(|| start(promises, part, make, &call))) {
                    Ok(driven) => {
                        current = Some(driven);
                        say(&format!("\"m\":\"answer\",\"n\":{n}"));
                    }
                    Err(_) => say(&format!("\"m\":\"answer\",\"n\":{n},\"err\":\"panic\"")),
                }
            }
            ("go", Some(driven)) => {
                say(&format!("\"m\":\"answer\",\"n\":{n}"));
                let mut state = driven.run.state();
                for hold in list(&call, "holds") {
                    if let Value::Number(hold) = hold {
                        let there = state.held.remove(hold).expect("the driver names those that are held");
                        there.send(call.clone()).expect("it waits");
                    }
                }
            }
            (_, Some(driven)) => {
                let there = match number(&call, "hold") {
                    Some(hold) => driven.run.state().held[&hold].clone(),
                    None => driven.lanes[number(&call, "lane").unwrap_or(0) as usize].clone(),
                };
                UNANSWERED.fetch_add(1, Ordering::SeqCst);
                there.send(call).expect("it waits");
            }
            (_, None) => panic!("a call before start"),
        }
    }
    // Calls that were read are answered, except a call that waits for the driver.
    for _ in 0..100 {
        if UNANSWERED.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    std::process::exit(0);
}

/// The functions that are reported.
fn reports(promises: &Promises, part: &str) -> Vec<&'static str> {
    let functions: &[&str] = if part == "purgatory" { &OF_OPERATIONS } else { &["timer_fire"] };
    functions.iter().copied().filter(|f| !promises.lacks.contains(f)).collect()
}

fn description(promises: &Promises, part: &str, n: i64) -> String {
    let mut line = format!("\"m\":\"description\",\"n\":{n},\"protocol\":\"{PROTOCOL}\",\"language\":\"Rust\"");
    for (name, value) in [("name", promises.name), ("version", promises.version), ("profile", promises.profile)] {
        if !value.is_empty() {
            write!(line, ",\"{name}\":").expect("into a text");
            quote(&mut line, value);
        }
    }
    let reports = reports(promises, part);
    let can: Vec<&str> = [part].into_iter().chain(promises.can.iter().copied()).collect();
    let gates: Vec<&str> = reports.iter().copied().chain(promises.steps.then_some("step")).collect();
    for (name, list) in [("capabilities", &can[..]), ("reports", &reports), ("gates", &gates)] {
        write!(line, ",\"{name}\":[\"{}\"]", list.join("\",\"")).expect("into a text");
    }
    for (name, value) in [
        ("tick_ns", promises.tick_ns),
        ("wheel_size", promises.wheel_size),
        ("early_ns", promises.early_ns),
        ("early_real_ns", promises.early_real_ns),
        ("late_ns", promises.late_ns),
        ("late_real_ns", promises.late_real_ns),
        ("purge_interval", promises.purge_interval),
        ("unit_ns", promises.unit_ns),
        ("most_delay_ns", promises.most_delay_ns),
        ("lanes", Some(promises.lanes.max(1) as i64)),
    ] {
        if let Some(value) = value {
            write!(line, ",\"{name}\":{value}").expect("into a text");
        }
    }
    for (name, word) in [("catch_up", promises.catch_up), ("turn", promises.turn)] {
        if let Some(word) = word {
            write!(line, ",\"{name}\":\"{word}\"").expect("into a text");
        }
    }
    line
}

fn start(promises: &Promises, part: &str, make: &Makes, call: &Fields) -> Driven {
    let gates = list(call, "gates").iter().filter_map(|gate| match gate {
        Value::Text(gate) => Some(gate.clone()),
        _ => None,
    });
    let run = Arc::new(Run {
        virtual_time: text(call, "time") == "virtual",
        reports: reports(promises, part),
        gates: gates.collect(),
        crowd: Crowd::default(),
        state: Mutex::default(),
    });
    let part = make(run.virtual_time, number(call, "now_ns").unwrap_or(0), &run);
    let lanes = (0..promises.lanes.max(1)).map(|lane| {
        let (calls, taken) = channel::<Fields>();
        let (run, part) = (Arc::clone(&run), Arc::clone(&part));
        let work = move || {
            for call in taken {
                run.make(part.as_ref(), &call);
            }
        };
        std::thread::Builder::new().name(format!("lane-{lane}")).spawn(work).expect("a thread");
        calls
    });
    let lanes = lanes.collect();
    PART.lock().expect("no thread panics with the lock").replace(Arc::clone(&part));
    Driven { run, part, lanes }
}

/// The part of the current run, for calls that a thread makes where it is paused.
static PART: Mutex<Option<Arc<dyn Part>>> = Mutex::new(None);

impl Driven {
    fn abandon(self) {
        let mut state = self.run.state();
        let stopped = state.over;
        state.over = true;
        for (_, there) in state.held.drain() {
            let _ = there.send(vec![("m".into(), Value::Text("go".into()))]);
        }
        drop(state);
        if !stopped {
            std::thread::spawn(move || self.part.close());
        }
    }
}

impl Run {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock")
    }

    /// Write the message unless the run has ended, because a late thread must not write into the next run.
    fn report(&self, line: &str) {
        let state = self.state();
        if !state.over {
            say(line);
        }
    }

    /// Make a call on this thread, and answer it.
    fn make(self: &Arc<Self>, part: &dyn Part, call: &Fields) {
        let n = number(call, "n").expect("each call has a number");
        let steps = ["step", "again"].iter().filter_map(|stop| number(call, stop)).collect();
        HERE.with(|here| here.borrow_mut().calls.push(Under { run: Arc::clone(self), call: n, steps, seen: 0 }));
        let name = text(call, "m");
        let said = catch_unwind(AssertUnwindSafe(|| self.answer(part, name, call)));
        HERE.with(|here| here.borrow_mut().calls.pop());
        let said = said.unwrap_or_else(|why| {
            format!(",\"err\":\"{}\"", if why.is::<Failure>() { "Failure" } else { "panic" })
        });
        let line = format!("\"m\":\"answer\",\"n\":{n}{said}");
        if name == "stop" {
            say(&line);
        } else {
            self.report(&line);
        }
        UNANSWERED.fetch_sub(1, Ordering::SeqCst);
    }

    fn answer(self: &Arc<Self>, part: &dyn Part, name: &str, call: &Fields) -> String {
        let mut said = match name {
            "stop" => {
                self.state().over = number(call, "drain") != Some(1);
                part.close();
                return String::new();
            }
            "gauge" | "quiesce" => String::new(),
            "advance" => {
                part.advance_to(number(call, "now_ns").expect("a time"));
                String::new()
            }
            _ => part.answer(name, call),
        };
        if name == "quiesce" || self.virtual_time && number(call, "settle") != Some(0) {
            self.settle(part);
        }
        if name == "gauge" || name == "quiesce" {
            for (field, size) in part.sizes() {
                if let Some(size) = size {
                    write!(said, ",\"{field}\":{size}").expect("into a text");
                }
            }
        }
        said
    }

    fn settle(&self, part: &dyn Part) {
        let interrupted = Arc::new(Interrupted::default());
        {
            let mut state = self.state();
            if !state.held.is_empty() {
                return;
            }
            state.settling.push((std::thread::current().id(), Arc::clone(&interrupted)));
        }
        part.settle(&interrupted);
        self.state().settling.retain(|(_, other)| !Arc::ptr_eq(other, &interrupted));
    }

    /// Whose doing a line is: that of a call, or of a thread of the implementation's own.
    fn here(&self, line: &mut String) {
        HERE.with(|here| {
            let here = here.borrow();
            match here.calls.last() {
                Some(under) => write!(line, ",\"during\":{}", under.call),
                None => write!(line, ",\"th\":\"thread-{}\"", here.name),
            }
            .expect("into a text");
        });
    }

    fn tell(&self, kind: &str, f: &str, id: &str, more: &str) {
        if self.reports.contains(&f) {
            let mut line = format!("\"m\":\"{kind}\",\"f\":\"{f}\",\"id\":");
            quote(&mut line, id);
            line.push_str(more);
            self.here(&mut line);
            self.report(&line);
        }
    }

    /// The thread waits for the driver's word, and makes the calls that it is given meanwhile.
    fn hold(self: &Arc<Self>, f: &str, id: &str) {
        let hold = HOLDS.fetch_add(1, Ordering::SeqCst) + 1;
        let (calls, taken) = channel::<Fields>();
        {
            let mut state = self.state();
            if state.over {
                return;
            }
            state.held.insert(hold, calls);
            for (waiter, interrupted) in &state.settling {
                if *waiter != std::thread::current().id() {
                    interrupted.set();
                }
            }
        }
        let mut line = format!("\"m\":\"held\",\"hold\":{hold},\"f\":\"{f}\"");
        if !id.is_empty() {
            line.push_str(",\"id\":");
            quote(&mut line, id);
        }
        self.here(&mut line);
        self.report(&line);
        let part = PART.lock().expect("no thread panics with the lock").clone().expect("a run is under way");
        for call in taken {
            if text(&call, "m") != "go" {
                self.make(part.as_ref(), &call);
                continue;
            }
            if number(&call, "fail") == Some(1) {
                panic_any(Failure);
            }
            return;
        }
    }
}

impl Telling for Arc<Run> {
    fn enter(&self, f: &'static str, hooks: &Hooks) -> i64 {
        self.crowd.enter();
        self.tell("enter", f, &hooks.id, "");
        0
    }

    fn leave(&self, f: &'static str, hooks: &Hooks, _began: i64, out: Option<bool>, panics: bool) {
        let more = match (panics, out) {
            (true, _) => ",\"err\":\"panic\"".to_string(),
            (false, Some(out)) => format!(",\"out\":{}", i64::from(out)),
            (false, None) => String::new(),
        };
        self.tell("leave", f, &hooks.id, &more);
        self.crowd.leave();
    }

    fn pause(&self, f: &'static str, id: &str) {
        if self.gates.iter().any(|gate| gate == f) {
            self.hold(f, id);
        } else if !self.virtual_time && self.gates.is_empty() {
            dwell();
        }
    }
}

/// Let threads meet inside callbacks: one in eight sleeps for up to a millisecond.
fn dwell() {
    let drawn = HERE.with(|here| {
        let mut here = here.borrow_mut();
        here.dice = here.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        here.dice >> 33
    });
    if drawn % 8 == 0 {
        std::thread::sleep(Duration::from_nanos(drawn / 8 % 1_000_000));
    }
}

impl Crowd {
    fn enter(&self) {
        HERE.with(|here| {
            let mut here = here.borrow_mut();
            here.depth += 1;
            if here.depth == 1 && here.calls.is_empty() {
                let inside = self.inside.lock().expect("no thread panics with the lock");
                *self.left.wait_while(inside, |inside| *inside >= CROWD).expect("the same") += 1;
                here.counted = true;
            }
        });
    }

    fn leave(&self) {
        HERE.with(|here| {
            let mut here = here.borrow_mut();
            here.depth -= 1;
            if here.depth == 0 && std::mem::take(&mut here.counted) {
                *self.inside.lock().expect("no thread panics with the lock") -= 1;
                self.left.notify_one();
            }
        });
    }
}

struct OfTimer<T: Timer> {
    timer: T,
    handles: Mutex<HashMap<String, T::Handle>>,
    run: Arc<Run>,
}

impl<T: Timer> Part for OfTimer<T> {
    fn answer(&self, name: &str, call: &Fields) -> String {
        let told = |out: Option<bool>| out.map_or_else(String::new, |out| format!(",\"out\":{}", i64::from(out)));
        let id = text(call, "id").to_string();
        let known = self.handles.lock().expect("no thread panics with the lock").get(&id).cloned();
        match (name, known) {
            ("cancel", Some(handle)) => told(self.timer.cancel(&handle)),
            // It comes before its add has returned: the adapter has no handle yet.
            ("cancel", None) => ",\"out\":0".to_string(),
            ("add", Some(handle)) => {
                self.timer.add_again(&handle, number(call, "delay_ns").expect("a delay"));
                String::new()
            }
            ("reset", Some(handle)) => {
                told(self.timer.reset(&handle, number(call, "delay_ns").expect("a delay")))
            }
            ("add" | "repeat", None) => {
                let delay_ns = number(call, "delay_ns").expect("a delay");
                let told: Arc<dyn Telling> = Arc::new(Arc::clone(&self.run));
                let hooks = Hooks { id: id.clone(), delay_ns, units: 1, told, ready: AtomicBool::new(false) };
                let task: Task = Box::new(move || hooks.timer_fire(|| {}));
                let period_ns = number(call, "period_ns").unwrap_or(0);
                let handle = match text(call, "kind") {
                    "fixed-rate" => self.timer.fixed_rate(task, delay_ns, period_ns),
                    "fixed-delay" => self.timer.fixed_delay(task, delay_ns, period_ns),
                    _ => self.timer.add(task, delay_ns),
                };
                self.handles.lock().expect("no thread panics with the lock").insert(id, handle);
                String::new()
            }
            _ => panic!("unknown call {name}"),
        }
    }

    fn sizes(&self) -> [(&'static str, Option<usize>); 3] {
        [("watched", None), ("delayed", self.timer.size()), ("keys", None)]
    }

    fn advance_to(&self, now_ns: i64) {
        self.timer.advance_to(now_ns);
    }

    fn settle(&self, interrupted: &Interrupted) {
        self.timer.settle(interrupted);
    }

    fn close(&self) {
        self.timer.close();
    }
}

struct OfPurgatory<P: Purgatory> {
    purgatory: P,
    operations: Mutex<HashMap<String, (Arc<Hooks>, P::Operation)>>,
    ready: Mutex<Vec<String>>,
    run: Arc<Run>,
}

impl<P: Purgatory> OfPurgatory<P> {
    fn register(&self, id: &str, call: &Fields) -> String {
        let told: Arc<dyn Telling> = Arc::new(Arc::clone(&self.run));
        let delay_ns = number(call, "delay_ns").expect("a time-out");
        let units = number(call, "units").unwrap_or(1);
        let hooks = Arc::new(Hooks { id: id.to_string(), delay_ns, units, told, ready: AtomicBool::new(false) });
        let operation = self.purgatory.operation(Arc::clone(&hooks));
        {
            let ready = self.ready.lock().expect("no thread panics with the lock");
            hooks.ready.store(ready.iter().any(|other| other == id), Ordering::SeqCst);
            let mut operations = self.operations.lock().expect("no thread panics with the lock");
            operations.insert(id.to_string(), (hooks, operation.clone()));
        }
        let keys = list(call, "keys").iter().filter_map(|key| match key {
            Value::Text(key) => Some(key.clone()),
            _ => None,
        });
        let keys: Vec<String> = keys.collect();
        format!(",\"out\":{}", i64::from(self.purgatory.try_complete_else_watch(&operation, &keys)))
    }

    fn of(&self, id: &str) -> (Arc<Hooks>, P::Operation) {
        self.operations.lock().expect("no thread panics with the lock").get(id).cloned().expect("it was registered")
    }
}

impl<P: Purgatory> Part for OfPurgatory<P> {
    fn answer(&self, name: &str, call: &Fields) -> String {
        let id = text(call, "id");
        match name {
            "register" => self.register(id, call),
            "ready" => {
                let mut ready = self.ready.lock().expect("no thread panics with the lock");
                match self.operations.lock().expect("no thread panics with the lock").get(id) {
                    Some((hooks, _)) => hooks.ready.store(true, Ordering::SeqCst),
                    None => ready.push(id.to_string()),
                }
                String::new()
            }
            "check" => format!(",\"out\":{}", self.purgatory.check_and_complete(text(call, "key"))),
            "force" => format!(",\"out\":{}", i64::from(self.purgatory.force_complete(&self.of(id).1))),
            "cancel_key" => {
                let back = self.purgatory.cancel_for_key(text(call, "key"));
                let mut said = String::from(",\"ids\":[");
                for (index, operation) in back.iter().enumerate() {
                    said.push_str(if index == 0 { "" } else { "," });
                    quote(&mut said, &self.purgatory.hooks(operation).id);
                }
                said + "]"
            }
            _ => panic!("unknown call {name}"),
        }
    }

    fn sizes(&self) -> [(&'static str, Option<usize>); 3] {
        let under = &self.purgatory;
        [("watched", under.watched()), ("delayed", under.delayed()), ("keys", under.keys())]
    }

    fn advance_to(&self, now_ns: i64) {
        self.purgatory.advance_to(now_ns);
    }

    fn settle(&self, interrupted: &Interrupted) {
        self.purgatory.settle(interrupted);
    }

    fn close(&self) {
        self.purgatory.close();
    }
}
