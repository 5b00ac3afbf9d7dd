//! What C hands over, as types whose values only a C caller makes: a pointer is null or what the API says it is. This is the
//! only file that follows pointers of a caller, so null is checked in one place.

use crate::status::{Failure, Outcome};
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;

fn null(what: &str) -> Failure {
    Failure::argument(format!("`{what}` is null"))
}

/// A text that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Text(*const c_char);

impl Text {
    /// Of a word that stands where the API has a text.
    pub(crate) fn of_word(word: *const c_void) -> Text {
        Text(word.cast())
    }
    /// The bytes before the zero.
    pub(crate) fn bytes(&self, what: &str) -> Outcome<&[u8]> {
        if self.0.is_null() {
            return Err(null(what));
        }
        // SAFETY: not null, and then the caller of the API promises a text that ends with a zero and stays for the call.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes())
    }
    /// The text; one that is not UTF-8 is an error.
    pub(crate) fn get(&self, what: &str) -> Outcome<&str> {
        let bytes = self.bytes(what)?;
        std::str::from_utf8(bytes).map_err(|e| Failure::argument(format!("`{what}` is not UTF-8: {e}")))
    }
    /// The text, where null stands for none.
    pub(crate) fn get_if_any(&self, what: &str) -> Outcome<Option<&str>> {
        if self.0.is_null() { Ok(None) } else { self.get(what).map(Some) }
    }
}

/// A text of `wchar_t` that ends with a zero.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct WideText(*const WideChar);

#[cfg(windows)]
type WideChar = u16;
#[cfg(not(windows))]
type WideChar = u32;

impl WideText {
    /// Of a word that stands where the API has a wide text.
    pub(crate) fn of_word(word: *const c_void) -> WideText {
        WideText(word.cast())
    }
    /// The text, where null stands for none.
    pub(crate) fn get_if_any(self, what: &str) -> Outcome<Option<String>> {
        if self.0.is_null() {
            return Ok(None);
        }
        let mut chars = Vec::new();
        loop {
            // SAFETY: not null, and all characters before this one were not the zero that the caller promises at the end.
            match unsafe { self.0.add(chars.len()).read() } {
                0 => break,
                c => chars.push(c),
            }
        }
        #[cfg(windows)]
        let text = String::from_utf16(&chars).ok();
        #[cfg(not(windows))]
        let text = chars.iter().map(|&c| char::from_u32(c)).collect::<Option<String>>();
        text.map(Some).ok_or_else(|| Failure::argument(format!("`{what}` is no text of wide characters")))
    }
    /// The text.
    pub(crate) fn get(self, what: &str) -> Outcome<String> {
        self.get_if_any(what)?.ok_or_else(|| null(what))
    }
}

/// Where a result goes. It is written when all went well, and not before.
#[repr(transparent)]
#[derive(Debug)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T: Copy> Out<T> {
    /// Of a word that stands where the API has an out parameter of this type.
    pub(crate) fn of_word(word: *mut c_void) -> Out<T> {
        Out(word.cast())
    }
    /// Fails for null; called before work is done.
    pub(crate) fn check(self, what: &str) -> Outcome<()> {
        if self.0.is_null() { Err(null(what)) } else { Ok(()) }
    }
    pub(crate) fn set(self, value: T, what: &str) -> Outcome<()> {
        self.check(what)?;
        // SAFETY: not null, and then the caller promises memory for a T; plain values need no alignment here, and what
        // was there needs no drop.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }
    /// What stands there, for structs that the API frees the content of.
    pub(crate) fn get(self, what: &str) -> Outcome<T> {
        self.check(what)?;
        // SAFETY: not null, and then the caller promises a struct of this type that was filled before.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

/// As many elements as another argument says.
#[repr(transparent)]
#[derive(Debug)]
pub struct List<T>(*const T, PhantomData<T>);

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for List<T> {}

impl<T: Copy> List<T> {
    /// Of a word that stands where the API has an array.
    pub(crate) fn of_word(word: *const c_void) -> List<T> {
        List(word.cast(), PhantomData)
    }
    /// The elements; null is allowed for none.
    pub(crate) fn get(&self, len: usize, what: &str) -> Outcome<&[T]> {
        if len == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(null(what));
        }
        if !self.0.is_aligned() || len.checked_mul(size_of::<T>()).is_none_or(|n| n > isize::MAX as usize) {
            return Err(Failure::argument(format!("`{what}` cannot hold {len} elements")));
        }
        // SAFETY: not null, aligned and of a size that memory can have; that so many elements are there for the call, the
        // caller promises with the number.
        Ok(unsafe { std::slice::from_raw_parts(self.0, len) })
    }
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}
