//! Plugs a timer or a purgatory that is written in Rust into the purgatorio oracle.
//!
//! An adapter implements [`Timer`] or [`Purgatory`], says in [`Promises`] what it is held to, and calls [`run_timer`] or
//! [`run_purgatory`] from its `main`. The program then speaks the subject protocol on standard input and output, which
//! `purgatorio verify --command target/release/adapter` drives. The crate judges nothing and has no dependencies.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod json;
mod recorder;
mod subject;

pub use recorder::Recorder;
pub use subject::{run_purgatory, run_timer, step};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// What an implementation is and promises. A constant that is `None` is not judged by. Times are nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    /// Of the implementation, as its makers call it.
    pub name: &'static str,
    /// Of the implementation.
    pub version: &'static str,
    /// `timer`, `timer-cancel-barrier`, `locked`, `pending-flag` or another of docs/clauses.md.
    pub profile: &'static str,
    /// Granularity.
    pub tick_ns: Option<i64>,
    /// Buckets of one level.
    pub wheel_size: Option<i64>,
    /// How much before its deadline a task may fire.
    pub early_ns: Option<i64>,
    /// The same in real time, if it differs there.
    pub early_real_ns: Option<i64>,
    /// How much after its deadline, if the clock were advanced at every tick.
    pub late_ns: Option<i64>,
    /// How much after its deadline in real time, if no other program takes the processor.
    pub late_real_ns: Option<i64>,
    /// Completed operations that may stay watched.
    pub purge_interval: Option<i64>,
    /// Times and delays are multiples of this.
    pub unit_ns: Option<i64>,
    /// The largest delay that it takes.
    pub most_delay_ns: Option<i64>,
    /// What a fixed rate does about missed runs: `burst`, `once`, `skip` or `restart`.
    pub catch_up: Option<&'static str>,
    /// A task that a task adds without a delay runs in the `same` advance, or in the `next`.
    pub turn: Option<&'static str>,
    /// Calls that may be under way at once, 1 to 16; 0 stands for one.
    pub lanes: usize,
    /// Capabilities of the protocol (docs/measured/subject-messages.md): `virtual-time`, `cancel`, ...
    pub can: &'static [&'static str],
    /// The hooks that the adapter never calls: `timer_add`, `timer_cancel` and `timer_fire`, if the time-outs are inside code
    /// that it cannot reach. Then the clauses of timers are SKIPPED.
    pub lacks: &'static [&'static str],
    /// The code under test calls [`step`].
    pub steps: bool,
}

/// A task of a timer: call it when its time has come.
pub type Task = Box<dyn Fn() + Send + Sync>;

/// A timer under test, created for each run. Several threads may call all methods but `advance_to` and `close`. A panic
/// is the error of the call.
pub trait Timer: Send + Sync + 'static {
    /// Identifies a task.
    type Handle: Clone + Send + 'static;
    /// Run the task when `delay_ns` have passed.
    fn add(&self, task: Task, delay_ns: i64) -> Self::Handle;
    /// Add a task again: a finished task starts again, a waiting task is moved.
    fn add_again(&self, _handle: &Self::Handle, _delay_ns: i64) {
        panic!("add-again is not declared")
    }
    /// Run the task when `first_ns` have passed, and then at every period from that deadline on, until it is cancelled.
    fn fixed_rate(&self, _task: Task, _first_ns: i64, _period_ns: i64) -> Self::Handle {
        panic!("fixed-rate is not declared")
    }
    /// Run the task when `first_ns` have passed, and then a period after the end of each run, until it is cancelled.
    fn fixed_delay(&self, _task: Task, _first_ns: i64, _period_ns: i64) -> Self::Handle {
        panic!("fixed-delay is not declared")
    }
    /// Move the deadline of a task to `delay_ns` from now; false if the task has ended: then nothing is armed. `None` if
    /// a thread may have begun to run it, or the timer does not tell.
    fn reset(&self, _handle: &Self::Handle, _delay_ns: i64) -> Option<bool> {
        panic!("reset is not declared")
    }
    /// Whether this call cancelled the task; `None` if the timer does not tell.
    fn cancel(&self, _handle: &Self::Handle) -> Option<bool> {
        panic!("cancel is not declared")
    }
    /// Pending tasks, if that is known.
    fn size(&self) -> Option<usize> {
        None
    }
    /// Virtual time: it is `now_ns` now; run all that is due before returning.
    fn advance_to(&self, _now_ns: i64) {
        panic!("virtual-time is not declared")
    }
    /// Return when nothing is under way any more, or when a thread is paused. In virtual time this is called after every
    /// call, in real time at the end of a run.
    fn settle(&self, _interrupted: &Interrupted) {}
    /// The run is over: end its threads.
    fn close(&self) {}
}

/// A purgatory that is driven, under the rules of [`Timer`].
pub trait Purgatory: Send + Sync + 'static {
    /// An operation, such as an `Arc`.
    type Operation: Clone + Send + 'static;
    /// A new operation, in no list yet, whose callbacks hand on to `hooks`.
    fn operation(&self, hooks: Arc<Hooks>) -> Self::Operation;
    /// The hooks that an operation was made with.
    fn hooks<'a>(&self, operation: &'a Self::Operation) -> &'a Hooks;
    /// Whether this call completed the operation.
    fn try_complete_else_watch(&self, operation: &Self::Operation, keys: &[String]) -> bool;
    /// How many operations this call completed.
    fn check_and_complete(&self, key: &str) -> usize;
    /// Whether this call completed the operation.
    fn force_complete(&self, _operation: &Self::Operation) -> bool {
        panic!("force is not declared")
    }
    /// Remove the operations of the key without completing them.
    fn cancel_for_key(&self, _key: &str) -> Vec<Self::Operation> {
        panic!("cancel-key is not declared")
    }
    /// Entries of the watch lists, if that is known.
    fn watched(&self) -> Option<usize> {
        None
    }
    /// Keys that have a list, if that is known: for P4.
    fn keys(&self) -> Option<usize> {
        None
    }
    /// Tasks of the timer, if that is known.
    fn delayed(&self) -> Option<usize> {
        None
    }
    /// See [`Timer::advance_to`].
    fn advance_to(&self, _now_ns: i64) {
        panic!("virtual-time is not declared")
    }
    /// See [`Timer::settle`].
    fn settle(&self, _interrupted: &Interrupted) {}
    /// See [`Timer::close`].
    fn close(&self) {}
}

/// Reports that a thread was paused, so that no call waits for it.
#[derive(Debug, Default)]
pub struct Interrupted {
    is: Mutex<bool>,
    changed: Condvar,
}

impl Interrupted {
    /// Whether it is so.
    pub fn is(&self) -> bool {
        *self.is.lock().expect("no thread panics with the lock")
    }

    /// Wait for that, or for so many nanoseconds.
    pub fn wait(&self, at_most_ns: u64) {
        let is = self.is.lock().expect("no thread panics with the lock");
        let time = std::time::Duration::from_nanos(at_most_ns);
        drop(self.changed.wait_timeout_while(is, time, |is| !*is).expect("no thread panics with the lock"));
    }

    fn set(&self) {
        *self.is.lock().expect("no thread panics with the lock") = true;
        self.changed.notify_all();
    }
}

/// Tells what happens to one operation, from within its callbacks. Each callback of the operation hands on to the method of
/// the same name, with its own code as the argument.
pub struct Hooks {
    /// Unique in a run.
    pub id: String,
    /// The operation's time-out.
    pub delay_ns: i64,
    /// The number of units that it waits for, with the capability `amounts`.
    pub units: i64,
    told: Arc<dyn Telling>,
    ready: AtomicBool,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Hooks({})", self.id)
    }
}

impl Hooks {
    /// The condition: calls `force` if the operation is ready, and says whether that completed it.
    pub fn try_complete(&self, force: impl FnOnce() -> bool) -> bool {
        self.answer("try_complete", || {
            let ready = self.ready.load(Ordering::SeqCst);
            self.told.pause("try_complete", &self.id);
            ready && force()
        })
    }

    /// Completes the operation by its own code.
    pub fn force_complete(&self, own: impl FnOnce() -> bool) -> bool {
        self.answer("force_complete", || {
            self.told.pause("force_complete", &self.id);
            own()
        })
    }

    /// The callback of completion.
    pub fn on_complete(&self) {
        self.within("on_complete", || {});
    }

    /// The callback of expiration. Without `timer_fire`, the thread that completed the operation calls it.
    pub fn on_expiration(&self) {
        self.within("on_expiration", || {});
    }

    /// The time-out is given to the timer.
    pub fn timer_add(&self, own: impl FnOnce()) {
        self.within("timer_add", own);
    }

    /// It is taken back.
    pub fn timer_cancel(&self, own: impl FnOnce()) {
        self.within("timer_cancel", own);
    }

    /// It is over.
    pub fn timer_fire(&self, own: impl FnOnce()) {
        self.within("timer_fire", own);
    }

    fn answer(&self, f: &'static str, own: impl FnOnce() -> bool) -> bool {
        let mut call = Call::begin(self, f);
        let out = own();
        call.out = Some(out);
        out
    }

    fn within(&self, f: &'static str, own: impl FnOnce()) {
        let _call = Call::begin(self, f);
        self.told.pause(f, &self.id);
        own();
    }
}

/// The receiver of callbacks: the driver, or a recorder.
trait Telling: Send + Sync {
    fn enter(&self, f: &'static str, hooks: &Hooks) -> i64;
    fn leave(&self, f: &'static str, hooks: &Hooks, began: i64, out: Option<bool>, panics: bool);
    fn pause(&self, f: &'static str, id: &str);
}

/// A callback under way. Its end is reported even if it panics.
struct Call<'a> {
    hooks: &'a Hooks,
    f: &'static str,
    began: i64,
    out: Option<bool>,
}

impl<'a> Call<'a> {
    fn begin(hooks: &'a Hooks, f: &'static str) -> Self {
        Call { hooks, f, began: hooks.told.enter(f, hooks), out: None }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let panics = std::thread::panicking();
        self.hooks.told.leave(self.f, self.hooks, self.began, self.out, panics);
    }
}
