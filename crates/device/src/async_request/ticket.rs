//! The outcome of one run: empty until the run and its callback have ended, then never changed. Whoever waits keeps the
//! ticket of the run that he waits for, so later runs cannot take its outcome away.

use super::lock;
use carafe_graph::Result;
use std::fmt;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Ticket {
    outcome: Mutex<Option<Result<()>>>,
    settled: Condvar,
}

impl Ticket {
    pub(super) fn settle(&self, outcome: Result<()>) {
        lock(&self.outcome).get_or_insert(outcome);
        self.settled.notify_all();
    }

    pub(super) fn outcome(&self) -> Option<Result<()>> {
        lock(&self.outcome).clone()
    }

    pub(super) fn wait(&self) -> Result<()> {
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            outcome = self.settled.wait(outcome).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// `None` when the time has passed first.
    pub(super) fn wait_for(&self, time: Duration) -> Option<Result<()>> {
        // Times past what a clock can say are for ever.
        let Some(end) = Instant::now().checked_add(time) else { return Some(self.wait()) };
        let mut outcome = lock(&self.outcome);
        loop {
            if let Some(outcome) = &*outcome {
                return Some(outcome.clone());
            }
            let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            outcome = self.settled.wait_timeout(outcome, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?})", self.outcome())
    }
}
