//! Reads arbitrary text as a plugins.xml. Nothing is opened by it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    let core = carafe::core();
    if core.register_plugins_of(text, Path::new("nowhere")).is_ok() {
        let _ = core.available_devices();
    }
});
