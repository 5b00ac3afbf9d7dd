//! Small ONNX models with the outputs that the operator specification gives: a selection of ONNX's backend tests, made by
//! `scripts/onnx-node-suite --fixtures`, which runs the whole of them; models whose sequences and optionals only a run
//! knows, made by `scripts/fixtures/onnx-sequences`; operators of other domains by `scripts/fixtures/onnxruntime-rules` and
//! `scripts/fixtures/onnxruntime-contrib`; models that are written loosely, with what peers make of them, by
//! `scripts/fixtures/onnx-loose`.

fn main() {
    let sets = ["onnx", "onnx-sequences", "onnxruntime", "onnxruntime-contrib", "onnx-loose"];
    carafe_testkit::fixture::run_all(&sets, 330);
}
