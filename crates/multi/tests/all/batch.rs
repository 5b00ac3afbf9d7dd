//! BATCH: which models it takes, and requests that meet.

use crate::common::*;
use carafe::{CompiledModel, Core, ErrorKind, Model, Properties, Tensor, Value};
use carafe_testkit::FakeDevice;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

fn compile(core: &Core, model: &Model, device: &str, timeout_ms: u64) -> carafe::Result<CompiledModel> {
    core.compile_model(model, device, &Properties::new().with("AUTO_BATCH_TIMEOUT", timeout_ms))
}

fn core() -> (FakeDevice, Core) {
    let a = FakeDevice::new("A");
    let core = core_with(&[&a]);
    (a, core)
}

// So many threads at the same time, one inference each; results are checked.
fn at_once(c: &CompiledModel, model: &Model, inputs: &[Tensor]) {
    std::thread::scope(|s| {
        for x in inputs {
            s.spawn(move || {
                let found = infer(c, std::slice::from_ref(x));
                assert_same(&found, &model.evaluate(std::slice::from_ref(x)).unwrap());
            });
        }
    });
}

#[test]
fn requests_at_the_same_time_run_as_one() {
    let (a, core) = core();
    let c = compile(&core, &chain(), "BATCH:A(4)", 20_000).unwrap();
    at_once(&c, &chain(), &(0..4).map(row).collect::<Vec<_>>());
    assert_eq!(a.told().n_inferences.load(SeqCst), 1);
    assert_eq!(c.property("AUTO_BATCH_COUNTS").unwrap(), "batches=1 alone=0");
}

#[test]
fn whoever_finds_no_company_in_time_runs_alone() {
    let (a, core) = core();
    let c = compile(&core, &chain(), "BATCH:A(4)", 30).unwrap();
    at_once(&c, &chain(), &(0..3).map(row).collect::<Vec<_>>());
    assert_eq!(a.told().n_inferences.load(SeqCst), 3);
    assert_eq!(c.property("AUTO_BATCH_COUNTS").unwrap(), "batches=0 alone=3");
}

#[test]
fn the_batch_is_the_users_or_the_devices_or_a_common_one() {
    let (a, b) = (FakeDevice::new("A"), FakeDevice::new("B").with_metric("OPTIMAL_BATCH_SIZE", "16"));
    let core = core_with(&[&a, &b]);
    let requests = |device: &str, properties: &Properties| -> String {
        let c = core.compile_model(&chain(), device, properties).unwrap();
        c.property("OPTIMAL_NUMBER_OF_INFER_REQUESTS").unwrap()
    };
    // Each fake device is kept busy by two requests, so there are twice as many rows.
    assert_eq!(requests("BATCH:A(3)", &Properties::new()), "6");
    assert_eq!(requests("BATCH:B", &Properties::new()), "32");
    assert_eq!(requests("BATCH:A", &Properties::new()), "8");
    assert_eq!(requests("BATCH:B", &Properties::new().with("PERFORMANCE_HINT_NUM_REQUESTS", 5)), "10");
}

#[test]
fn one_device_it_must_be() {
    let (_, core) = core();
    for device in ["BATCH", "BATCH:A,TEMPLATE", "BATCH:A,-TEMPLATE"] {
        assert!(compile(&core, &chain(), device, 1).err().unwrap().to_string().contains("takes one device"));
    }
    assert!(compile(&core, &chain(), "BATCH:A(0)", 1).err().unwrap().to_string().contains("from 1 on"));
    assert!(compile(&core, &chain(), "BATCH:AUTO(2)", 1).err().unwrap().to_string().contains("made of other"));
}

#[test]
fn a_batch_of_one_is_the_device_itself() {
    let (_, core) = core();
    let c = compile(&core, &chain(), "BATCH:A(1)", 20_000).unwrap();
    assert_same(&infer(&c, &[row(1)]), &chain().evaluate(&[row(1)]).unwrap());
}

#[test]
fn several_inputs_and_outputs_keep_their_rows() {
    let (_, core) = core();
    let mut m = Model::new("two");
    let (x, y) = (parameter(&mut m, "x", "1,4"), parameter(&mut m, "y", "1,2"));
    let sum = op(&mut m, "Exp", "e", &[x]);
    let joined = add(&mut m, "Concat", "j", &[("axis", "-1")], &[sum, y]);
    m.result("a", joined.into()).unwrap();
    m.result("b", sum).unwrap();
    let c = compile(&core, &m, "BATCH:A(3)", 20_000).unwrap();
    std::thread::scope(|s| {
        for t in 0..3 {
            let (c, m) = (&c, &m);
            s.spawn(move || {
                let inputs = [row(t), floats(&[1, 2], &[t as f32, -1.0])];
                assert_same(&infer(c, &inputs), &m.evaluate(&inputs).unwrap());
            });
        }
    });
}

fn refusal(build: impl FnOnce(&mut Model) -> Value) -> String {
    let (_, core) = core();
    let mut m = Model::new("m");
    let v = build(&mut m);
    m.result("y", v).unwrap();
    compile(&core, &m, "BATCH:A(4)", 1).expect_err("it must be refused").to_string()
}

fn accepted(build: impl FnOnce(&mut Model) -> Value) {
    let (_, core) = core();
    let mut m = Model::new("m");
    let v = build(&mut m);
    m.result("y", v).unwrap();
    let c = compile(&core, &m, "BATCH:A(4)", 20_000).unwrap();
    let shape = m.fact(m.parameters()[0].into()).shape.to_static().unwrap();
    let n: usize = shape.iter().product();
    let input =
        |t: usize| floats(&shape, &(0..n).map(|i| ((i * 7 + t * 5) % 13) as f32 * 0.5 - 2.0).collect::<Vec<_>>());
    at_once(&c, &m, &(0..4).map(input).collect::<Vec<_>>());
    assert_eq!(c.property("AUTO_BATCH_COUNTS").unwrap(), "batches=1 alone=0");
}

fn ints(m: &mut Model, name: &str, values: &[i64]) -> Value {
    m.constant(name, Tensor::from_slice(&[values.len()], values).unwrap()).unwrap()
}

#[test]
fn a_dynamic_model_is_refused() {
    let e = refusal(|m| parameter(m, "x", "?,4"));
    assert!(e.contains("input `x` has the dynamic shape"), "{e}");
}

#[test]
fn a_model_with_a_batch_already_is_refused() {
    let e = refusal(|m| {
        let x = parameter(m, "x", "2,4");
        op(m, "Relu", "r", &[x])
    });
    assert!(e.contains("whose first dimension is not a batch of 1"), "{e}");
}

#[test]
fn a_sum_over_rows_is_refused() {
    let e = refusal(|m| {
        let (x, axes) = (parameter(m, "x", "1,4"), ints(m, "axes", &[0, 1]));
        add(m, "ReduceSum", "sum", &[("keep_dims", "true")], &[x, axes]).into()
    });
    assert!(e.contains("`sum` (ReduceSum, opset1): it works along the rows"), "{e}");
}

#[test]
fn a_softmax_over_rows_is_refused() {
    let e = refusal(|m| {
        let x = parameter(m, "x", "1,4");
        add(m, "Softmax", "s", &[("axis", "0")], &[x]).into()
    });
    assert!(e.contains("it works along the rows"), "{e}");
}

#[test]
fn a_transposed_batch_is_refused() {
    let e = refusal(|m| {
        let (x, order) = (parameter(m, "x", "1,1"), ints(m, "order", &[1, 0]));
        op(m, "Transpose", "t", &[x, order])
    });
    assert!(e.contains("the first dimension moves"), "{e}");
}

#[test]
fn a_reshape_that_counts_on_one_row_is_refused() {
    let e = refusal(|m| {
        let (x, to) = (parameter(m, "x", "1,4"), ints(m, "to", &[1, 2, 2]));
        add(m, "Reshape", "r", &[("special_zero", "false")], &[x, to]).into()
    });
    assert!(e.contains("the model does not take such a batch"), "{e}");
}

// With four rows the shapes fit by chance, but the numbers would not.
#[test]
fn a_reshape_that_fits_by_chance_is_refused() {
    let e = refusal(|m| {
        let (x, to, back) = (parameter(m, "x", "1,4"), ints(m, "to", &[4, -1]), ints(m, "back", &[-1, 4]));
        let r = add(m, "Reshape", "r", &[("special_zero", "false")], &[x, to]);
        let s = add(m, "Softmax", "s", &[("axis", "1")], &[r.into()]);
        add(m, "Reshape", "b", &[("special_zero", "false")], &[s.into(), back]).into()
    });
    assert!(e.contains("its output [4,1] becomes [4,4]"), "{e}");
}

#[test]
fn rows_multiplied_with_rows_are_refused() {
    let e = refusal(|m| {
        let x = parameter(m, "x", "1,4");
        add(m, "MatMul", "mm", &[("transpose_a", "false"), ("transpose_b", "true")], &[x, x]).into()
    });
    assert!(e.contains("sums over rows, or pairs them"), "{e}");
}

#[test]
fn the_number_of_rows_as_a_number_is_refused() {
    let e = refusal(|m| {
        let x = parameter(m, "x", "1,4");
        let s = op(m, "ShapeOf", "s", &[x]);
        let (at, axis) = (ints(m, "at", &[0]), m.constant("axis", Tensor::scalar(0i64)).unwrap());
        let n = add(m, "Gather", "n", &[], &[s, at, axis]);
        let n = add(m, "Convert", "c", &[("destination_type", "f32")], &[n.into()]);
        op(m, "Multiply", "x_n", &[x, n.into()])
    });
    assert!(e.contains("its input 1 depends on the number of rows"), "{e}");
}

#[test]
fn an_operation_that_nobody_vouches_for_is_refused() {
    let e = refusal(|m| {
        let (x, axes) = (parameter(m, "x", "1,4"), ints(m, "axes", &[1]));
        let shift = ints(m, "shift", &[1]);
        op(m, "Roll", "roll", &[x, shift, axes])
    });
    assert!(e.contains("`roll` (Roll, opset7): it is not known to keep rows apart"), "{e}");
}

#[test]
fn an_output_without_inputs_is_refused() {
    let e = refusal(|m| {
        parameter(m, "x", "1,4");
        m.constant("k", floats(&[1, 2], &[1.0, 2.0])).unwrap()
    });
    assert!(e.contains("an output does not depend on the inputs"), "{e}");
}

#[test]
fn a_small_network_is_accepted() {
    accepted(|m| {
        let x = parameter(m, "x", "1,2,4,4");
        let w = m.constant("w", floats(&[3, 2, 3, 3], &(0..54).map(|i| i as f32 * 0.01).collect::<Vec<_>>())).unwrap();
        let attrs = [("strides", "1,1"), ("pads_begin", "1,1"), ("pads_end", "1,1"), ("dilations", "1,1")];
        let c = add(m, "Convolution", "conv", &attrs, &[x, w]);
        let bias = m.constant("bias", floats(&[1, 3, 1, 1], &[0.1, 0.2, 0.3])).unwrap();
        let c = op(m, "Add", "biased", &[c.into(), bias]);
        let c = op(m, "Relu", "relu", &[c]);
        let axes = ints(m, "axes", &[2, 3]);
        let c = add(m, "ReduceMean", "mean", &[("keep_dims", "true")], &[c, axes]);
        let to = ints(m, "to", &[0, -1]);
        let c = add(m, "Reshape", "flat", &[("special_zero", "true")], &[c.into(), to]);
        let w = m.constant("fc", floats(&[3, 5], &[0.5; 15])).unwrap();
        let no = [("transpose_a", "false"), ("transpose_b", "false")];
        let c = add(m, "MatMul", "mm", &no, &[c.into(), w]);
        add(m, "Softmax", "s", &[("axis", "1")], &[c.into()]).into()
    });
}

#[test]
fn a_shape_taken_from_the_input_is_accepted() {
    accepted(|m| {
        let x = parameter(m, "x", "1,2,6");
        let s = op(m, "ShapeOf", "s", &[x]);
        let (at, axis) = (ints(m, "at", &[0]), m.constant("axis", Tensor::scalar(0i64)).unwrap());
        let n = add(m, "Gather", "n", &[], &[s, at, axis]);
        let rest = ints(m, "rest", &[3, 4]);
        let to = add(m, "Concat", "to", &[("axis", "0")], &[n.into(), rest]);
        add(m, "Reshape", "r", &[("special_zero", "false")], &[x, to.into()]).into()
    });
}

#[test]
fn a_failing_batch_is_run_one_by_one() {
    let (a, core) = core();
    let c = compile(&core, &chain(), "BATCH:A(2)", 20_000).unwrap();
    a.told().fails_to_infer.store(true, SeqCst);
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..2)
            .map(|t| {
                let request = c.create_infer_request();
                s.spawn(move || {
                    request.set_input(0, row(t)).unwrap();
                    request.infer(()).unwrap_err().to_string()
                })
            })
            .collect();
        for t in threads {
            assert!(t.join().unwrap().contains("A is told to fail"));
        }
    });
    assert_eq!(a.told().n_inferences.load(SeqCst), 3, "once for both, then each alone");
}

#[test]
fn a_request_that_waits_for_company_can_be_cancelled() {
    let (_, core) = core();
    let c = compile(&core, &chain(), "BATCH:A(2)", 60_000).unwrap();
    let request = c.create_infer_request();
    request.set_input(0, row(1)).unwrap();
    let flag = request.cancel_flag();
    let started = Instant::now();
    let kind = std::thread::scope(|s| {
        s.spawn(|| {
            std::thread::sleep(Duration::from_millis(30));
            flag.set();
        });
        request.infer(()).unwrap_err().kind()
    });
    assert_eq!(kind, ErrorKind::Cancelled);
    assert!(started.elapsed() < Duration::from_secs(20));
    // Its place is free again: two others make the batch.
    at_once(&c, &chain(), &[row(2), row(3)]);
    assert_eq!(c.property("AUTO_BATCH_COUNTS").unwrap(), "batches=1 alone=0");
}

#[test]
fn many_threads_with_cancellations() {
    let (a, core) = core();
    let c = compile(&core, &chain(), "BATCH:A(4)", 3).unwrap();
    let expected: Vec<_> = (0..9).map(|t| chain().evaluate(&[row(t)]).unwrap().remove(0)).collect();
    let requests: Vec<_> = (0..9).map(|_| c.create_infer_request()).collect();
    let flags: Vec<_> = requests.iter().map(|r| r.cancel_flag()).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|s| {
        let threads: Vec<_> = requests
            .into_iter()
            .enumerate()
            .map(|(t, request)| {
                let expected = &expected[t];
                s.spawn(move || {
                    request.set_input(0, row(t)).unwrap();
                    for _ in 0..60 {
                        match request.infer(()) {
                            Ok(_) => assert!(request.output(0).unwrap().content_eq(expected)),
                            Err(e) => assert_eq!(e.kind(), ErrorKind::Cancelled, "{e}"),
                        }
                    }
                })
            })
            .collect();
        let (flags, done) = (&flags, &done);
        s.spawn(move || {
            let mut i = 0usize;
            while !done.load(SeqCst) {
                flags[i % flags.len()].set();
                i += 2;
                std::thread::sleep(Duration::from_micros(900));
            }
        });
        let results: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        done.store(true, SeqCst);
        results.into_iter().for_each(|r| r.unwrap());
    });
    assert_eq!(a.told().n_running.load(SeqCst), 0);
}
