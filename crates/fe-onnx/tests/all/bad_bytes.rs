//! Files that are no models at all, or only a part of one. Nothing may panic, hang or take all memory.

use crate::common::{error, is_onnx, read};

fn model() -> Vec<u8> {
    include_bytes!("../fixtures/loop11.onnx").to_vec()
}

#[test]
fn the_whole_model_is_read() {
    assert!(is_onnx(&model()));
    assert!(read(model()).is_ok());
}

#[test]
fn an_empty_file_is_refused() {
    assert!(!is_onnx(&[]));
    assert!(error([]).contains("has no graph"));
}

#[test]
fn a_model_cut_anywhere_is_refused_or_still_whole() {
    let whole = model();
    for end in 0..whole.len() {
        if let Ok(part) = read(&whole[..end]) {
            // Cut behind the graph only the versions are missing.
            assert_eq!(part.results().len(), 2, "cut at {end}");
        }
    }
}

#[test]
fn a_cut_model_says_that_it_is_no_valid_file() {
    let whole = model();
    assert!(error(&whole[..whole.len() / 2]).contains("not a valid ONNX file"));
}

#[test]
fn one_changed_byte_never_panics() {
    let whole = model();
    for at in 0..whole.len() {
        for value in [0, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] = value;
            let _ = read(changed);
        }
    }
}

#[test]
fn random_bytes_are_no_model() {
    let mut state = 1u64;
    for length in 0..400 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as u8
            })
            .collect();
        assert!(read(&bytes).is_err());
    }
}

#[test]
fn a_length_beyond_the_file_is_refused() {
    // graph: 2^63 bytes.
    assert!(
        error([0x3a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]).contains("not a valid ONNX file")
    );
}

#[test]
fn messages_nested_without_end_are_refused() {
    // graph { node { attribute { g { node { ... from the inside out.
    let mut bytes: Vec<u8> = vec![];
    for _ in 0..5_000 {
        for key in [0x32, 0x2a, 0x0a] {
            let mut length = bytes.len();
            let mut outer = vec![key];
            while length >= 0x80 {
                outer.push(length as u8 | 0x80);
                length >>= 7;
            }
            outer.push(length as u8);
            outer.extend(&bytes);
            bytes = outer;
        }
    }
    let mut model = vec![0x3a];
    let mut length = bytes.len();
    while length >= 0x80 {
        model.push(length as u8 | 0x80);
        length >>= 7;
    }
    model.push(length as u8);
    model.extend(bytes);
    assert!(error(model).contains("not a valid ONNX file"));
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let mut text = b"ir_version: 8 graph { name: '".to_vec();
    text.extend([b'x'; 70_000]);
    text.extend(b"\xff\xfe' }");
    assert!(error(text).contains("the text is not UTF-8 from byte 70029 on"));
}

#[test]
fn an_error_in_a_text_names_its_line() {
    assert!(
        error("ir_version: 8\ngraph {\n  nodes {}\n}").contains("line 3, column 3: GraphProto has no field `nodes`")
    );
}
