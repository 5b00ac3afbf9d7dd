//! Programs over packed sequences: what the reader says of them, and what it refuses.

use crate::common::*;
use carafe_fe_paddle::Paddle;
use carafe_frontend::{Level, Log, ReadRequest};
use carafe_tensor::SharedBytes;
use std::sync::Mutex;

fn warnings(program: &Message) -> Vec<String> {
    let warned = Mutex::new(vec![]);
    let hear = |_: Level, text: &str| warned.lock().unwrap().push(text.to_string());
    let bytes = SharedBytes::from_vec(program.0.clone());
    let request = ReadRequest { log: Log::to(&hear, false), ..ReadRequest::from_bytes(&bytes) };
    carafe_frontend::read(&Paddle, &request).unwrap_or_else(|e| panic!("{e}"));
    warned.into_inner().unwrap()
}

fn text_attr(name: &str, value: &str) -> Message {
    Message::new().text(1, name).int(2, 2).text(5, value)
}

#[test]
fn a_program_over_sequences_is_warned_of_once() {
    let vars = [variable("t", &[3], false), variable("u", &[3], false)];
    let reverse = |from: &str, to: &str| operator("sequence_reverse", &[("X", &[from])], &[("Y", &[to])]);
    let reset = operator("lod_reset", &[("X", &["u"])], &[("Out", &["y"])]);
    let found = warnings(&single(&vars, &[reverse("x", "t"), reverse("t", "u"), reset]));
    let [text] = &found[..] else { panic!("{found:?}") };
    assert!(text.contains("lod_reset, sequence_reverse;") && text.contains("one sequence"), "{text}");
    let relu = operator("relu", &[("X", &["x"])], &[("Out", &["y"])]);
    assert!(warnings(&single(&[], &[relu])).is_empty());
}

#[test]
fn what_has_no_counterpart_is_refused() {
    let vars = [variable("w", &[1, 3], false)];
    let gru = |attrs: &[Message]| {
        let inputs: &[(&str, &[&str])] = &[("Input", &["x"]), ("Weight", &["w"])];
        let ops = [feed("w", 1), with(operator("gru", inputs, &[("Hidden", &["y"])]), attrs)];
        single(&vars, &ops)
    };
    check_error(
        &gru(&[text_attr("gate_activation", "tanh")]),
        None,
        "`gate_activation` is `tanh` and `origin_mode` is off",
    );
    check_error(&gru(&[text_attr("activation", "identity")]), None, "an activation is `identity`");
    check_error(&gru(&[text_attr("activation", "swish")]), None, "`activation` is `swish`");
    let pool =
        with(operator("sequence_pool", &[("X", &["x"])], &[("Out", &["y"])]), &[text_attr("pooltype", "MEDIAN")]);
    check_error(&single(&[], &[pool]), None, "`pooltype` is `MEDIAN`");
    let expand = operator("sequence_expand", &[("X", &["x"]), ("Y", &["x"])], &[("Out", &["y"])]);
    check_error(&single(&[], &[with(expand, &[int_attr("ref_level", 1)])]), None, "`ref_level` is 1");
    let crf = operator(
        "crf_decoding",
        &[("Emission", &["x"]), ("Transition", &["x"]), ("Length", &["x"])],
        &[("ViterbiPath", &["y"])],
    );
    check_error(&single(&[], &[crf]), None, "slot `Length` is given");
}
