//! How a running inference is stopped from another thread: a flag that the device looks at between two nodes, and where
//! looking is not enough, something to call.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

type Hook = Box<dyn Fn() + Send + Sync>;

/// Shared by a request and whoever may cancel it.
#[derive(Clone, Default)]
pub struct CancelFlag(Arc<Inner>);

#[derive(Default)]
struct Inner {
    flag: Arc<AtomicBool>,
    hook: Option<Hook>,
    /// Flags of requests that run on behalf of this one.
    followers: Mutex<Vec<CancelFlag>>,
    /// Flags of requests on whose behalf this one runs.
    leaders: Mutex<Vec<CancelFlag>>,
}

fn lock(list: &Mutex<Vec<CancelFlag>>) -> MutexGuard<'_, Vec<CancelFlag>> {
    list.lock().unwrap_or_else(|e| e.into_inner())
}

fn forget(list: &Mutex<Vec<CancelFlag>>, flag: &CancelFlag) {
    let mut list = lock(list);
    if let Some(at) = list.iter().position(|f| Arc::ptr_eq(&f.0, &flag.0)) {
        list.swap_remove(at);
    }
}

impl CancelFlag {
    /// Not set.
    pub fn new() -> CancelFlag {
        CancelFlag::default()
    }
    /// Also calls `hook` when it is set.
    pub fn with_hook(hook: impl Fn() + Send + Sync + 'static) -> CancelFlag {
        CancelFlag(Arc::new(Inner { hook: Some(Box::new(hook)), ..Inner::default() }))
    }
    /// Stops the inference.
    pub fn set(&self) {
        self.0.flag.store(true, Ordering::SeqCst);
        if let Some(hook) = &self.0.hook {
            hook();
        }
        let followers = lock(&self.0.followers).clone();
        followers.iter().for_each(CancelFlag::set);
    }
    /// Lets a new inference begin. A flag that is led stays set while its leader is: the request that this one works
    /// for was cancelled in the meantime.
    pub fn clear(&self) {
        self.0.flag.store(false, Ordering::SeqCst);
        if lock(&self.0.leaders).iter().any(CancelFlag::is_set) {
            self.set();
        }
    }
    /// Whether the inference shall stop.
    pub fn is_set(&self) -> bool {
        self.0.flag.load(Ordering::SeqCst)
    }
    /// The plain flag, for an evaluation that looks at it.
    pub fn plain(&self) -> Arc<AtomicBool> {
        self.0.flag.clone()
    }
    /// Until the guard goes, setting this sets `other` too; at once when this is set already.
    pub fn lead(&self, other: &CancelFlag) -> Leading {
        lock(&self.0.followers).push(other.clone());
        lock(&other.0.leaders).push(self.clone());
        if self.is_set() {
            other.set();
        }
        Leading { leader: self.clone(), follower: other.clone() }
    }
}

impl fmt::Debug for CancelFlag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CancelFlag({})", self.is_set())
    }
}

/// Ends with the work that one request does for another.
#[derive(Debug)]
#[must_use]
pub struct Leading {
    leader: CancelFlag,
    follower: CancelFlag,
}

impl Drop for Leading {
    fn drop(&mut self) {
        forget(&self.leader.0.followers, &self.follower);
        forget(&self.follower.0.leaders, &self.leader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_is_set_with_its_leader_while_the_guard_lives() {
        let (a, b) = (CancelFlag::new(), CancelFlag::new());
        let guard = a.lead(&b);
        a.set();
        assert!(b.is_set());
        drop(guard);
        a.clear();
        b.clear();
        a.set();
        assert!(!b.is_set());
    }

    #[test]
    fn clearing_a_follower_does_not_lose_the_cancellation_of_its_leader() {
        let (a, b) = (CancelFlag::new(), CancelFlag::new());
        let _guard = a.lead(&b);
        a.set();
        b.clear();
        assert!(b.is_set());
    }

    #[test]
    fn a_leader_that_is_set_already_sets_the_follower_at_once() {
        let (a, b) = (CancelFlag::new(), CancelFlag::new());
        a.set();
        let _guard = a.lead(&b);
        assert!(b.is_set());
    }
}
