//! The adapter of the toy wheel: `purgatorio verify --command target/release/examples/wheel`, and with the bug:
//! `env TOY_BUG=1 target/release/examples/wheel`.

mod toy;

use purgatorio::{run_timer, Promises, Task, Timer};
use std::sync::Arc;

struct OfWheel(Arc<toy::Wheel>);

impl Timer for OfWheel {
    type Handle = toy::Place;

    fn add(&self, task: Task, delay_ns: i64) -> toy::Place {
        self.0.add(task.into(), delay_ns)
    }

    fn cancel(&self, place: &toy::Place) -> Option<bool> {
        Some(self.0.cancel(*place))
    }

    fn size(&self) -> Option<usize> {
        Some(self.0.size())
    }

    fn advance_to(&self, now_ns: i64) {
        self.0.advance_to(now_ns);
    }

    fn close(&self) {
        self.0.close();
    }
}

fn main() {
    let promises = Promises {
        name: "toy-wheel-rust",
        version: "1",
        profile: "timer-cancel-barrier",
        tick_ns: Some(toy::TICK_NS),
        wheel_size: Some(toy::BUCKETS),
        early_ns: Some(0),
        late_ns: Some(toy::TICK_NS),
        lanes: 4,
        can: &["virtual-time", "real-time", "cancel", "gauge"],
        ..Promises::default()
    };
    let bug = std::env::var_os("TOY_BUG").is_some();
    run_timer(promises, move |virtual_time, now_ns| OfWheel(toy::Wheel::new(virtual_time, now_ns, bug)));
}
