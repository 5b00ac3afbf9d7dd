//! Reads arbitrary text as an expression of each kind, and evaluates it.
#![no_main]

use carafe_custom_kernels::{Expression, Number};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for parse in [Expression::of_letters, Expression::of_names, Expression::of_functions] {
        if let Ok(expression) = parse(text) {
            let _ = expression.value(|name| Some(Number::Int(name.len() as i64 * 7)));
            let _ = expression.value(|_| Some(Number::Float(1.5)));
            let _ = expression.value(|_| None);
        }
    }
});
