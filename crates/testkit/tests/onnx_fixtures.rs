//! Small ONNX models with the outputs that the operator specification gives: a selection of ONNX's backend tests. Made by
//! `scripts/onnx-node-suite --fixtures`, which runs the whole of them.

fn main() {
    carafe_testkit::fixture::run_all(&["onnx"], 200);
}
