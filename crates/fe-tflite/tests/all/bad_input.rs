//! Files that are cut, changed, wrong or meant to hurt: each ends soon, with an error that says what is wrong, or gives a sound
//! model.

use crate::common::{Table, check_error, code, file, model, operator, read, subgraph, tensor};
use carafe_fe_tflite::TfLite;
use carafe_frontend::Format;

const ADD: i32 = 0;
const CUSTOM: i32 = 32;
const NEG: i32 = 59;
const IF: i32 = 118;
const WHILE: i32 = 119;
const IF_OPTIONS: u8 = 92;
const WHILE_OPTIONS: u8 = 93;

// y = -x, with anything changed.
fn negated() -> Table {
    model(&[code(NEG)], &[subgraph(&[tensor("x", &[2], 0), tensor("y", &[2], 0)], &[operator(0, &[0], &[1])])], &[])
}

// y = x + w, where w is this tensor, stored in these bytes.
fn stored(w: Table, bytes: &[u8]) -> Table {
    let tensors = [tensor("x", &[2], 0), w, tensor("y", &[2], 0)];
    model(&[code(ADD)], &[subgraph(&tensors, &[operator(0, &[0, 1], &[2])])], &[Table::new().bytes(0, bytes)])
}

fn w(shape: &[i32]) -> Table {
    tensor("w", shape, 1)
}

#[test]
fn the_files_that_are_changed_below_are_good() {
    read(file(&negated())).unwrap();
    read(file(&stored(w(&[2]), &[0; 8]))).unwrap();
    read(file(&nested(3))).unwrap();
}

#[test]
fn a_file_cut_anywhere_is_refused_or_sound() {
    for root in [negated(), stored(w(&[2]), &[0; 8]), nested(2), quantized(&[0.5], &[3], 0)] {
        let whole = file(&root);
        for end in 0..whole.len() {
            TfLite.recognizes(&whole[..end]);
            let _ = read(&whole[..end]);
        }
    }
}

#[test]
fn a_changed_byte_is_refused_or_sound() {
    for root in [negated(), stored(w(&[2]), &[0; 8]), nested(2), quantized(&[0.5], &[3], 0), custom(OPTIONS)] {
        let whole = file(&root);
        for at in 0..whole.len() {
            for change in [0x01, 0x04, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= change;
                let _ = read(bytes);
            }
        }
    }
}

#[test]
fn what_is_no_file_of_tensorflow_lite_says_so() {
    let refused = |bytes: &[u8], wanted: &str| {
        let found = read(bytes).unwrap_err();
        assert!(found.contains(wanted), "wanted `{wanted}`, found `{found}`");
    };
    refused(b"", "not a TensorFlow Lite file");
    refused(b"\0\0\0\0TFL2", "not a TensorFlow Lite file");
    refused(b"\xff\xff\xff\xffTFL3", "the flatbuffer is damaged: it points to byte 4294967295 of 8");
    refused(b"\x08\0\0\0TFL3", "the flatbuffer is damaged: it points to byte 8 of 8");
    check_error(&Table::new(), "");
    check_error(&model(&[], &[], &[]), "no sub-graph");
}

#[test]
fn indexes_that_lead_nowhere_are_refused() {
    let x = [tensor("x", &[2], 0), tensor("y", &[2], 0)];
    let with = |graph: Table| model(&[code(NEG)], &[graph], &[]);
    check_error(&with(subgraph(&x, &[operator(7, &[0], &[1])])), "there is no operator code 7");
    check_error(&with(subgraph(&x, &[operator(0, &[9], &[1])])), "there is no tensor 9, the graph has 2");
    check_error(&with(subgraph(&x, &[operator(0, &[-7], &[1])])), "there is no tensor -7");
    check_error(&with(subgraph(&x, &[operator(0, &[0], &[-1])])), "there is no tensor -1");
    check_error(&with(subgraph(&x, &[operator(0, &[0], &[0])])), "written twice");
    check_error(&with(subgraph(&x, &[operator(0, &[1], &[1])])), "cycle");
    check_error(&with(subgraph(&x, &[]).ints(1, &[4])), "there is no tensor 4");
    check_error(&with(subgraph(&x, &[]).ints(2, &[-3])), "there is no tensor -3");
    check_error(&with(subgraph(&x, &[]).ints(1, &[0, 0])), "a tensor is listed twice among the inputs [0, 0]");
    check_error(&with(subgraph(&x, &[operator(0, &[], &[1])])), "input");
    check_error(&model(&[code(9999)], &[], &[]), "9999 is not a known builtin operator");
}

#[test]
fn stored_tensors_must_fit_their_shape() {
    check_error(&stored(w(&[3]), &[0; 8]), "f32[3] takes 12 bytes, found 8");
    check_error(&stored(w(&[-2]), &[0; 8]), "dimension -2 is negative");
    check_error(&stored(w(&[i32::MAX; 6]), &[0; 8]), "too large");
    check_error(&stored(w(&[2]).byte(1, 100), &[0; 8]), "tensor `w`: 100 is not a known element type");
    check_error(&stored(w(&[2]).int(2, 77), &[0; 8]), "w");
    // The bytes lie behind the flatbuffer, or claim to.
    let outside = |offset: u64, size: u64| {
        let tensors = [tensor("x", &[2], 0), w(&[2]), tensor("y", &[2], 0)];
        let graph = subgraph(&tensors, &[operator(0, &[0, 1], &[2])]);
        model(&[code(ADD)], &[graph], &[Table::new().long(1, offset).long(2, size)])
    };
    check_error(&outside(1 << 40, 8), "lie beyond the");
    check_error(&outside(u64::MAX, 8), "lie beyond the");
    check_error(&outside(16, u64::MAX), "lie beyond the");
}

#[test]
fn strings_must_lie_in_their_buffer() {
    let text = |numbers: &[i32]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        stored(w(&[2]).byte(1, 5), &bytes)
    };
    for numbers in [&[2, 12, 12][..], &[2, 12, 90, 99], &[2, 90, 12, 12], &[-1, 0, 0], &[i32::MAX, 0, 0, 0], &[]] {
        assert!(read(file(&text(numbers))).is_err());
    }
}

// y = x + w, where w is sparse.
fn sparse(shape: &[i32], order: &[i32], levels: &[Table], bytes: &[u8]) -> Table {
    stored(w(shape).table(6, Table::new().ints(0, order).ints(1, &[]).tables(2, levels)), bytes)
}

fn rows(segments: &[i32], indices: &[i32]) -> Table {
    let vector = |values: &[i32]| Table::new().ints(0, values);
    Table::new().byte(0, 1).byte(2, 1).table(3, vector(segments)).byte(4, 1).table(5, vector(indices))
}

fn dense(size: i32) -> Table {
    Table::new().byte(0, 0).int(1, size)
}

#[test]
fn sparse_tensors_that_lie_are_refused() {
    let one = 1f32.to_le_bytes();
    read(file(&sparse(&[2, 2], &[0, 1], &[dense(2), rows(&[0, 1, 1], &[1])], &one))).unwrap();
    let cases: [(&[i32], &[Table], &str); 7] = [
        (&[0, 1], &[dense(2), rows(&[0, 1, 1], &[9])], "outside of [2, 2]"),
        (&[0, 1], &[dense(2), rows(&[0, 1], &[1])], "no segment"),
        (&[0, 1], &[dense(2), rows(&[0, 5, 5], &[1])], "no index 1"),
        (&[0, 1], &[dense(2), rows(&[-5, 1, 1], &[1])], "no index -5"),
        (&[0, 7], &[dense(2), rows(&[0, 1, 1], &[1])], "traversal order"),
        (&[0], &[dense(2)], "traversal order"),
        (&[0, 1], &[dense(2), dense(i32::MAX)], "outside of [2, 2]"),
    ];
    for (order, levels, wanted) in cases {
        check_error(&sparse(&[2, 2], order, levels, &one), wanted);
    }
    check_error(&sparse(&[1 << 20, 1 << 20], &[0, 1], &[dense(1), rows(&[0, 1], &[1])], &one), "are the most");
    // Nothing is listed, in very many steps.
    let empty = sparse(&[2, 2], &[0, 1], &[dense(i32::MAX), dense(0)], &one);
    check_error(&empty, "too many elements");
}

#[test]
fn variables_have_a_limit() {
    let variable = tensor("w", &[1 << 30, 3], 0).byte(5, 1);
    let tensors = [tensor("x", &[2], 0), variable, tensor("y", &[2], 0)];
    check_error(&model(&[code(ADD)], &[subgraph(&tensors, &[operator(0, &[0, 1], &[2])])], &[]), "are the most");
}

#[test]
fn sparse_tensors_share_one_limit() {
    let levels = [dense(1), rows(&[0, 1], &[1])];
    let sparse = Table::new().ints(0, &[0, 1]).ints(1, &[]).tables(2, &levels);
    let mut tensors = vec![tensor("x", &[2], 0)];
    let mut operators = vec![];
    for i in 0..64 {
        tensors.push(w(&[1 << 14, 1 << 14]).str(3, &format!("w{i}")).table(6, sparse.clone()));
        tensors.push(tensor(&format!("y{i}"), &[2], 0));
        operators.push(operator(0, &[0, 2 * i + 1], &[2 * i + 2]));
    }
    let buffer = Table::new().bytes(0, &1f32.to_le_bytes());
    let all: Vec<i32> = (0..64).map(|i| 2 * i + 2).collect();
    let graph = subgraph(&tensors, &operators).ints(2, &all);
    check_error(&model(&[code(ADD)], &[graph], &[buffer]), "are the most");
}

// y = dequantized(w), per tensor or per channel.
fn quantized(scale: &[f32], zero: &[i64], axis: i32) -> Table {
    let quantization = Table::new().floats(2, scale).longs(3, zero).int(6, axis);
    stored(w(&[2]).byte(1, 9).table(4, quantization), &[1, 2])
}

#[test]
fn quantization_of_the_wrong_length_is_refused() {
    read(file(&quantized(&[0.5], &[3], 0))).unwrap();
    read(file(&quantized(&[0.5, 0.25], &[3, 4], 0))).unwrap();
    for (scale, zero, axis) in [
        (&[0.5, 0.5, 0.5][..], &[1i64, 2, 3][..], 0),
        (&[0.5, 0.5], &[1, 2, 3], 0),
        (&[0.5, 0.5], &[1, 2], 7),
        (&[0.5, 0.5], &[1, 2], -9),
        (&[0.5, 0.5], &[1, 2], i32::MIN),
    ] {
        let found = read(file(&quantized(scale, zero, axis))).unwrap_err();
        assert!(found.contains('w'), "{found}");
    }
}

#[test]
fn scales_and_zero_points_that_mean_nothing_are_refused() {
    for (scale, zero, wanted) in [
        (f32::NAN, 0, "a scale is NaN"),
        (f32::INFINITY, 0, "a scale is inf"),
        (-0.5, 0, "a scale is -0.5"),
        (0.5, 128, "a zero point is 128; expected a number that i8 holds"),
        (0.5, -129, "a zero point is -129"),
    ] {
        let found = read(file(&quantized(&[scale], &[zero], 0))).unwrap_err();
        assert!(found.contains(wanted), "{found}");
    }
    read(file(&quantized(&[0.0], &[-128], 0))).unwrap();
}

// `levels` graphs, each with a branch into the next and one into the last, or both into the next.
fn nested(levels: usize) -> Table {
    branching(levels, |_| levels)
}

fn branching(levels: usize, other: impl Fn(usize) -> usize) -> Table {
    let branch = |i: usize| {
        let then = Table::new().int(0, i as i32 + 1).int(1, other(i) as i32);
        let condition = tensor("c", &[], 1).byte(1, 6);
        let tensors = [tensor("x", &[2], 0), condition, tensor("y", &[2], 0)];
        subgraph(&tensors, &[operator(1, &[1, 0], &[2]).byte(3, IF_OPTIONS).table(4, then)])
    };
    let last = subgraph(&[tensor("x", &[2], 0), tensor("y", &[2], 0)], &[operator(0, &[0], &[1])]);
    let graphs: Vec<Table> = (0..levels).map(branch).chain([last]).collect();
    model(&[code(NEG), code(IF)], &graphs, &[Table::new().bytes(0, &[1])])
}

#[test]
fn graphs_inside_of_each_other_are_limited() {
    check_error(&branching(30, |i| i + 1), "unfold to more than");
    check_error(&nested(200), "deeper than 32");
}

#[test]
fn a_graph_that_holds_itself_is_refused() {
    let held = |cond: i32, body: i32| {
        let options = Table::new().int(0, cond).int(1, body);
        let tensors = [tensor("x", &[2], 0), tensor("y", &[2], 0)];
        let graph = subgraph(&tensors, &[operator(0, &[0], &[1]).byte(3, WHILE_OPTIONS).table(4, options)]);
        model(&[code(WHILE)], &[graph.clone(), graph], &[])
    };
    check_error(&held(1, 1), "sub-graph 1 holds itself");
    check_error(&held(0, 0), "holds itself");
    check_error(&held(9, 1), "there is no such one");
    check_error(&held(-1, 1), "there is no such one");
}

// A map: {"a": 1}.
const OPTIONS: &[u8] = &[b'a', 0, 1, 3, 1, 1, 1, 4, 2, 36, 1];

fn custom(options: &[u8]) -> Table {
    let tensors = [tensor("x", &[2], 0), tensor("y", &[2], 0)];
    let graph = subgraph(&tensors, &[operator(0, &[0], &[1]).bytes(5, options)]);
    model(&[code(CUSTOM).str(1, "Mine")], &[graph], &[])
}

#[test]
fn options_of_a_custom_operator_may_be_anything() {
    for end in 0..OPTIONS.len() {
        check_error(&custom(&OPTIONS[..end]), "1 x `Mine`");
    }
    for options in [&[0; 100][..], &[0xff; 100], &[0, 1, 2, 3, 36, 8], b"text"] {
        check_error(&custom(options), "1 x `Mine`");
    }
}

#[test]
fn tables_that_share_their_parts_are_limited() {
    // A table without fields behind its vtable, and a vector of very many offsets to it.
    let mut bytes = file(&negated());
    let many = 1 << 20;
    let at = bytes.len();
    let target = at + 4 + 4 * many + 4;
    bytes.extend((many as u32).to_le_bytes());
    bytes.extend((0..many).flat_map(|i| ((target - (at + 4 + 4 * i)) as u32).to_le_bytes()));
    bytes.extend([4u16, 4].into_iter().flat_map(u16::to_le_bytes));
    bytes.extend(4i32.to_le_bytes());
    // Let the graphs of the model be that vector.
    let root = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let vtable = root - i32::from_le_bytes(bytes[root..root + 4].try_into().unwrap()) as usize;
    let offset = usize::from(u16::from_le_bytes(bytes[vtable + 8..vtable + 10].try_into().unwrap()));
    let slot = root + offset;
    bytes[slot..slot + 4].copy_from_slice(&((at - slot) as u32).to_le_bytes());
    let found = read(bytes).unwrap_err();
    assert!(found.contains("unfolds to more than 16 times its size"), "{found}");
}

#[test]
fn inputs_of_one_name_are_told_apart() {
    let tensors = [tensor("x", &[2], 0), tensor("x", &[2], 0), tensor("x_1", &[2], 0), tensor("y", &[2], 0)];
    let operators = [operator(0, &[0, 1], &[3])];
    let model = read(file(&model(&[code(ADD)], &[subgraph(&tensors, &operators).ints(1, &[0, 1, 2])], &[]))).unwrap();
    let names: Vec<String> = model.parameters().iter().map(|p| model.parameter_name(*p)).collect();
    assert_eq!(names, ["x", "x_1", "x_1_2"]);
}
