//! Small ONNX models with the outputs that the operator specification gives: a selection of ONNX's backend tests, made by
//! `scripts/onnx-node-suite --fixtures`, which runs the whole of them; and models whose sequences and optionals only a run
//! knows, made by `scripts/fixtures/onnx-sequences`.

fn main() {
    carafe_testkit::fixture::run_all(&["onnx", "onnx-sequences"], 220);
}
