//! `ov_util.h`: who hears what the engine reports. Until somebody says otherwise, warnings and errors go to stderr.

use carafe::log::{self, Level};
use std::ffi::{CString, c_char};
use std::sync::Once;

/// `ov_util_log_callback_func`. An exception of C++ must not leave it.
type LogFunction = extern "C" fn(message: *const c_char);

/// Sends reports to stderr, unless the program has said where to.
pub(crate) fn listen() {
    ONCE.call_once(to_stderr);
}

static ONCE: Once = Once::new();

fn to_stderr() {
    log::set_hook(Level::Warning, |level, text| eprintln!("[ {level} ] {text}"));
}

/// Sends all reports to a function, with null to nobody.
#[unsafe(no_mangle)]
pub extern "C" fn ov_util_set_log_callback(func: Option<LogFunction>) {
    ONCE.call_once(|| {});
    match func {
        None => log::clear_hook(),
        Some(func) => log::set_hook(Level::Info, move |level, text| {
            let line = format!("[ {level} ] {text}").replace('\0', " ");
            if let Ok(line) = CString::new(line) {
                func(line.as_ptr());
            }
        }),
    }
}

/// Sends reports to where they went at first.
#[unsafe(no_mangle)]
pub extern "C" fn ov_util_reset_log_callback() {
    ONCE.call_once(|| {});
    to_stderr();
}
