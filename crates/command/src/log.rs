//! What the engine reports, on standard error.

use carafe::log::Level;
use carafe::printable;
use std::io::Write;

/// Prints each line behind its level. Standard error may be closed; a line that nobody reads is no reason to end.
pub(crate) fn print(level: Level, text: &str) {
    let lines: String = text.lines().map(|line| format!("[ {level} ] {}\n", printable(line))).collect();
    let _ = std::io::stderr().lock().write_all(lines.as_bytes());
}
