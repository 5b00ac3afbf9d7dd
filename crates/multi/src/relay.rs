//! Carries a cancellation from a request to the requests it is made of. Each of those has a flag of its own, which its
//! inference clears when it begins; so one thread for the whole process sets it again and again while the outer flag is
//! up. The thread sleeps while nothing runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(1);

static LINKS: LazyLock<Links> = LazyLock::new(|| Links { list: Mutex::new(Vec::new()), some: Condvar::new() });
static NEXT: AtomicU64 = AtomicU64::new(0);

struct Links {
    list: Mutex<Vec<Link>>,
    some: Condvar,
}

struct Link {
    id: u64,
    from: Arc<AtomicBool>,
    to: Vec<Arc<AtomicBool>>,
}

/// Ends the carrying when dropped.
#[derive(Debug)]
pub(crate) struct Relay(u64);

impl Relay {
    /// Until the answer is dropped, raising `from` raises all of `to`.
    pub(crate) fn start(from: &Arc<AtomicBool>, to: Vec<Arc<AtomicBool>>) -> Relay {
        static THREAD: LazyLock<bool> = LazyLock::new(|| {
            let thread = std::thread::Builder::new().name("carafe-cancel".into());
            thread.spawn(carry).is_ok()
        });
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        // Without the thread, cancellation works between the parts of an inference only.
        if *THREAD {
            list().push(Link { id, from: from.clone(), to });
            LINKS.some.notify_one();
        }
        Relay(id)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        list().retain(|l| l.id != self.0);
    }
}

fn list() -> MutexGuard<'static, Vec<Link>> {
    LINKS.list.lock().unwrap_or_else(|e| e.into_inner())
}

fn carry() {
    loop {
        let mut links = list();
        while links.is_empty() {
            links = LINKS.some.wait(links).unwrap_or_else(|e| e.into_inner());
        }
        for link in links.iter().filter(|l| l.from.load(Ordering::Relaxed)) {
            link.to.iter().for_each(|t| t.store(true, Ordering::Relaxed));
        }
        drop(links);
        std::thread::sleep(TICK);
    }
}
