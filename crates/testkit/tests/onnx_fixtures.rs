//! Small ONNX models with the outputs that the operator specification gives: a selection of ONNX's backend tests, made by
//! `scripts/onnx-node-suite --fixtures`, which runs the whole of them; models whose sequences and optionals only a run
//! knows, made by `scripts/fixtures/onnx-sequences`; operators of other domains by `scripts/fixtures/onnxruntime-rules`; models
//! that are written loosely, with what peers make of them, by `scripts/fixtures/onnx-loose`.

fn main() {
    carafe_testkit::fixture::run_all(&["onnx", "onnx-sequences", "onnxruntime", "onnx-loose"], 240);
}
