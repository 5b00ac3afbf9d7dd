//! Where the engine reports what it notices. Libraries print nothing: a program sets a hook and shows, files or drops what it
//! gets.
//!
//! ```
//! use carafe_graph::log::{self, Level};
//!
//! log::set_hook(Level::Warning, |level, text| eprintln!("[ {level} ] {text}"));
//! # log::clear_hook();
//! ```

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// How much a line matters; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Something failed, and no call can return it.
    Error,
    /// The work goes on, and the result may not be what was wanted.
    Warning,
    /// Worth knowing.
    Info,
    /// Every step.
    Debug,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Error => "ERROR",
            Level::Warning => "WARNING",
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
        })
    }
}

/// What is called with each line.
pub type Hook = Arc<dyn Fn(Level, &str) + Send + Sync>;

static HOOK: RwLock<Option<(Level, Hook)>> = RwLock::new(None);

/// Sets who hears of everything up to `most`, in the whole process; it replaces the one before. The hook may be called from
/// any thread, and must not panic.
pub fn set_hook(most: Level, hook: impl Fn(Level, &str) + Send + Sync + 'static) {
    let old = HOOK.write().unwrap_or_else(PoisonError::into_inner).replace((most, Arc::new(hook)));
    drop(old);
}

/// From now on nobody hears.
pub fn clear_hook() {
    let old = HOOK.write().unwrap_or_else(PoisonError::into_inner).take();
    drop(old);
}

/// Reports a line to the hook of the process. False when there is none, or when it does not want this level.
pub fn report(level: Level, text: &str) -> bool {
    // Called without the lock: a hook may set another.
    let hook = HOOK.read().unwrap_or_else(PoisonError::into_inner).clone();
    match hook {
        Some((most, hook)) if level <= most => {
            hook(level, text);
            true
        }
        _ => false,
    }
}
