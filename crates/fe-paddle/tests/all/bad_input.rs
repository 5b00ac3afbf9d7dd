//! Programs that are cut short, wrong or hostile: an error that says what is wrong, never a panic, and memory within bounds.

use crate::common::*;
use carafe_fe_paddle::Paddle;
use carafe_frontend::Format;

fn relu() -> Message {
    operator("relu", &[("X", &["x"])], &[("Out", &["y"])])
}

fn scaled() -> Message {
    let add = operator("elementwise_add", &[("X", &["x"]), ("Y", &["w"])], &[("Out", &["y"])]);
    single(&[variable("w", &[3], true)], &[add])
}

#[test]
fn a_program_is_recognised_by_its_first_bytes() {
    assert!(Paddle.recognizes(&single(&[], &[relu()]).0));
    assert!(Paddle.recognizes(br#"{ "base_code": {"magic": "pir", "version": 4}, "program": {} }"#));
    for other in [&b"\x08\x03\x12\x00"[..], b"{}", b"", b"\x0a\x05node1", b"PK\x03\x04"] {
        assert!(!Paddle.recognizes(other), "{other:?}");
    }
}

#[test]
fn every_cut_of_a_program_is_refused_or_read() {
    let whole = single(&[], &[relu()]).0;
    for n in 0..whole.len() {
        let _ = read(&whole[..n], None);
    }
    assert!(read(&whole, None).is_ok());
}

#[test]
fn every_changed_byte_of_a_program_is_refused_or_read() {
    let whole = single(&[], &[relu()]).0;
    for n in 0..whole.len() {
        for bits in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[n] ^= bits;
            let _ = read(&changed, None);
        }
    }
}

#[test]
fn every_cut_and_changed_byte_of_parameters_is_refused_or_read() {
    let (program, whole) = (scaled(), record(&[3], &[1.0, 2.0, 3.0]));
    for n in 0..whole.len() {
        assert!(read(&program.0, Some(&whole[..n])).is_err());
        let mut changed = whole.clone();
        changed[n] ^= 0xff;
        let _ = read(&program.0, Some(&changed));
    }
    assert!(read(&program.0, Some(&whole)).is_ok());
}

#[test]
fn parameters_that_are_missing_or_too_many_are_refused() {
    check_error(&scaled(), None, "the program has 1 parameters; give them as weights");
    check_error(&scaled(), Some(&[]), "`w` is missing");
    let two = [record(&[3], &[1.0, 2.0, 3.0]), record(&[1], &[1.0])].concat();
    check_error(&scaled(), Some(&two), "bytes follow behind the 1 parameters");
}

#[test]
fn a_parameter_that_claims_to_be_huge_takes_no_memory() {
    check_error(&scaled(), Some(&record(&[1 << 40, 1 << 20], &[])), "parameter 0 `w`");
    check_error(&scaled(), Some(&record(&[1 << 40], &[])), "exceed the file");
    check_error(&scaled(), Some(&record(&[-1], &[])), "dimension -1");
    let mut levels = record(&[3], &[1.0, 2.0, 3.0]);
    levels[4..12].fill(0xff);
    check_error(&scaled(), Some(&levels), "levels of sequences");
}

#[test]
fn a_program_without_blocks_or_outputs_is_refused() {
    let none = program(&[block(0, -1, &[variable("x", &[3], false)], &[feed("x", 0)])]);
    check_error(&none, None, "fetches nothing");
}

#[test]
fn an_operator_without_a_rule_is_named() {
    check_error(&single(&[], &[operator("acme", &[("X", &["x"])], &[("Out", &["y"])])]), None, "`acme`");
}

#[test]
fn an_attribute_that_is_not_known_is_named() {
    let op = with(relu(), &[float_attr("strength", 2.0)]);
    check_error(&single(&[], &[op]), None, "attributes `strength` = 2");
}

#[test]
fn an_operator_with_fused_work_is_refused_and_not_misread() {
    let on = Message::new().text(1, "fuse_with_relu").int(2, 6).int(10, 1);
    let off = Message::new().text(1, "fuse_with_relu").int(2, 6).int(10, 0);
    check_error(&single(&[], &[with(relu(), &[on])]), None, "`fuse_with_relu`");
    assert!(read(&single(&[], &[with(relu(), &[off])]).0, None).is_ok());
}

#[test]
fn a_slot_that_is_empty_is_named() {
    check_error(&single(&[], &[operator("relu", &[("Y", &["x"])], &[("Out", &["y"])])]), None, "slot `X` is empty");
}

#[test]
fn a_variable_that_nothing_writes_is_named() {
    let op = operator("relu", &[("X", &["nowhere"])], &[("Out", &["y"])]);
    check_error(&single(&[], &[op]), None, "`nowhere`, which nothing produces");
}

#[test]
fn an_input_that_is_fed_twice_is_refused() {
    let feed = operator("feed", &[("X", &["feed"])], &[("Out", &["x"])]);
    let e = read(&single(&[], &[feed, relu()]).0, None).unwrap_err().to_string();
    assert!(e.contains("input `x` is fed twice"), "{e}");
}

#[test]
fn an_operator_that_reads_and_writes_one_variable_is_no_cycle() {
    let twice = operator("relu", &[("X", &["x"])], &[("Out", &["x"])]);
    let model = read(&single(&[], &[twice.clone(), twice, relu()]).0, None).unwrap();
    assert_eq!(model.results().len(), 1);
}

// An operator over data of 3 and scales of this many, which are stored.
fn check_scales(op: &str, axis: i64, scales: &[f32], wanted: &str) {
    let op = operator(op, &[("X", &["x"]), ("Scale", &["w"])], &[("Y", &["y"])]);
    let op = with(op, &[Message::new().text(1, "quant_axis").int(2, 0).int(3, axis)]);
    let n = scales.len() as i64;
    check_error(&single(&[variable("w", &[n], true)], &[op]), Some(&record(&[n], scales)), wanted);
}

#[test]
fn a_scale_that_is_no_size_is_refused() {
    for op in ["quantize_linear", "dequantize_linear"] {
        check_scales(op, -1, &[f32::NAN], "the scale is NaN at position 0");
        check_scales(op, -1, &[f32::INFINITY], "the scale is inf at position 0");
        check_scales(op, 0, &[1.0, -2.0, 1.0], "the scale is -2 at position 1");
    }
}

#[test]
fn scales_that_do_not_go_with_the_data_are_refused() {
    for op in ["quantize_linear", "dequantize_linear"] {
        check_scales(op, 0, &[1.0, 2.0], "there are 2 scales, but axis 0 of the data has 3 elements");
        check_scales(op, -1, &[1.0, 2.0], "there are 2 scales, but `quant_axis` is -1; expected one scale");
        check_scales(op, 4, &[1.0, 2.0, 3.0], "axis 4");
    }
}

#[test]
fn a_scale_of_zero_divides_by_a_millionth_as_in_paddle() {
    let op = |kind: &str, from: &str, to: &str| operator(kind, &[("X", &[from]), ("Scale", &["w"])], &[("Y", &[to])]);
    let ops = [op("quantize_linear", "x", "q"), op("dequantize_linear", "q", "y")];
    let program = single(&[variable("w", &[1], true)], &ops);
    let model = read(&program.0, Some(&record(&[1], &[0.0]))).unwrap();
    let found = model.evaluate(&[carafe::Tensor::from_slice(&[3], &[0f32, 1.0, -1.0]).unwrap()]).unwrap();
    assert_eq!(found[0].as_slice::<f32>().unwrap(), [0.0, 0.0, 0.0]);
}

#[test]
fn a_number_of_bits_that_no_step_has_is_refused() {
    let op = operator("quantize_linear", &[("X", &["x"]), ("Scale", &["w"])], &[("Y", &["y"])]);
    let op = with(op, &[Message::new().text(1, "bit_length").int(2, 0).int(3, 70)]);
    let program = single(&[variable("w", &[1], true)], &[op]);
    check_error(&program, Some(&record(&[1], &[1.0])), "`bit_length` is 70; expected 2 to 16");
}

fn condition(name: &str, block: i64) -> Message {
    let op = operator("conditional_block", &[("Cond", &[name])], &[("Out", &["y"]), ("Scope", &["scope"])]);
    with(op, &[block_attr("sub_block", block)])
}

#[test]
fn a_block_that_runs_itself_is_refused() {
    let inner = block(1, 0, &[], &[condition("x", 1), relu()]);
    let outer = block(0, -1, &[variable("x", &[1], false)], &[feed("x", 0), condition("x", 1), fetch("y", 0)]);
    check_error(&program(&[outer, inner]), None, "block 1 runs itself");
}

#[test]
fn a_block_that_is_not_there_is_refused() {
    let outer = block(0, -1, &[variable("x", &[1], false)], &[feed("x", 0), condition("x", 7), fetch("y", 0)]);
    check_error(&program(&[outer]), None, "there is no block 7");
}

#[test]
fn blocks_that_unfold_without_end_are_refused() {
    let x = variable("x", &[1], false);
    let mut blocks = vec![block(0, -1, &[x], &[feed("x", 0), condition("x", 1), condition("x", 1), fetch("y", 0)])];
    for i in 1..40 {
        blocks.push(block(i, i - 1, &[], &[condition("x", i + 1), condition("x", i + 1)]));
    }
    blocks.push(block(40, 39, &[], &[relu()]));
    let found = read(&program(&blocks).0, None).expect_err("the program must be refused");
    assert!(found.contains("unfold"), "{found}");
}

#[test]
fn json_that_is_cut_short_or_wrong_is_refused() {
    let head = r#"{"base_code":{"magic":"pir","version":4},"program":"#;
    let reads_nothing = r##"{"regions":[{"blocks":[{"ops":[{"#":"1.fetch","I":[{"%":5}],"O":[],"A":[]}]}]}]}}"##;
    for rest in ["", "{}}", r#"{"regions":[]}}"#, reads_nothing] {
        assert!(read(format!("{head}{rest}").as_bytes(), None).is_err(), "{rest}");
    }
    let newer = head.replace('4', "99") + r#"{"regions":[]}}"#;
    assert!(read(newer.as_bytes(), None).unwrap_err().contains("version 99"));
}

#[test]
fn json_that_is_nested_deeply_is_refused() {
    let head = r#"{"base_code":{"magic":"pir","version":4},"program":{"regions":["#;
    let deep = r##"{"blocks":[{"ops":[{"#":"1.if","I":[],"O":[],"regions":["##;
    let text = head.to_owned() + &deep.repeat(10_000);
    assert!(read(text.as_bytes(), None).unwrap_err().contains("recursion"));
}
