//! What a conversion writes so that OpenVINO reads it: no operation of ours where those of the opsets do, nothing that its
//! reader refuses.

use carafe::convert::Conversion;
use carafe::{Core, Model, Properties, ReadRequest, Tensor};
use std::path::PathBuf;

fn written(name: &str, graph: &str) -> (Core, Model, String) {
    written_for(name, 14, graph)
}

fn written_for(name: &str, opset: u32, graph: &str) -> (Core, Model, String) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("portable_{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let source = folder.join("model.onnxtxt");
    std::fs::write(&source, format!("<ir_version: 8, opset_import: [\"\" : {opset}]> {graph}")).unwrap();
    let core = carafe::core();
    let model = Conversion::new(ReadRequest::new(&source)).run(&core).unwrap().model;
    let file = folder.join("model.xml");
    carafe::convert::emit(&model, &file, &carafe::Log::default()).unwrap();
    let model = core.read_model(&file).unwrap();
    (core, model, std::fs::read_to_string(&file).unwrap())
}

fn run(core: &Core, model: &Model, inputs: &[(&str, Tensor)]) -> Vec<f32> {
    let request = core.compile_model(model, "TEMPLATE", &Properties::new()).unwrap().create_infer_request();
    for (name, tensor) in inputs {
        request.set_input(model.find_parameter(name).unwrap(), tensor.clone()).unwrap();
    }
    request.infer(()).unwrap();
    request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned()
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

const SLOTS: &str = "g (int64 n, float[1] a, float[1] b) => (float[1] y) {
    go = Constant<value = bool {1}>()
    zero = Constant<value = int64 {0}>()
    one = Constant<value = int64 {1}>()
    slots = SequenceConstruct(a, b)
    last = Loop(n, go, slots) <body = step (int64 i, bool c, seq(float[1]) s) => (bool d, seq(float[1]) t) {
        d = Identity(c)
        at = Constant<value = int64 {0}>()
        old = SequenceAt(s, at)
        short = SequenceErase(s, at)
        new = Add(old, old)
        t = SequenceInsert(short, new)
    }>
    p = SequenceAt(last, zero)
    q = SequenceAt(last, one)
    r = Sub(p, q)
    y = Identity(r)
}";

#[test]
fn a_sequence_that_keeps_its_length_in_a_loop_is_carried_element_by_element() {
    let (core, model, text) = written("slots", SLOTS);
    assert!(!text.contains("\"carafe\""), "{text}");
    for (n, y) in [(0i64, 2.0 - 5.0), (1, 5.0 - 4.0), (2, 4.0 - 10.0), (3, 10.0 - 8.0)] {
        let inputs = [("n", Tensor::scalar(n)), ("a", floats(&[1], &[2.0])), ("b", floats(&[1], &[5.0]))];
        assert_eq!(run(&core, &model, &inputs), [y], "{n} iterations");
    }
}

#[test]
fn a_sequence_that_grows_in_a_loop_is_still_packed() {
    let (core, model, text) = written(
        "grows",
        "g (int64 n, float[1] a) => (float[k] y) {
            go = Constant<value = bool {1}>()
            start = SequenceConstruct(a)
            last = Loop(n, go, start) <body = step (int64 i, bool c, seq(float[1]) s) => (bool d, seq(float[1]) t) {
                d = Identity(c)
                f = Cast<to = 1>(i)
                at = Constant<value = int64[1] {1}>()
                row = Reshape(f, at)
                t = SequenceInsert(s, row)
            }>
            y = ConcatFromSequence<axis = 0>(last)
        }",
    );
    assert!(text.contains("SequenceInsert"));
    let inputs = [("n", Tensor::scalar(3i64)), ("a", floats(&[1], &[7.0]))];
    assert_eq!(run(&core, &model, &inputs), [7.0, 0.0, 1.0, 2.0]);
}

#[test]
fn a_scan_over_an_axis_from_the_end_of_an_unknown_rank_has_axes_from_the_front() {
    let (core, model, text) = written(
        "scan",
        "g (float[] s, float[] x) => (float[] z, float[] y) {
            y, z = Scan<num_scan_inputs = 1, scan_input_axes = [-1], scan_output_axes = [-1],
                body = step (float[] a, float[] b) => (float[] c, float[] d) {
                    c = Add(a, b)
                    d = Identity(c)
                }>(s, x)
        }",
    );
    assert!(!text.contains("axis=\"-"), "{text}");
    let inputs = [("s", floats(&[2], &[10.0, 20.0])), ("x", floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))];
    assert_eq!(run(&core, &model, &inputs), [11.0, 13.0, 16.0, 24.0, 29.0, 35.0]);
}

#[test]
fn a_scan_over_a_batch_has_no_iteration_of_its_own_kind_inside() {
    let (core, model, text) = written_for(
        "batch",
        8,
        "g (float[2,1] s, float[2,3,1] x) => (float[2,3,1] z, float[2,1] y) {
            y, z = Scan<num_scan_inputs = 1, body = step (float[1] a, float[1] b) => (float[1] c, float[1] d) {
                c = Add(a, b)
                d = Identity(c)
            }>(, s, x)
        }",
    );
    assert_eq!((text.matches("\"TensorIterator\"").count(), text.matches("\"Loop\"").count()), (1, 1));
    let inputs = [("s", floats(&[2, 1], &[10.0, 20.0])), ("x", floats(&[2, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))];
    assert_eq!(run(&core, &model, &inputs), [11.0, 13.0, 16.0, 24.0, 29.0, 35.0]);
}

#[test]
fn a_constant_without_elements_has_a_file_that_is_not_empty() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("portable_empty");
    std::fs::create_dir_all(&folder).unwrap();
    let mut model = Model::new("m");
    let x = model.parameter("x", carafe::ElementType::F32, "2".parse().unwrap()).unwrap();
    let none = model.constant("none", floats(&[0], &[])).unwrap();
    let y = model.add("y", carafe::ops::movement::Concat { axis: 0 }, &[x, none]).unwrap();
    model.result("r", y.into()).unwrap();
    let file = folder.join("model.xml");
    carafe::convert::emit(&model, &file, &carafe::Log::default()).unwrap();
    assert_eq!(std::fs::read(folder.join("model.bin")).unwrap(), [0]);
    let core = carafe::core();
    let again = core.read_model(&file).unwrap();
    assert_eq!(run(&core, &again, &[("x", floats(&[2], &[1.0, 2.0]))]), [1.0, 2.0]);
}
