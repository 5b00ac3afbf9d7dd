//! Small ONNX models with the outputs that the operator specification gives: a selection of ONNX's backend tests. Made by
//! `scripts/onnx-node-suite --fixtures`, which runs the whole of them. Operators of other domains have theirs from
//! `scripts/fixtures/onnxruntime-rules`.

fn main() {
    carafe_testkit::fixture::run_all(&["onnx", "onnxruntime"], 200);
}
