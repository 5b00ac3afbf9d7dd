//! What only one format understands, by name; and who hears how far the reading has come and what is noticed on the way.

use carafe_graph::log::Level;
use carafe_graph::{Error, Result};
use std::collections::BTreeMap;

/// Whom to tell how far a long piece of work has come: steps done, steps in all, and what they are. Nobody by default.
#[derive(Clone, Copy, Default)]
pub struct Progress<'a>(Option<&'a dyn Fn(usize, usize, &str)>);

impl<'a> Progress<'a> {
    /// To a listener.
    pub fn to(listener: &'a dyn Fn(usize, usize, &str)) -> Progress<'a> {
        Progress(Some(listener))
    }
    /// Reports how far the work has come.
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

/// What is noticed while a model is read: warnings, and for whoever asks each node with the shapes it got.
#[derive(Clone, Copy, Default)]
pub struct Log<'a> {
    hear: Option<&'a dyn Fn(Level, &str)>,
    debug: bool,
}

impl<'a> Log<'a> {
    /// To a listener; debug lines are only made when it wants them.
    pub fn to(hear: &'a dyn Fn(Level, &str), debug: bool) -> Log<'a> {
        Log { hear: Some(hear), debug }
    }
    /// This one, or `other` where nobody listens to this one.
    #[must_use]
    pub fn or(self, other: Log<'a>) -> Log<'a> {
        if self.hear.is_some() { self } else { other }
    }
    /// Whether debug lines are heard.
    pub fn is_debug(&self) -> bool {
        self.debug && self.hear.is_some()
    }
    /// Reports a warning.
    pub fn warn(&self, text: impl AsRef<str>) {
        if let Some(hear) = self.hear {
            hear(Level::Warning, text.as_ref());
        }
    }
    /// Reports a debug line, which is only made when somebody hears it.
    pub fn debug(&self, text: impl FnOnce() -> String) {
        if let Some(hear) = self.hear.filter(|_| self.debug) {
            hear(Level::Debug, &text());
        }
    }
}

impl std::fmt::Debug for Log<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Log(heard: {}, debug: {})", self.hear.is_some(), self.debug)
    }
}

/// Options that only some formats understand, as text under the names of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatOptions(BTreeMap<String, String>);

impl FormatOptions {
    /// Sets one.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut FormatOptions {
        self.0.insert(name.into(), value.into());
        self
    }
    /// The text of one, if it is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
    /// A switch: absent is off.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0" | "no") => Ok(false),
            Some("" | "true" | "1" | "yes") => Ok(true),
            Some(other) => Err(Error::usage(format!("option `--{name}` takes True or False, found `{other}`"))),
        }
    }
    /// Takes one out.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
    /// Refuses what the format does not understand.
    pub fn check(&self, format: &str, known: &[&str]) -> Result<()> {
        match self.0.keys().find(|n| !known.contains(&n.as_str())) {
            None => Ok(()),
            Some(name) => Err(Error::usage(format!("option `--{name}` means nothing for a model of format {format}"))),
        }
    }
}
