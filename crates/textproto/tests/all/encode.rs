//! Text and JSON of one message give the same bytes.

use carafe_textproto::{FieldInfo, Form, Kind, Schema, encode, parse_json, parse_text};

static INNER: Schema = Schema { name: "Inner", fields: &[FieldInfo::new("flag", 1, Kind::Bool)] };
static OUTER: Schema = Schema {
    name: "Outer",
    fields: &[
        FieldInfo::new("long_number", 1, Kind::Int),
        FieldInfo::new("ratio", 2, Kind::Float),
        FieldInfo::new("exact", 3, Kind::Double),
        FieldInfo::new("label", 4, Kind::Str),
        FieldInfo::new("raw", 5, Kind::Bytes),
        FieldInfo::new("color", 6, Kind::Enum(&[("RED", 0), ("BLUE", 2)])),
        FieldInfo::new("inner", 16, Kind::Message(&INNER)),
    ],
};

fn text(text: &str) -> Result<Vec<u8>, String> {
    encode(&parse_text(text).unwrap(), &OUTER, Form::Text).map_err(|e| e.to_string())
}

fn json(text: &str) -> Result<Vec<u8>, String> {
    encode(&parse_json(text).unwrap(), &OUTER, Form::Json).map_err(|e| e.to_string())
}

#[test]
fn numbers_are_varints_of_two_complement() {
    assert_eq!(text("long_number: 300").unwrap(), [8, 0xac, 2]);
    assert_eq!(text("long_number: -1").unwrap(), [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
}

#[test]
fn json_writes_names_in_camel_case_and_long_numbers_in_quotes() {
    assert_eq!(json(r#"{"longNumber": "300"}"#), text("long_number: 300"));
    assert_eq!(json(r#"{"long_number": 3e2}"#), text("long_number: 300"));
}

#[test]
fn json_writes_bytes_as_base64() {
    assert_eq!(json(r#"{"raw": "AP/+"}"#), text(r#"raw: "\000\377\376""#));
    assert_eq!(json(r#"{"raw": "AA=="}"#), text(r#"raw: "\000""#));
    assert_eq!(json(r#"{"raw": "_w"}"#), text(r#"raw: "\377""#));
    assert!(json(r#"{"raw": "A"}"#).unwrap_err().contains("`raw` must be base64"));
}

#[test]
fn special_floats_have_names_in_both_forms() {
    assert_eq!(json(r#"{"ratio": "-Infinity", "exact": "Infinity"}"#), text("ratio: -inf exact: inf"));
}

#[test]
fn enums_are_words_or_numbers() {
    assert_eq!(text("color: BLUE"), text("color: 2"));
    assert_eq!(json(r#"{"color": "BLUE"}"#), text("color: BLUE"));
    assert_eq!(text("color: GREEN").unwrap_err(), "line 1, column 1: `color` must be one of RED, BLUE, found `GREEN`");
}

#[test]
fn messages_nest() {
    assert_eq!(text("inner { flag: true }").unwrap(), [0x82, 1, 2, 8, 1]);
    assert_eq!(json(r#"{"inner": {"flag": true}, "label": null}"#), text("inner { flag: true }"));
}

#[test]
fn an_unknown_field_is_named_with_its_place() {
    assert_eq!(text("inner {\n  flog: true\n}").unwrap_err(), "line 2, column 3: Inner has no field `flog`");
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_place() {
    assert_eq!(text("ratio: [1,\n 'x']").unwrap_err(), "line 2, column 2: `ratio` must be a number, found a string");
}

#[test]
fn json_that_is_none_is_refused_with_its_place() {
    let error = |text| parse_json(text).unwrap_err().to_string();
    assert_eq!(error("[]"), "line 1, column 1: expected `{`, found `[`");
    assert_eq!(error("{\"a\": 1,\n}"), "line 2, column 1: expected the name of a field in quotes, found `}`");
    assert_eq!(error("{\"a\": nil}"), "line 1, column 7: expected a value, found `nil`");
    assert_eq!(error("{} x"), "line 1, column 4: expected the end, found `x`");
    assert!(error(&"{\"a\":".repeat(100_000)).contains("nested deeper than 100"));
}

#[test]
fn json_escapes_may_be_pairs_of_halves() {
    assert_eq!(json(r#"{"label": "\ud83d\ude00\/"}"#), text(r#"label: "\U0001F600/""#));
    assert!(parse_json(r#"{"label": "\ud83d"}"#).is_err());
}
