//! `carafe run --timeout`: a watcher beside the run. When the time is over it cancels the inference, and when that does not
//! bring the run back, because code that is not ours does not look, it ends the process.

use carafe::{CancelFlag, Error, Result};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// For the run to come back after it was cancelled.
const GRACE: Duration = Duration::from_secs(2);
/// Between two attempts to cancel: an inference that is just about to begin forgets the first.
const AGAIN: Duration = Duration::from_millis(20);

/// A limit that may be none.
pub(crate) struct TimeLimit {
    limit: Option<Duration>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    over: bool,
    finished: bool,
    cancel: Option<CancelFlag>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
    // Until the run is finished or this time is over.
    fn wait<'a>(&self, mut state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        let start = Instant::now();
        while !state.finished {
            let Some(left) = time.checked_sub(start.elapsed()).filter(|t| !t.is_zero()) else { break };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(|e| e.into_inner()).0;
        }
        state
    }
    fn watch(&self, limit: Duration) {
        let mut state = self.wait(self.lock(), limit);
        if state.finished {
            return;
        }
        state.over = true;
        let start = Instant::now();
        while !state.finished && start.elapsed() < GRACE {
            if let Some(flag) = state.cancel.clone() {
                // The flag calls code of a device, which may wait for the run; the run must reach the state.
                drop(state);
                flag.set();
                state = self.lock();
            }
            state = self.wait(state, AGAIN);
        }
        if !state.finished {
            eprintln!("carafe: {}; it did not stop when it was told to, so the process was ended", too_long(limit));
            std::process::exit(1);
        }
    }
}

fn too_long(limit: Duration) -> String {
    format!("the run took longer than the {} s of --timeout", limit.as_secs_f64())
}

impl TimeLimit {
    /// The time begins to run.
    pub(crate) fn start(limit: Option<Duration>) -> Result<TimeLimit> {
        let shared = Arc::new(Shared::default());
        if let Some(limit) = limit {
            let watched = shared.clone();
            let thread = std::thread::Builder::new().name("time limit".into());
            thread.spawn(move || watched.watch(limit)).map_err(|e| Error::io("cannot start a thread", &e))?;
        }
        Ok(TimeLimit { limit, shared })
    }
    /// An inference that is to be cancelled when the time is over.
    pub(crate) fn cancels(&self, flag: CancelFlag) {
        self.shared.lock().cancel = Some(flag);
    }
    /// An error when the time is over.
    pub(crate) fn check(&self) -> Result<()> {
        match (self.limit, self.shared.lock().over) {
            (Some(limit), true) => Err(Error::new(carafe::ErrorKind::Cancelled, too_long(limit))),
            _ => Ok(()),
        }
    }
    /// Nothing is stopped from here on: what is written is written whole. An error when the time was over before.
    pub(crate) fn finish(&self) -> Result<()> {
        self.shared.lock().finished = true;
        self.shared.changed.notify_all();
        self.check()
    }
}
