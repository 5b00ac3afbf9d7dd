//! The text form, field by field, and the places named in errors.

use carafe_textproto::{MAX_DEPTH, Value, parse_text};

fn value(text: &str) -> Value {
    parse_text(text).unwrap().get("a").unwrap().clone()
}

fn error(text: &str) -> String {
    parse_text(text).unwrap_err().to_string()
}

#[test]
fn numbers_may_be_decimal_octal_or_hexadecimal() {
    assert_eq!(value("a: 12"), Value::Int(12));
    assert_eq!(value("a: 017"), Value::Int(15));
    assert_eq!(value("a: -0x1F"), Value::Int(-31));
    assert_eq!(value("a: 18446744073709551615"), Value::Int(u64::MAX.into()));
}

#[test]
fn floats_may_have_an_exponent_and_a_suffix() {
    assert_eq!(value("a: 1.5e-3"), Value::Float(0.0015));
    assert_eq!(value("a: .5"), Value::Float(0.5));
    assert_eq!(value("a: 2.f"), Value::Float(2.0));
    assert_eq!(value("a: 1e+2F"), Value::Float(100.0));
}

#[test]
fn infinity_and_nan_are_numbers() {
    assert_eq!(value("a: -inf").as_f64(), Some(f64::NEG_INFINITY));
    assert_eq!(value("a: Infinity").as_f64(), Some(f64::INFINITY));
    assert!(value("a: nan").as_f64().unwrap().is_nan());
}

#[test]
fn a_number_beyond_64_bits_is_a_float() {
    assert_eq!(value("a: 18446744073709551616"), Value::Float(18446744073709551616.0));
}

#[test]
fn strings_that_follow_each_other_are_one() {
    assert_eq!(value("a: \"x\" 'y'  # comment\n \"z\""), Value::Str(b"xyz".into()));
}

#[test]
fn escapes_give_bytes() {
    assert_eq!(
        value(r#"a: "\n\t\\\"\101\xff\u00e9\U0001F600""#),
        Value::Str(b"\n\t\\\"A\xff\xc3\xa9\xf0\x9f\x98\x80".into())
    );
}

#[test]
fn messages_stand_in_braces_or_angle_brackets_with_or_without_colon() {
    for text in ["a { b: 1 }", "a: { b: 1 }", "a < b: 1 >", "a: <b: 1>;"] {
        assert_eq!(value(text).as_message().unwrap().get("b"), Some(&Value::Int(1)), "{text}");
    }
}

#[test]
fn lists_and_repeated_fields_read_alike() {
    for text in ["a: [1, 2]", "a: 1 a: 2", "a: 1, a: [2]", "a: 1; a: 2;"] {
        let m = parse_text(text).unwrap();
        let found: Vec<i64> = m.all("a").filter_map(|(_, v)| v.as_i64()).collect();
        assert_eq!(found, [1, 2], "{text}");
    }
}

#[test]
fn a_list_may_be_empty_or_hold_messages() {
    assert_eq!(value("a: []"), Value::List(vec![]));
    assert_eq!(parse_text("a: [{b: 1}, <b: 2>]").unwrap().all("a").count(), 2);
}

#[test]
fn extensions_and_any_keep_their_names() {
    let m = parse_text("[acme.net.depth]: 3 [type.googleapis.com/acme.Net] { b: 1 }").unwrap();
    assert_eq!(m.fields[0].name, "[acme.net.depth]");
    assert_eq!(m.fields[1].name, "[type.googleapis.com/acme.Net]");
}

#[test]
fn fields_know_their_line_and_column() {
    let m = parse_text("# head\na: 1\n  é_no: 2").map_err(|e| e.to_string());
    assert_eq!(m.unwrap_err(), "line 3, column 3: expected the name of a field, found `é`");
    let m = parse_text("x: 1\n  a: 2").unwrap();
    assert_eq!((m.fields[1].at.line, m.fields[1].at.column), (2, 3));
}

#[test]
fn a_message_without_end_is_refused() {
    assert_eq!(error("a {\n b: 1\n"), "line 3, column 1: expected `}`, found the end");
}

#[test]
fn a_string_without_end_is_refused() {
    assert_eq!(error("a: 'x\n'"), "line 1, column 4: the string does not end on its line");
}

#[test]
fn a_value_that_is_none_is_refused() {
    assert_eq!(error("a: }"), "line 1, column 4: expected a value, found `}`");
    assert_eq!(error("a 1"), "line 1, column 3: expected `:` or a message behind `a`, found `1`");
    assert_eq!(error("a: 09"), "line 1, column 4: `09` is not a number");
    assert_eq!(error("a: 1.2.3"), "line 1, column 4: `1.2.3` is not a number");
    assert_eq!(error("a: -x"), "line 1, column 5: expected a number behind `-`");
    assert_eq!(error(r#"a: "\q""#), "line 1, column 5: unknown escape in a string");
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "a{".repeat(MAX_DEPTH);
    assert!(parse_text(&format!("{deep}{}", "}".repeat(MAX_DEPTH))).is_ok());
    assert!(error(&"a{".repeat(100_000)).contains("nested deeper than 100"));
    assert!(error(&"a:[{".repeat(100_000)).contains("nested deeper than 100"));
}
