//! One line on the terminal that says how far a long conversion has come. It is written over and gone at the end; where
//! standard error is no terminal nothing is written.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Work that ends before this shows nothing.
const DELAY: Duration = Duration::from_millis(500);
/// Between two changes of the line.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct ProgressLine {
    enabled: bool,
    next: Cell<Instant>,
    shown: Cell<bool>,
}

impl ProgressLine {
    pub(crate) fn new(silent: bool) -> ProgressLine {
        let enabled = !silent && std::io::stderr().is_terminal();
        ProgressLine { enabled, next: Cell::new(Instant::now() + DELAY), shown: Cell::new(false) }
    }
    /// Steps of a count.
    pub(crate) fn steps(&self, done: usize, total: usize, what: &str) {
        self.show(|| format!("{done} of {total} {what}"), false);
    }
    /// Steps of a count, with a bar.
    pub(crate) fn bar(&self, done: usize, total: usize, what: &str) {
        const WIDTH: usize = 24;
        let filled = (WIDTH * done).checked_div(total).unwrap_or(0).min(WIDTH);
        self.show(|| format!("[{}{}] {done} of {total} {what}", "#".repeat(filled), ".".repeat(WIDTH - filled)), false);
    }
    /// A stage without a count.
    pub(crate) fn stage(&self, what: &str) {
        self.show(|| what.to_string(), self.shown.get());
    }

    fn show(&self, text: impl FnOnce() -> String, at_once: bool) {
        let now = Instant::now();
        if !self.enabled || (!at_once && now < self.next.get()) {
            return;
        }
        self.next.set(now + PAUSE);
        self.shown.set(true);
        // A terminal that cannot be written to is no reason to stop.
        let _ = write!(std::io::stderr(), "\r\x1b[K{}", carafe::printable(&text()));
    }
    /// Takes the line away, so that what is printed next starts on a clean one.
    pub(crate) fn clear(&self) {
        if self.shown.replace(false) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}
