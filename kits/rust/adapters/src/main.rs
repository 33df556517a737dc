//! Adapters of Rust timers that others wrote, one binary: `env TIMER=delay-queue purgatorio verify --command ./adapters`.

use hierarchical_hash_wheel_timer::thread_timer::{TimerRef, TimerWithThread};
use hierarchical_hash_wheel_timer::{ClosureTimer, OneShotClosureState, PeriodicClosureState};
use purgatorio::{run_timer, Interrupted, Promises, Task, Timer};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_util::time::delay_queue::Key;
use tokio_util::time::DelayQueue;
use uuid::Uuid;

fn wait(delay_ns: i64) -> Duration {
    Duration::from_nanos(delay_ns.max(0) as u64)
}

/// A queue, and a task that polls it if it is woken and not otherwise, as an executor does. Time is the driver's.
struct OfDelayQueue {
    runtime: Runtime,
    queue: Mutex<DelayQueue<Arc<Entry>>>,
    woken: Arc<Woken>,
    now_ns: AtomicI64,
    turn: Mutex<()>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// A task, and its key while it is in the queue.
struct Entry {
    task: Task,
    key: Mutex<Option<Key>>,
}

impl OfDelayQueue {
    fn new(now_ns: i64) -> Self {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        // Its clock begins where the runtime's stands still.
        let queue = Mutex::new({
            let _entered = runtime.enter();
            DelayQueue::new()
        });
        let turn = Mutex::new(());
        OfDelayQueue { runtime, queue, woken, now_ns: AtomicI64::new(now_ns), turn }
    }

    fn poll(&self) {
        let _entered = self.runtime.enter();
        let waker = Waker::from(Arc::clone(&self.woken));
        while self.woken.0.swap(false, SeqCst) {
            loop {
                let mut queue = self.queue.lock().unwrap();
                // Ready(None): nothing is in it. Whoever inserts next wakes its reader.
                let Poll::Ready(Some(expired)) = queue.poll_expired(&mut Context::from_waker(&waker)) else { break };
                let entry = expired.into_inner();
                *entry.key.lock().unwrap() = None;
                drop(queue);
                (entry.task)();
            }
        }
    }

    fn insert(&self, queue: &mut DelayQueue<Arc<Entry>>, entry: &Arc<Entry>, delay_ns: i64) {
        if queue.is_empty() {
            self.woken.0.store(true, SeqCst);
        }
        *entry.key.lock().unwrap() = Some(queue.insert(Arc::clone(entry), wait(delay_ns)));
    }
}

impl Timer for OfDelayQueue {
    type Handle = Arc<Entry>;

    fn add(&self, task: Task, delay_ns: i64) -> Arc<Entry> {
        let _entered = self.runtime.enter();
        let entry = Arc::new(Entry { task, key: Mutex::new(None) });
        self.insert(&mut self.queue.lock().unwrap(), &entry, delay_ns);
        entry
    }

    fn add_again(&self, entry: &Arc<Entry>, delay_ns: i64) {
        let _entered = self.runtime.enter();
        let mut queue = self.queue.lock().unwrap();
        let waits = *entry.key.lock().unwrap();
        match waits {
            Some(key) => queue.reset(&key, wait(delay_ns)),
            None => self.insert(&mut queue, entry, delay_ns),
        }
    }

    fn reset(&self, entry: &Arc<Entry>, delay_ns: i64) -> Option<bool> {
        let _entered = self.runtime.enter();
        let mut queue = self.queue.lock().unwrap();
        let waits = *entry.key.lock().unwrap();
        Some(waits.map(|key| queue.reset(&key, wait(delay_ns))).is_some())
    }

    fn cancel(&self, entry: &Arc<Entry>) -> Option<bool> {
        let _entered = self.runtime.enter();
        let mut queue = self.queue.lock().unwrap();
        let waits = entry.key.lock().unwrap().take();
        Some(waits.is_some_and(|key| queue.try_remove(&key).is_some()))
    }

    fn size(&self) -> Option<usize> {
        Some(self.queue.lock().unwrap().len())
    }

    fn advance_to(&self, now_ns: i64) {
        let _turn = self.turn.lock().unwrap();
        let by = now_ns - self.now_ns.swap(now_ns, SeqCst);
        self.runtime.block_on(async {
            tokio::time::advance(wait(by)).await;
            // The driver of its timers has its turn.
            tokio::task::yield_now().await;
        });
        self.poll();
    }

    fn settle(&self, _: &Interrupted) {
        if let Ok(_turn) = self.turn.try_lock() {
            self.poll();
        }
    }
}

/// `tokio::time::sleep` in a task for each.
struct OfSleep(Runtime);

impl Timer for OfSleep {
    type Handle = Arc<JoinHandle<()>>;

    fn add(&self, task: Task, delay_ns: i64) -> Self::Handle {
        let sleeping = async move {
            tokio::time::sleep(wait(delay_ns)).await;
            task();
        };
        Arc::new(self.0.spawn(sleeping))
    }

    fn cancel(&self, handle: &Self::Handle) -> Option<bool> {
        handle.abort();
        None
    }
}

type Wheel = TimerWithThread<Uuid, OneShotClosureState<Uuid>, PeriodicClosureState<Uuid>>;
type WheelRef = TimerRef<Uuid, OneShotClosureState<Uuid>, PeriodicClosureState<Uuid>>;

/// The thread of `hierarchical_hash_wheel_timer`.
struct OfHashWheel(Wheel, Mutex<WheelRef>);

impl Timer for OfHashWheel {
    type Handle = Uuid;

    fn add(&self, task: Task, delay_ns: i64) -> Uuid {
        let id = Uuid::new_v4();
        self.1.lock().unwrap().schedule_action_once(id, wait(delay_ns), move |_| task());
        id
    }

    fn close(&self) {
        let _ = self.0.shutdown_async();
    }
}

fn main() {
    let name: &'static str = std::env::var("TIMER").unwrap_or_default().leak();
    let promises = Promises { name, lanes: 4, early_ns: Some(0), ..Promises::default() };
    match name {
        // "the item will be yielded once the duration has elapsed"; in whole milliseconds, rounded up.
        "delay-queue" => run_timer(
            Promises {
                profile: "timer-cancel-barrier",
                tick_ns: Some(1_000_000),
                unit_ns: Some(1_000_000),
                late_ns: Some(1_000_000),
                can: &["virtual-time", "cancel", "gauge", "add-again", "reset"],
                ..promises
            },
            |_, now_ns| OfDelayQueue::new(now_ns),
        ),
        // "Sleep operates at millisecond granularity"; an abort may come too late.
        "sleep" => run_timer(
            Promises { profile: "timer", can: &["real-time", "cancel"], ..promises },
            |_, _| OfSleep(Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime")),
        ),
        // "millisecond accuracy": by so much it may be early. A cancel is a message to its thread, and nothing says when
        // that is read: so no cancel is declared.
        "hash-wheel" => run_timer(
            Promises {
                profile: "timer",
                can: &["real-time"],
                early_ns: Some(1_000_000),
                unit_ns: Some(1_000_000),
                ..promises
            },
            |_, _| {
                let wheel: Wheel = TimerWithThread::for_uuid_closures();
                let timer = wheel.timer_ref();
                OfHashWheel(wheel, Mutex::new(timer))
            },
        ),
        _ => {
            eprintln!("TIMER is none of delay-queue, sleep, hash-wheel");
            std::process::exit(2);
        }
    }
}
