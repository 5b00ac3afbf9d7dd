//! The facade as a program uses it: models from files and memory, ports by name, index and port, owned handles, background
//! runs, state and preprocessing. The names that it exports are a list that is kept here too.

use carafe::ops::arithmetic::{Add, Subtract};
use carafe::preprocess::PrePostProcessor;
use carafe::{AsyncInferQueue, CompiledModel, ElementType, ErrorKind, InferRequest, Model, Properties, Tensor};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

fn demo(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo/digits").join(file)
}

fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[values.len()], values).unwrap()
}

fn numbers(t: &Tensor) -> Vec<f32> {
    t.to_vec::<f32>().unwrap().into_owned()
}

/// sum = a + b and difference = a - b.
fn model() -> Model {
    let mut m = Model::new("m");
    let a = m.parameter("a", ElementType::F32, "2".parse().unwrap()).unwrap();
    let b = m.parameter("b", ElementType::F32, "2".parse().unwrap()).unwrap();
    let sum = m.add("sum", Add::default(), &[a, b]).unwrap();
    let difference = m.add("difference", Subtract::default(), &[a, b]).unwrap();
    m.result("r0", sum.into()).unwrap();
    m.result("r1", difference.into()).unwrap();
    m
}

fn compiled() -> CompiledModel {
    carafe::core().compile_model(&model(), "CPU", &Properties::new()).unwrap()
}

#[test]
fn a_model_is_compiled_from_a_path_and_from_memory() {
    let core = carafe::core();
    let image = Tensor::zeros(ElementType::F32, &[1, 1, 8, 8]).unwrap();
    let by_path = core.compile_model(demo("digits.xml"), "CPU", &Properties::new()).unwrap();
    let xml = std::fs::read_to_string(demo("digits.xml")).unwrap();
    let bin = std::fs::read(demo("digits.bin")).unwrap();
    let read = core.read_model_from(xml.as_str(), Some(bin.into())).unwrap();
    let from_memory = core.compile_model(&read, "CPU", &Properties::new()).unwrap();
    let wanted = by_path.infer(&image).unwrap();
    assert!(wanted[0].content_eq(&from_memory.infer(&image).unwrap()["probabilities"]));
}

#[test]
fn bytes_of_other_formats_are_recognised() {
    let core = carafe::core();
    let onnx = "<ir_version: 8, opset_import: [\"\": 17]> net (float[2] x) => (float[2] y) { y = Abs (x) }";
    let compiled = core.compile_model(&core.read_model_from(onnx, None).unwrap(), "CPU", &Properties::new()).unwrap();
    assert_eq!(numbers(&compiled.infer(&[("x", floats(&[-1.0, 2.0]))]).unwrap()["y"]), [1.0, 2.0]);
    let e = core.read_model_from(vec![1, 2, 3], None).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
}

#[test]
fn inputs_are_given_by_name_index_port_and_in_order() {
    let c = compiled();
    let request = c.create_infer_request();
    let (a, b) = (floats(&[1.0, 2.0]), floats(&[10.0, 20.0]));
    let check = |outputs: carafe::Outputs| {
        assert_eq!(numbers(&outputs["sum"]), [11.0, 22.0]);
        assert_eq!(numbers(&outputs[1]), [-9.0, -18.0]);
        assert_eq!(numbers(outputs.get(c.output("difference").unwrap()).unwrap()), [-9.0, -18.0]);
        assert_eq!(outputs.len(), 2);
    };
    check(request.infer(&[("b", b.clone()), ("a", a.clone())]).unwrap());
    check(request.infer(&[(0, a.clone()), (1, b.clone())]).unwrap());
    check(request.infer([(&c.inputs()[1], b.clone()), (&c.inputs()[0], a.clone())]).unwrap());
    check(request.infer([a.clone(), b.clone()]).unwrap());
    check(request.infer(&[a.clone(), b.clone()][..]).unwrap());
    check(request.infer(&BTreeMap::from([("a".to_string(), a.clone()), ("b".to_string(), b.clone())])).unwrap());
    check(request.infer(&HashMap::from([("a".to_string(), a.clone()), ("b".to_string(), b.clone())])).unwrap());
    check(request.infer(()).unwrap());
    request.set_input("a", b.clone()).unwrap();
    assert!(request.input("a").unwrap().unwrap().content_eq(&b));
    assert_eq!(numbers(&request.infer(()).unwrap()[1]), [0.0, 0.0]);
}

#[test]
fn a_wrong_name_or_index_says_what_there_is() {
    let request = compiled().create_infer_request();
    let e = request.infer(&[("c", floats(&[1.0, 2.0]))]).unwrap_err();
    assert_eq!((e.kind(), e.to_string().as_str()), (ErrorKind::Usage, "the model has no input `c`; it has: a, b"));
    let e = request.infer(()).unwrap_err();
    assert_eq!(e.to_string(), "input `a` has no tensor");
    assert!(request.output(5).unwrap_err().to_string().contains("there is no output 5; the model has 2"));
}

#[test]
fn handles_are_owned_and_their_clones_are_the_same() {
    let request: InferRequest = {
        let c = compiled().clone();
        c.create_infer_request()
    };
    let same = request.clone();
    same.set_input(0, floats(&[1.0, 1.0])).unwrap();
    request.set_input(1, floats(&[1.0, 1.0])).unwrap();
    drop(request);
    // From another thread, after compiled model and Core are gone.
    let sum = std::thread::spawn(move || numbers(&same.infer(()).unwrap()[0])).join().unwrap();
    assert_eq!(sum, [2.0, 2.0]);
}

#[test]
fn a_request_runs_in_the_background_and_its_callback_gets_it() {
    let request = compiled().create_infer_request();
    let (send, heard) = mpsc::channel();
    request
        .set_callback(move |error, request| {
            assert!(error.is_none());
            send.send(numbers(&request.output("sum").unwrap())).unwrap();
        })
        .unwrap();
    request.start_async(&[("a", floats(&[1.0, 2.0])), ("b", floats(&[3.0, 4.0]))]).unwrap();
    request.wait().unwrap();
    assert_eq!(heard.recv().unwrap(), [4.0, 6.0]);
}

#[test]
fn a_queue_takes_inputs_by_name() {
    let queue = AsyncInferQueue::new(&compiled(), 2).unwrap();
    let (send, heard) = mpsc::channel();
    queue
        .set_callback(move |done, n: usize| send.send((n, numbers(&done.output("sum").unwrap())[0])).unwrap())
        .unwrap();
    for n in 0..20 {
        queue.start_async(&[("a", floats(&[n as f32, 0.0])), ("b", floats(&[1.0, 0.0]))], n).unwrap();
    }
    queue.wait_all().unwrap();
    let mut all: Vec<_> = heard.try_iter().collect();
    all.sort_by_key(|(n, _)| *n);
    assert_eq!(all, (0..20).map(|n| (n, n as f32 + 1.0)).collect::<Vec<_>>());
    assert_eq!(queue.start_async(&[("z", floats(&[0.0]))], 0).unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn preprocessing_is_part_of_the_compiled_model() {
    let core = carafe::core();
    let mut ppp = PrePostProcessor::new(core.read_model(demo("digits.xml")).unwrap());
    let input = ppp.input("image").unwrap();
    input.tensor().element_type(ElementType::U8).layout("NHWC".parse().unwrap());
    input.model().layout("NCHW".parse().unwrap());
    let plain = core.compile_model(demo("digits.xml"), "CPU", &Properties::new()).unwrap();
    let compiled = core.compile_model(&ppp.build().unwrap(), "CPU", &Properties::new()).unwrap();
    assert_eq!(compiled.input(0).unwrap().ty, ElementType::U8);
    let bytes: Vec<u8> = (0..64).map(|i| (i * 3 % 17) as u8).collect();
    let wanted = Tensor::from_slice(&[1, 1, 8, 8], &bytes.iter().map(|b| f32::from(*b)).collect::<Vec<_>>()).unwrap();
    let found = compiled.infer(Tensor::from_slice(&[1, 8, 8, 1], &bytes).unwrap()).unwrap();
    assert!(found[0].content_eq(&plain.infer(wanted).unwrap()[0]));
}

#[test]
fn nothing_is_exported_by_wildcard() {
    for file in ["lib.rs", "prelude.rs"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).unwrap();
        let wild: Vec<&str> = text.lines().filter(|l| l.starts_with("pub use") && l.contains('*')).collect();
        assert!(wild.is_empty(), "{file}: {wild:?}");
    }
}
