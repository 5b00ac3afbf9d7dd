//! Objects behind opaque handles. A handle is a number that looks like no address and is never given out twice, so a freed
//! one is known as such for ever. What a call works with is held by an `Arc`: another thread may free the handle meanwhile.

use crate::status::{Failure, Outcome, set_last_error};
use carafe::log::{self, Level};
use std::any::Any;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// An object that C holds by a handle.
pub(crate) trait Object: Any + Send + Sync {
    /// What C calls it.
    const KIND: &'static str;
}

/// What C sees of an object.
#[repr(C)]
#[derive(Debug)]
pub struct Opaque {
    _private: [u8; 0],
}

/// A handle as C passes it; may be null, freed, of another kind, or nothing at all.
#[repr(transparent)]
#[derive(Debug)]
pub struct Handle<T>(*mut Opaque, PhantomData<fn(T)>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Handle<T> {}

struct Entry {
    kind: &'static str,
    object: Arc<dyn Any + Send + Sync>,
}

/// Handles count up in steps of 16; that is all a hash must spread.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_usize(&mut self, n: usize) {
        self.0 = (n as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Live = HashMap<usize, Entry, BuildHasherDefault<Spread>>;

static LIVE: RwLock<Option<Live>> = RwLock::new(None);
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// Bits that no address of a program has, so that a handle that is followed as a pointer ends at once.
#[cfg(target_pointer_width = "64")]
const MARK: usize = 0x0caf << 48;
#[cfg(not(target_pointer_width = "64"))]
const MARK: usize = 0;

fn live() -> RwLockReadGuard<'static, Option<Live>> {
    LIVE.read().unwrap_or_else(PoisonError::into_inner)
}
fn live_mut() -> RwLockWriteGuard<'static, Option<Live>> {
    LIVE.write().unwrap_or_else(PoisonError::into_inner)
}

/// A new handle of an object.
pub(crate) fn hand_out<T: Object>(object: Arc<T>) -> Handle<T> {
    let number = MARK | (NEXT.fetch_add(1, Ordering::Relaxed) << 4);
    live_mut().get_or_insert_default().insert(number, Entry { kind: T::KIND, object });
    Handle(std::ptr::without_provenance_mut(number), PhantomData)
}

impl<T: Object> Handle<T> {
    /// Of a word that stands where the API has such a handle; any number is one, if only of nothing.
    pub(crate) fn of_word(word: usize) -> Handle<T> {
        Handle(std::ptr::without_provenance_mut(word), PhantomData)
    }

    /// The object; `what` is the name of the argument.
    pub(crate) fn get(self, what: &str) -> Outcome<Arc<T>> {
        if self.0.is_null() {
            return Err(Failure::argument(format!("`{what}` is null")));
        }
        let live = live();
        let entry = live.as_ref().and_then(|all| all.get(&self.0.addr()));
        let entry = entry.ok_or_else(|| {
            Failure::argument(format!("`{what}` is no {} that lives: it was freed, or never made", T::KIND))
        })?;
        entry.object.clone().downcast().map_err(|_| {
            Failure::argument(format!("`{what}` is a handle of {}, expected one of {}", entry.kind, T::KIND))
        })
    }

    /// The object, where null stands for none.
    pub(crate) fn get_if_any(self, what: &str) -> Outcome<Option<Arc<T>>> {
        if self.0.is_null() { Ok(None) } else { self.get(what).map(Some) }
    }

    /// Ends a handle and gives what was behind it. Null is nothing; a handle that is not of a living object of this kind is
    /// reported and left alone.
    pub(crate) fn take(self) -> Option<Arc<T>> {
        if self.0.is_null() {
            return None;
        }
        if let Err(failure) = self.get("the handle") {
            let text = format!("a handle is freed that cannot be: {failure}");
            log::report(Level::Warning, &text);
            set_last_error(Some(text));
            return None;
        }
        let entry = live_mut().as_mut()?.remove(&self.0.addr())?;
        entry.object.downcast().ok()
    }
}
