//! Events for those who count what models are made of: how often each operation occurs, which one was the cause of a
//! failure, and the error with all names taken out. Nothing of it leaves the process by itself.

use crate::request::ReadRequest;
use carafe_graph::Error;

/// Category of the events.
const CATEGORY: &str = "carafe";

/// An event with a label and a number.
pub fn send_event(request: &ReadRequest<'_>, action: &str, label: &str, value: i64) {
    if let Some(send) = request.telemetry {
        send("event", CATEGORY, action, label, value);
    }
}

/// `error_info` with the message.
pub fn send_error(request: &ReadRequest<'_>, error: &Error) {
    if request.telemetry.is_some() {
        send_event(request, "error_info", &without_names(&error.to_string()), 1);
    }
}

// Names of nodes, tensors and files stand between backquotes; they belong to the user.
fn without_names(message: &str) -> String {
    let mut parts = message.split('`');
    let mut out = parts.next().unwrap_or_default().to_string();
    while let Some(_name) = parts.next() {
        out.push_str("`*`");
        out.push_str(parts.next().unwrap_or_default());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_out() {
        assert_eq!(without_names("node `a/b` (Relu): `x` is missing"), "node `*` (Relu): `*` is missing");
        assert_eq!(without_names("cut `off"), "cut `*`");
    }
}
