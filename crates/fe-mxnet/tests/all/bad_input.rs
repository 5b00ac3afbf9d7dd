//! Files that are wrong: malformed, cut off, or written to hurt.

use crate::common::{SCALE, Version, file, floats, read, record};
use carafe_fe_mxnet::Mxnet;
use carafe_frontend::Format;

#[track_caller]
fn refused(symbol: &str, params: Option<&[u8]>, wanted: &[&str]) {
    let e = read(symbol, params).expect_err("it must be refused").to_string();
    assert!(wanted.iter().all(|w| e.contains(w)), "wanted {wanted:?}, found `{e}`");
}

fn params() -> Vec<u8> {
    file(&[("arg:w", floats(&[2.0, 3.0]))])
}

#[test]
fn both_files_are_recognised_by_their_content() {
    assert!(Mxnet.recognizes(SCALE.as_bytes()));
    assert!(Mxnet.recognizes(&params()));
    for other in ["{\"graph\": {\"node\": []}}", "{\"nodes\": 3}", "layer { name: \"nodes\" }", "", "{"] {
        assert!(!Mxnet.recognizes(other.as_bytes()), "{other}");
    }
}

#[test]
fn a_symbol_that_is_no_json_is_refused_with_where_it_ends_to_be_one() {
    refused(&SCALE.replace("]]}", "]}"), Some(&params()), &["not a valid JSON", "line"]);
    refused(&SCALE[..SCALE.len() - 40], Some(&params()), &["not a valid JSON"]);
}

#[test]
fn nodes_of_another_form_are_refused_by_number_and_name() {
    let wrong = [
        (r#"{"op": "relu", "inputs": []}"#, "`name` is missing"),
        (r#"{"op": 3, "name": "y", "inputs": []}"#, "`op` must be a string, found a number"),
        (r#"{"op": "relu", "name": "y", "inputs": 3}"#, "must be a list, found a number"),
        (r#"{"op": "relu", "name": "y", "inputs": [[0]]}"#, "must hold `[node, output, version]`"),
        (r#"{"op": "relu", "name": "y", "inputs": [[-1, 0]]}"#, "must hold `[node, output, version]`"),
        (r#"{"op": "relu", "name": "y", "attrs": {"a": [1]}, "inputs": []}"#, "attribute `a` must be a string"),
        (r#"{"op": "relu", "name": "y", "inputs": [[0, 99999999999, 0]]}"#, "no operator has so many"),
    ];
    for (node, message) in wrong {
        let text = format!(
            r#"{{"nodes": [{{"op": "null", "name": "x", "inputs": []}}, {node}], "heads": [[1, 0, 0]], "op": "" }}"#
        );
        refused(&text, None, &["node 1", message]);
    }
}

#[test]
fn a_node_reads_only_what_stands_before_it_so_there_are_no_cycles() {
    for reads in [1, 2, 7] {
        let text = format!(
            r#"{{"nodes": [{{"op": "null", "name": "x", "inputs": []}},
            {{"op": "relu", "name": "y", "inputs": [[{reads}, 0, 0]]}}], "heads": [[1, 0, 0]]}}"#
        );
        refused(&text, None, &["node 1 `y`", "only the 1 nodes before it"]);
    }
}

#[test]
fn a_symbol_without_outputs_is_refused() {
    refused(&SCALE.replace("[[2, 0, 0]]", "[]"), Some(&params()), &["`heads` lists no outputs"]);
    refused(&SCALE.replace("[[2, 0, 0]]", "[[9, 0, 0]]"), Some(&params()), &["`heads`", "reads node 9"]);
}

#[test]
fn symbols_nested_too_deep_are_refused() {
    let mut text = r#"{"op": "null", "name": "x", "inputs": []}"#.to_string();
    for _ in 0..20 {
        let inner = format!(r#"{{"nodes": [{text}], "heads": [[0, 0, 0]]}}"#);
        text = format!(r#"{{"op": "_foreach", "name": "n", "inputs": [], "subgraphs": [{inner}]}}"#);
    }
    refused(&format!(r#"{{"nodes": [{text}], "heads": [[0, 0, 0]]}}"#), None, &["nested deeper than 16"]);
    let deep =
        format!(r#"{{"nodes": [{{"op": "x", "name": "y", "inputs": {}{}}}]}}"#, "[".repeat(500), "]".repeat(500));
    refused(&deep, None, &["recursion limit"]);
}

#[test]
fn a_weight_without_a_value_is_named() {
    let text = r#"{"nodes": [{"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "fc_weight", "inputs": []},
        {"op": "null", "name": "fc_bias", "inputs": []}, {"op": "FullyConnected", "name": "fc",
        "attrs": {"num_hidden": "2"}, "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]}], "heads": [[3, 0, 0]]}"#;
    refused(text, None, &["`fc_weight`, `fc_bias`", "give the `.params`"]);
    let some = file(&[("arg:fc_weight", floats(&[2.0, 3.0]))]);
    refused(text, Some(&some), &["no value for `fc_bias`", "belong together"]);
}

#[test]
fn an_operator_and_a_setting_that_nobody_knows_are_named() {
    refused(&SCALE.replace("elemwise_mul", "acme_mul"), Some(&params()), &["1 x `acme_mul`", "node `y`"]);
    let text = SCALE.replace(r#""name": "y","#, r#""name": "y", "attrs": {"colour": "red"},"#);
    refused(&text, Some(&params()), &["node `y` (elemwise_mul)", "`colour` = \"red\""]);
}

#[test]
fn a_setting_of_another_kind_is_refused_with_what_was_expected() {
    let text = |attrs: &str| {
        format!(
            r#"{{"nodes": [{{"op": "null", "name": "x", "attrs": {{"__shape__": "(2, 2)"}}, "inputs": []}},
            {{"op": "Reshape", "name": "y", "attrs": {attrs}, "inputs": [[0, 0, 0]]}}], "heads": [[1, 0, 0]]}}"#
        )
    };
    refused(&text(r#"{"shape": "red"}"#), None, &["`shape` must be whole numbers, found \"red\""]);
    refused(&text(r#"{"shape": "(-4, 2)"}"#), None, &["the two parts must follow"]);
    refused(&text(r#"{"shape": "(-9, 2)"}"#), None, &["-9 in `shape` means nothing"]);
    refused(&text(r#"{"shape": "(-1, 2)", "reverse": "maybe"}"#), None, &["`reverse` must be True or False"]);
}

#[test]
fn arrays_that_are_cut_off_anywhere_are_refused() {
    let whole = params();
    for end in 0..whole.len() {
        let e = read(SCALE, Some(&whole[..end])).expect_err("cut off").to_string();
        assert!(
            e.contains("the file ends within") || e.contains("bytes are left") || e.contains("no value"),
            "{end}: {e}"
        );
    }
}

#[test]
fn sizes_that_no_file_can_have_take_no_memory() {
    let huge = |n: u64| {
        let mut out = vec![];
        [0x112u64, 0, n].iter().for_each(|n| out.extend(n.to_le_bytes()));
        out
    };
    refused(SCALE, Some(&huge(u64::MAX)), &["declares 18446744073709551615 arrays"]);
    let record_of = |shape: &[i64]| file(&[("arg:w", record(Version::V2, shape, 0, &[0; 8]))]);
    refused(SCALE, Some(&record_of(&[i64::MAX, i64::MAX])), &["array 0 of 1", "more than memory holds"]);
    refused(SCALE, Some(&record_of(&[1 << 40])), &["the file ends within the values"]);
    refused(SCALE, Some(&record_of(&[-2])), &["has the dimension -2"]);
    refused(SCALE, Some(&file(&[("arg:w", record(Version::V2, &[1; 40], 0, &[0; 4]))])), &["has a rank that is none"]);
    refused(SCALE, Some(&file(&[("arg:w", record(Version::V2, &[2], 99, &[0; 8]))])), &["element type 99"]);
}

#[test]
fn names_that_do_not_fit_the_arrays_are_refused() {
    let mut two = params();
    let at = two.len() - "arg:w".len() - 16;
    two[at] = 2;
    two.extend([0; 16]);
    refused(SCALE, Some(&two), &["1 arrays and 2 names"]);
    let mut none = params();
    none.truncate(at);
    none.extend(0u64.to_le_bytes());
    refused(SCALE, Some(&none), &["have no names"]);
}

#[test]
fn the_numbers_of_a_window_are_checked() {
    let text = |attrs: &str| {
        format!(
            r#"{{"nodes": [{{"op": "null", "name": "x", "attrs": {{"__shape__": "(1, 1, 4, 4)"}}, "inputs": []}},
            {{"op": "Pooling", "name": "y", "attrs": {attrs}, "inputs": [[0, 0, 0]]}}], "heads": [[1, 0, 0]]}}"#
        )
    };
    refused(
        &text(r#"{"kernel": "(2, 2)", "stride": "(1,)"}"#),
        None,
        &["`stride` has 1 numbers, the window has 2 axes"],
    );
    refused(&text(r#"{"kernel": "(2, 2, 2, 2)"}"#), None, &["`kernel` has 4 numbers"]);
    refused(
        &text(r#"{"kernel": "(2, 2)", "pool_type": "median"}"#),
        None,
        &["`pool_type` is `median`; supported: max"],
    );
}
