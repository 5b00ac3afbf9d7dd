//! Threads that a device lends to what runs inside one of its inferences: an extension's loop shares the device's threads
//! instead of starting its own.

use std::cell::RefCell;
use std::sync::Arc;

/// Threads that share a loop.
pub trait Parallel: Send + Sync {
    /// How many threads work on a loop.
    fn threads(&self) -> usize;
    /// Calls `body` once for each part from 0 on, and returns when all are done.
    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync));
}

thread_local! {
    static LENT: RefCell<Option<Arc<dyn Parallel>>> = const { RefCell::new(None) };
}

/// Runs `work`; whatever asks for threads on this thread meanwhile gets these.
pub fn with_parallel<R>(threads: Arc<dyn Parallel>, work: impl FnOnce() -> R) -> R {
    struct Back(Option<Arc<dyn Parallel>>);
    impl Drop for Back {
        fn drop(&mut self) {
            LENT.set(self.0.take());
        }
    }
    let _back = Back(LENT.replace(Some(threads)));
    work()
}

/// The threads lent to this thread, if it runs inside an inference that lends them.
pub fn parallel() -> Option<Arc<dyn Parallel>> {
    LENT.with_borrow(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct InLine;
    impl Parallel for InLine {
        fn threads(&self) -> usize {
            1
        }
        fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
            (0..parts).for_each(body);
        }
    }

    #[test]
    fn threads_are_lent_for_the_length_of_the_work_alone() {
        assert!(parallel().is_none());
        with_parallel(Arc::new(InLine), || assert_eq!(parallel().unwrap().threads(), 1));
        assert!(parallel().is_none());
    }
}
