//! A purgatory and its adapter: `purgatorio verify --command target/release/examples/purgatory`, and with a bug:
//! `env TOY_BUG=1 target/release/examples/purgatory`.

mod toy;

use purgatorio::{run_purgatory, step, Hooks, Promises, Purgatory};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Its callbacks are those of the hooks.
struct Operation {
    hooks: Arc<Hooks>,
    busy: AtomicBool,      // a thread evaluates it
    again: AtomicBool,     // and is asked to evaluate it once more
    completed: AtomicBool,
    time_out: Mutex<Option<toy::Place>>,
}

/// Keeps operations under keys until a check completes them, or until their time-out. No thread waits for one that evaluates
/// an operation: it asks that one to evaluate it again.
struct Toy {
    wheel: Arc<toy::Wheel>,
    watched: Mutex<HashMap<String, Vec<Arc<Operation>>>>,
    bug: bool, // it sets no flag, and leaves
}

impl Toy {
    /// Evaluates the operation, or makes the evaluating thread repeat. Returns whether this call completed it.
    fn evaluate(&self, operation: &Arc<Operation>) -> bool {
        let (mut done, mut more) = (false, true);
        while more && !operation.completed.load(SeqCst) {
            if operation.busy.compare_exchange(false, true, SeqCst, SeqCst).is_ok() {
                operation.again.store(false, SeqCst);
                done = operation.hooks.try_complete(|| self.complete(operation));
                operation.busy.store(false, SeqCst);
                step();
                more = operation.again.load(SeqCst);
            } else {
                more = !self.bug && !operation.again.swap(true, SeqCst);
            }
        }
        done
    }

    fn complete(&self, operation: &Operation) -> bool {
        operation.hooks.force_complete(|| {
            if operation.completed.swap(true, SeqCst) {
                return false;
            }
            self.disarm(operation);
            operation.hooks.on_complete();
            true
        })
    }

    fn disarm(&self, operation: &Operation) {
        operation.hooks.timer_cancel(|| {
            let place = operation.time_out.lock().unwrap().take();
            if let Some(place) = place {
                self.wheel.cancel(place);
            }
        });
    }
}

/// The purgatory and, for its timer's tasks, a way back to it.
struct OfToy(Arc<Toy>);

impl Purgatory for OfToy {
    type Operation = Arc<Operation>;

    fn operation(&self, hooks: Arc<Hooks>) -> Arc<Operation> {
        let no = || AtomicBool::new(false);
        Arc::new(Operation { hooks, busy: no(), again: no(), completed: no(), time_out: Mutex::new(None) })
    }

    fn hooks<'a>(&self, operation: &'a Arc<Operation>) -> &'a Hooks {
        &operation.hooks
    }

    fn try_complete_else_watch(&self, operation: &Arc<Operation>, keys: &[String]) -> bool {
        if self.0.evaluate(operation) {
            return true;
        }
        for key in keys {
            step();
            self.0.watched.lock().unwrap().entry(key.clone()).or_default().push(Arc::clone(operation));
        }
        step();
        if self.0.evaluate(operation) {
            return true;
        }
        if !operation.completed.load(SeqCst) {
            operation.hooks.timer_add(|| {
                let (toy, fired) = (Arc::clone(&self.0), Arc::clone(operation));
                let work = move || {
                    fired.hooks.timer_fire(|| {
                        if toy.complete(&fired) {
                            fired.hooks.on_expiration();
                        }
                    });
                };
                let place = self.0.wheel.add(Arc::new(work), operation.hooks.delay_ns);
                *operation.time_out.lock().unwrap() = Some(place);
            });
            step();
            if operation.completed.load(SeqCst) {
                self.0.disarm(operation);
            }
        }
        false
    }

    fn check_and_complete(&self, key: &str) -> usize {
        let there = self.0.watched.lock().unwrap().get(key).cloned().unwrap_or_default();
        let count = there.iter().filter(|operation| self.0.evaluate(operation)).count();
        let mut watched = self.0.watched.lock().unwrap();
        if let Some(list) = watched.get_mut(key) {
            list.retain(|operation| !operation.completed.load(SeqCst));
            if list.is_empty() {
                watched.remove(key);
            }
        }
        count
    }

    fn force_complete(&self, operation: &Arc<Operation>) -> bool {
        self.0.complete(operation)
    }

    fn cancel_for_key(&self, key: &str) -> Vec<Arc<Operation>> {
        let back = self.0.watched.lock().unwrap().remove(key).unwrap_or_default();
        back.iter().for_each(|operation| self.0.disarm(operation));
        back
    }

    /// Entries of completed operations are removed when the size is read.
    fn watched(&self) -> Option<usize> {
        let mut watched = self.0.watched.lock().unwrap();
        watched.retain(|_, list| {
            list.retain(|operation| !operation.completed.load(SeqCst));
            !list.is_empty()
        });
        Some(watched.values().map(Vec::len).sum())
    }

    fn keys(&self) -> Option<usize> {
        Some(self.0.watched.lock().unwrap().len())
    }

    fn delayed(&self) -> Option<usize> {
        Some(self.0.wheel.size())
    }

    fn advance_to(&self, now_ns: i64) {
        self.0.wheel.advance_to(now_ns);
    }

    fn close(&self) {
        self.0.wheel.close();
    }
}

fn main() {
    let promises = Promises {
        name: "toy-purgatory-rust",
        version: "1",
        profile: "pending-flag",
        tick_ns: Some(toy::TICK_NS),
        wheel_size: Some(toy::BUCKETS),
        early_ns: Some(0),
        late_ns: Some(toy::TICK_NS),
        purge_interval: Some(0),
        lanes: 8,
        can: &["virtual-time", "real-time", "cancel-key", "force", "gauge"],
        steps: true,
        ..Promises::default()
    };
    let bug = std::env::var_os("TOY_BUG").is_some();
    run_purgatory(promises, move |virtual_time, now_ns| {
        let wheel = toy::Wheel::new(virtual_time, now_ns, false);
        OfToy(Arc::new(Toy { wheel, watched: Mutex::default(), bug }))
    });
}
