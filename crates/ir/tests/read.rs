//! What a good file becomes.

mod common;

use common::*;

#[test]
fn a_chain_reads_and_round_trips() {
    let model = good(&chain(&layer(1, "r", "ReLU", "", 1, &["y"])));
    assert_eq!((model.len(), model.parameters().len(), model.results().len()), (3, 1, 1));
    assert_eq!(model.name, "m");
    assert_eq!(model.fact(model.result_value(model.results()[0])).to_string(), "f32[2,3]");
    round_trip(&model, &registry());
}
