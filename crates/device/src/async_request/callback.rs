//! The place where a request keeps its callback. While the callback runs it is lent out: it may replace itself, and then
//! the old one is not put back.

use super::RequestHandle;
use carafe_graph::Error;

/// Told when a run has ended: its error if it failed, and the request, idle again.
pub(super) type Callback = Box<dyn FnMut(Option<&Error>, &RequestHandle) + Send>;

#[derive(Default)]
pub(super) enum Slot {
    #[default]
    Empty,
    Here(Callback),
    Lent,
}

impl Slot {
    /// Whether a run that ends now calls back.
    pub(super) fn is_set(&self) -> bool {
        !matches!(self, Slot::Empty)
    }

    pub(super) fn lend(&mut self) -> Option<Callback> {
        match std::mem::take(self) {
            Slot::Here(callback) => {
                *self = Slot::Lent;
                Some(callback)
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// Takes a lent callback back, or returns it when its place was given to another.
    pub(super) fn give_back(&mut self, callback: Callback) -> Option<Callback> {
        match self {
            Slot::Lent => {
                *self = Slot::Here(callback);
                None
            }
            _ => Some(callback),
        }
    }

    /// What was here; the caller drops it when no lock is held, since its captures may be anything.
    #[must_use]
    pub(super) fn replace(&mut self, with: Option<Callback>) -> Slot {
        std::mem::replace(self, with.map_or(Slot::Empty, Slot::Here))
    }
}
