//! The executors that the requests of one compiled model share, made when first asked for. A request keeps those it uses,
//! so the model may go first.

use super::{Executor, lock};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Executors by name. Cheap to clone; clones share the executors.
#[derive(Clone)]
pub struct Executors(Arc<Inner>);

struct Inner {
    threads: usize,
    named: Mutex<BTreeMap<String, Arc<Executor>>>,
}

/// Stages cannot have this name: it holds a space in front.
const CALLBACK: &str = " callback";

impl Executors {
    /// Every stage executor has at most this many threads; callbacks always run one after another on a thread of their
    /// own, where they cannot hold up an inference.
    pub fn new(threads: usize) -> Executors {
        Executors(Arc::new(Inner { threads: threads.max(1), named: Mutex::default() }))
    }

    /// The executor of stages that name it.
    pub fn stage(&self, name: &str) -> Arc<Executor> {
        self.get(name, self.0.threads)
    }

    /// The executor of callbacks.
    pub fn callback(&self) -> Arc<Executor> {
        self.get(CALLBACK, 1)
    }

    fn get(&self, name: &str, threads: usize) -> Arc<Executor> {
        let mut named = lock(&self.0.named);
        named.entry(name.to_string()).or_insert_with(|| Arc::new(Executor::new(name.trim(), threads))).clone()
    }
}

impl Default for Executors {
    fn default() -> Executors {
        Executors::new(1)
    }
}

impl fmt::Debug for Executors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(lock(&self.0.named).keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_is_the_same_executor() {
        let executors = Executors::new(4);
        assert!(Arc::ptr_eq(&executors.stage("device"), &executors.clone().stage("device")));
        assert_eq!((executors.stage("device").most_threads(), executors.callback().most_threads()), (4, 1));
    }

    #[test]
    fn a_stage_called_callback_has_an_executor_of_its_own() {
        let executors = Executors::default();
        assert!(!Arc::ptr_eq(&executors.stage("callback"), &executors.callback()));
    }
}
