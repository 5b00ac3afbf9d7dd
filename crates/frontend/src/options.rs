//! How a file is read, the same for every format; and whom to tell how far the reading has come.

use carafe_graph::{Pass, Registry};
use std::sync::Arc;

/// How a file is read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Keep operations without a rule as opaque nodes, for looking at a model that cannot run.
    pub keep_unknown: bool,
    /// Attach to every node which rule made it out of what, see [`Explained`](crate::Explained).
    pub explain: bool,
    pub progress: Progress<'a>,
    /// Operations that rules may emit by name.
    pub registry: Option<&'a Registry>,
    /// Rewrites of the graph as decoded, in order.
    pub decoded: &'a [Arc<dyn Pass>],
    /// Hears of events: kind, category, action, label, value.
    pub telemetry: Option<&'a dyn Fn(&str, &str, &str, &str, i64)>,
}

impl std::fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadOptions(keep_unknown: {}, {:?})", self.keep_unknown, self.progress)
    }
}

/// Whom to tell how far a long piece of work has come: steps done, steps in all, and what they are. Nobody by default.
#[derive(Clone, Copy, Default)]
pub struct Progress<'a>(Option<&'a dyn Fn(usize, usize, &str)>);

impl<'a> Progress<'a> {
    pub fn to(listener: &'a dyn Fn(usize, usize, &str)) -> Progress<'a> {
        Progress(Some(listener))
    }
    pub fn tell(&self, done: usize, total: usize, what: &str) {
        if let Some(listener) = self.0 {
            listener(done, total, what);
        }
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Progress(told: {})", self.0.is_some())
    }
}
