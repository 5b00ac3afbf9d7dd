//! What a `Core` reports: to its own hook, else to that of the process. Warnings that come before anybody listens are kept.

use carafe_graph::log::{Hook, Level, report};
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard};

/// Warnings that are kept for whoever listens later.
const MOST_KEPT: usize = 64;

#[derive(Default)]
pub(crate) struct Reporter {
    hook: Mutex<Option<(Level, Hook)>>,
    kept: Mutex<Vec<String>>,
    /// What was reported once and shall not be reported again.
    known: Mutex<HashSet<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Reporter {
    pub(crate) fn set_hook(&self, most: Level, hook: Hook) {
        *lock(&self.hook) = Some((most, hook));
        let kept = std::mem::take(&mut *lock(&self.kept));
        kept.iter().for_each(|text| self.report(Level::Warning, text));
    }

    /// Whether a line of this level would be heard by the hook of this Core.
    pub(crate) fn wants(&self, level: Level) -> bool {
        lock(&self.hook).as_ref().is_some_and(|(most, _)| level <= *most)
    }

    pub(crate) fn report(&self, level: Level, text: &str) {
        let own = lock(&self.hook).clone();
        match own {
            Some((most, hook)) if level <= most => hook(level, text),
            Some(_) => {}
            None if report(level, text) || level > Level::Warning => {}
            None => {
                let mut kept = lock(&self.kept);
                if kept.len() < MOST_KEPT {
                    kept.push(text.to_string());
                }
            }
        }
    }

    /// Warns unless there was a warning under this key before.
    pub(crate) fn warn_once(&self, key: String, text: impl FnOnce() -> String) {
        if lock(&self.known).insert(key) {
            self.report(Level::Warning, &text());
        }
    }
}
