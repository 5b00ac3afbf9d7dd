//! The outcome of one run: empty until the run and its callback have ended, then never changed. Whoever waits keeps the
//! ticket of the run that he waits for, so later runs cannot take its outcome away.

use super::lock;
use carafe_graph::Result;
use std::fmt;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Ticket {
    state: Mutex<State>,
    settled: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Option<Result<()>>,
    /// How many wait: waking nobody would still be a call of the system.
    waiting: usize,
}

impl Ticket {
    pub(super) fn settle(&self, outcome: Result<()>) {
        let mut state = lock(&self.state);
        state.outcome.get_or_insert(outcome);
        if state.waiting > 0 {
            self.settled.notify_all();
        }
    }

    pub(super) fn outcome(&self) -> Option<Result<()>> {
        lock(&self.state).outcome.clone()
    }

    pub(super) fn wait(&self) -> Result<()> {
        let mut state = lock(&self.state);
        state.waiting += 1;
        loop {
            if let Some(outcome) = state.outcome.clone() {
                state.waiting -= 1;
                return outcome;
            }
            state = self.settled.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// `None` when the time has passed first.
    pub(super) fn wait_for(&self, time: Duration) -> Option<Result<()>> {
        // Times past what a clock can say are for ever.
        let Some(end) = Instant::now().checked_add(time) else { return Some(self.wait()) };
        let mut state = lock(&self.state);
        state.waiting += 1;
        loop {
            let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
            let Some(left) = left.filter(|_| state.outcome.is_none()) else {
                state.waiting -= 1;
                return state.outcome.clone();
            };
            state = self.settled.wait_timeout(state, left).unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?})", self.outcome())
    }
}
