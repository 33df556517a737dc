//! A toy timer with periodic tasks and resets, and its adapter: `purgatorio verify --command
//! target/release/examples/periodic`. With the bug: `env TOY_BUG=1 target/release/examples/periodic`.

use purgatorio::{run_timer, Promises, Task, Timer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// While it runs, and later a period after that.
const RUNNING: i64 = i64::MAX;

struct One {
    task: Arc<Task>,
    due_ns: i64,
    period_ns: i64,
    at_rate: bool,
}

#[derive(Default)]
struct State {
    now_ns: i64,
    next: u64,
    waiting: BTreeMap<u64, One>,
}

struct Toy {
    state: Mutex<State>,
    bug: bool,
}

impl Toy {
    fn enter(&self, task: Task, delay_ns: i64, period_ns: i64, at_rate: bool) -> u64 {
        let mut state = self.state.lock().unwrap();
        let one = One { task: Arc::new(task), due_ns: state.now_ns + delay_ns, period_ns, at_rate };
        state.next += 1;
        let number = state.next;
        state.waiting.insert(number, one);
        number
    }

    /// The first task that is due, after its next deadline has been set.
    fn take(&self) -> Option<(u64, Arc<Task>)> {
        let mut state = self.state.lock().unwrap();
        let now_ns = state.now_ns;
        let (&number, first) = state.waiting.iter_mut().min_by_key(|(_, one)| one.due_ns)?;
        if first.due_ns > now_ns {
            return None;
        }
        let task = Arc::clone(&first.task);
        if first.at_rate {
            // The bug: a late run moves all later ones.
            first.due_ns = if self.bug { now_ns } else { first.due_ns } + first.period_ns;
        } else if first.period_ns > 0 {
            first.due_ns = RUNNING;
        } else {
            state.waiting.remove(&number);
        }
        Some((number, task))
    }
}

impl Timer for Toy {
    type Handle = u64;

    fn add(&self, task: Task, delay_ns: i64) -> u64 {
        self.enter(task, delay_ns, 0, false)
    }

    fn fixed_rate(&self, task: Task, first_ns: i64, period_ns: i64) -> u64 {
        self.enter(task, first_ns, period_ns, true)
    }

    fn fixed_delay(&self, task: Task, first_ns: i64, period_ns: i64) -> u64 {
        self.enter(task, first_ns, period_ns, false)
    }

    fn reset(&self, number: &u64, delay_ns: i64) -> Option<bool> {
        let mut state = self.state.lock().unwrap();
        let due_ns = state.now_ns + delay_ns;
        Some(state.waiting.get_mut(number).map(|one| one.due_ns = due_ns).is_some())
    }

    fn cancel(&self, number: &u64) -> Option<bool> {
        Some(self.state.lock().unwrap().waiting.remove(number).is_some())
    }

    fn advance_to(&self, now_ns: i64) {
        self.state.lock().unwrap().now_ns = now_ns;
        while let Some((number, task)) = self.take() {
            task();
            let mut state = self.state.lock().unwrap();
            let end_ns = state.now_ns;
            if let Some(one) = state.waiting.get_mut(&number).filter(|one| one.due_ns == RUNNING) {
                one.due_ns = end_ns + one.period_ns;
            }
        }
    }
}

fn main() {
    let promises = Promises {
        name: "toy-periodic-rust",
        version: "1",
        profile: "timer-cancel-barrier",
        early_ns: Some(0),
        late_ns: Some(0),
        catch_up: Some("burst"),
        can: &["virtual-time", "cancel", "fixed-rate", "fixed-delay", "reset"],
        ..Promises::default()
    };
    let bug = std::env::var_os("TOY_BUG").is_some();
    run_timer(promises, move |_, now_ns| Toy { state: Mutex::new(State { now_ns, ..State::default() }), bug });
}
