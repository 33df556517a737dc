//! A timing wheel to try the kit on, with a bug of a line that can be switched on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A millisecond.
pub const TICK_NS: i64 = 1_000_000;
pub const BUCKETS: i64 = 16;

type Work = Arc<dyn Fn() + Send + Sync>;

/// Keeps tasks in buckets by the tick in which they are due.
pub struct Wheel {
    state: Mutex<State>,
    /// Where time is the machine's.
    begin: Option<Instant>,
    over: AtomicBool,
    bug: bool,
}

struct State {
    now_ns: i64,
    next: u64,
    buckets: Vec<HashMap<u64, (i64, Work)>>,
}

/// Of a task: its number, and its bucket.
pub type Place = (u64, usize);

impl Wheel {
    pub fn new(virtual_time: bool, now_ns: i64, bug: bool) -> Arc<Self> {
        let buckets = (0..BUCKETS).map(|_| HashMap::new()).collect();
        let begin = (!virtual_time).then(Instant::now);
        let state = Mutex::new(State { now_ns, next: 0, buckets });
        let wheel = Arc::new(Wheel { state, begin, over: AtomicBool::new(false), bug });
        if !virtual_time {
            let turns = Arc::clone(&wheel);
            std::thread::spawn(move || {
                while !turns.over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_nanos(TICK_NS as u64));
                    turns.advance_to(turns.clock_ns());
                }
            });
        }
        wheel
    }

    fn clock_ns(&self) -> i64 {
        self.begin.map_or(0, |begin| begin.elapsed().as_nanos() as i64)
    }

    /// Runs the work when the delay is over, rounded up to a tick; at once if it is over by now.
    pub fn add(&self, work: Work, delay_ns: i64) -> Place {
        let mut state = self.state.lock().unwrap();
        let now_ns = state.now_ns.max(self.clock_ns());
        let due = (now_ns + delay_ns + TICK_NS - 1) / TICK_NS;
        let place = (state.next, (due % BUCKETS) as usize);
        state.next += 1;
        if due > state.now_ns / TICK_NS {
            state.buckets[place.1].insert(place.0, (due, work));
        } else {
            drop(state);
            work();
        }
        place
    }

    /// Whether the task was waiting. If it was, it does not run.
    pub fn cancel(&self, place: Place) -> bool {
        self.state.lock().unwrap().buckets[place.1].remove(&place.0).is_some()
    }

    /// Runs the tasks that are due.
    pub fn advance_to(&self, now_ns: i64) {
        let mut state = self.state.lock().unwrap();
        let from = state.now_ns / TICK_NS;
        state.now_ns = state.now_ns.max(now_ns);
        let to = state.now_ns / TICK_NS;
        let mut due: Vec<Place> = Vec::new();
        for tick in from.max(to - BUCKETS) + 1..=to {
            let bucket = (tick % BUCKETS) as usize;
            for (number, (when, _)) in &state.buckets[bucket] {
                // The bug: a task that is due one turn of the wheel later runs a turn early.
                if *when <= to || self.bug && *when == to + BUCKETS {
                    due.push((*number, bucket));
                }
            }
        }
        drop(state);
        for place in due {
            // It may have been cancelled while another one ran.
            let taken = self.state.lock().unwrap().buckets[place.1].remove(&place.0);
            if let Some((_, work)) = taken {
                work();
            }
        }
    }

    pub fn size(&self) -> usize {
        self.state.lock().unwrap().buckets.iter().map(HashMap::len).sum()
    }

    pub fn close(&self) {
        self.over.store(true, Ordering::SeqCst);
    }
}
