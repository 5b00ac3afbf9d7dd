//! Control flow, lists and recurrent layers: what `scripts/fixtures/tf-control.py` wrote runs on the devices and through IR as it
//! does in TensorFlow (`references.rs` checks the evaluation), layers become sequence operations, and graphs that make no sense are
//! refused with the name of the node.

use crate::common::{Proto, check_error, constant, dtype, graph, node, placeholder};
use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::ReadRequest;
use carafe_graph::{Model, Notes, run_passes};
use carafe_tensor::{SharedBytes, Tensor};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/control")
}

fn read(path: &Path) -> Result<Model, String> {
    carafe_frontend::read(&TensorFlow, &ReadRequest::new(path)).map_err(|e| e.to_string())
}

#[test]
fn graphs_run_on_the_devices_and_through_ir() {
    let core = carafe::core();
    // Numbers are compared strictly, also where another type is faster.
    core.set_property("CPU", &carafe::Properties::new().with("INFERENCE_PRECISION_HINT", "f32")).unwrap();
    let files = std::fs::read_dir(folder()).unwrap().map(|f| f.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|f| f.extension().is_some_and(|e| e == "pb")).collect();
    files.sort();
    assert!(files.len() > 80, "{} graphs", files.len());
    let mut failures = vec![];
    for path in &files {
        if let Err(e) = check(&core, path) {
            failures.push(format!("{}: {e}", path.file_stem().unwrap_or_default().display()));
        }
    }
    assert!(failures.is_empty(), "{} of {} graphs:\n{}", failures.len(), files.len(), failures.join("\n"));
}

fn check(core: &carafe::Core, path: &Path) -> Result<(), String> {
    let arrays =
        carafe_npy::read_npz(&std::fs::read(path.with_extension("npz")).unwrap()).map_err(|e| e.to_string())?;
    let model = read(path)?;
    for device in ["TEMPLATE", "CPU"] {
        run(core, &model, device, &arrays).map_err(|e| format!("on {device}: {e}"))?;
    }
    let mut tidy = model.clone();
    let passes: Vec<_> = carafe_passes::TIDY.iter().chain(carafe_passes::FUSE).copied().collect();
    run_passes(&mut tidy, &passes, &mut Notes::default()).map_err(|e| format!("tidying: {e}"))?;
    let (xml, weights) = carafe::ir::write_to(&tidy, &Default::default()).map_err(|e| format!("writing: {e}"))?;
    let options = carafe::ir::ReadOptions { old_api: false, ..Default::default() };
    let again = carafe::ir::read(&xml, SharedBytes::from_vec(weights), &core.registry(), &options);
    let again = again.map_err(|e| format!("reading again: {e}"))?;
    run(core, &again, "CPU", &arrays).map_err(|e| format!("after writing and reading: {e}"))
}

fn run(core: &carafe::Core, model: &Model, device: &str, arrays: &[(String, Tensor)]) -> Result<(), String> {
    let text = |e: carafe::Error| e.to_string();
    let compiled = core.compile_model(model, device, &carafe::Properties::new()).map_err(text)?;
    let request = compiled.create_infer_request();
    for (name, tensor) in arrays.iter().filter_map(|(n, t)| Some((n.strip_prefix("i.")?, t))) {
        // An input that has no effect is gone.
        let Some(index) = model.find_parameter(name) else { continue };
        request.set_input(index, tensor.clone()).map_err(text)?;
    }
    request.infer(()).map_err(text)?;
    let wanted: Vec<_> = arrays.iter().filter_map(|(n, t)| Some((n.strip_prefix("o.")?, t))).collect();
    for (name, wanted) in wanted {
        let index = model.find_result(name).ok_or_else(|| format!("there is no output `{name}`"))?;
        let found = request.output(index).map_err(text)?;
        if (found.element_type(), found.shape()) != (wanted.element_type(), wanted.shape()) {
            return Err(format!("`{name}` is {found:?}, wanted {wanted:?}"));
        }
        let (a, b) = (found.to_vec::<f64>().unwrap(), wanted.to_vec::<f64>().unwrap());
        if let Some(i) = a.iter().zip(&*b).position(|(a, b)| (a - b).abs() > 1e-4 * (0.1 + b.abs())) {
            return Err(format!("`{name}`, element {i} is {}, wanted {}", a[i], b[i]));
        }
    }
    Ok(())
}

#[test]
fn recurrent_layers_become_sequence_operations() {
    let layers = [
        ("keras-lstm", "LSTMSequence", 1),
        ("keras-lstm-sequences", "LSTMSequence", 1),
        ("keras-lstm-sequences-lowered", "LSTMSequence", 1),
        ("keras-lstm-states", "LSTMSequence", 1),
        ("keras-lstm-backwards", "LSTMSequence", 1),
        ("keras-bidirectional", "LSTMSequence", 2),
        ("keras-gru", "GRUSequence", 1),
        ("keras-gru-sequences", "GRUSequence", 1),
        ("keras-gru-before", "GRUSequence", 1),
        ("keras-simple", "RNNSequence", 1),
        // A mask is no length.
        ("keras-masked", "Loop", 2),
    ];
    for (file, ty, count) in layers {
        let mut model = read(&folder().join(format!("{file}.pb"))).unwrap();
        let passes: Vec<_> = carafe_passes::TIDY.iter().chain(carafe_passes::FUSE).copied().collect();
        run_passes(&mut model, &passes, &mut Notes::default()).unwrap();
        let found = model.nodes().filter(|(_, n)| n.op().info().name == ty).count();
        assert_eq!(found, count, "{ty} in {file}");
    }
}

fn text(s: &str) -> Proto {
    Proto::new().bytes(2, s)
}

fn enter(name: &str, input: &str) -> Proto {
    node(name, "Enter", &[input], &[("T", dtype(1)), ("frame_name", text("frame"))])
}

fn merge(name: &str, inputs: &[&str]) -> Proto {
    node(name, "Merge", inputs, &[("T", dtype(1)), ("N", Proto::new().int(3, inputs.len() as i64))])
}

fn switch(name: &str, data: &str, test: &str) -> Proto {
    node(name, "Switch", &[data, test], &[("T", dtype(1))])
}

// `while x < 5 { x = x + 1 }`, with changes.
fn counted(change: impl Fn(&str, Proto) -> Option<Proto>) -> Proto {
    let all = [
        ("x", placeholder("x", &[])),
        ("five", constant("five", &[], &[5.0])),
        ("one", constant("one", &[], &[1.0])),
        ("enter", enter("enter", "x")),
        ("limit", enter("limit", "five")),
        ("merge", merge("merge", &["enter", "next"])),
        ("less", node("less", "Less", &["merge", "limit"], &[("T", dtype(1))])),
        ("cond", node("cond", "LoopCond", &["less"], &[])),
        ("switch", switch("switch", "merge", "cond")),
        ("add", node("add", "AddV2", &["switch:1", "one"], &[("T", dtype(1))])),
        ("next", node("next", "NextIteration", &["add"], &[("T", dtype(1))])),
        ("exit", node("exit", "Exit", &["switch"], &[("T", dtype(1))])),
        ("y", node("y", "Identity", &["exit"], &[("T", dtype(1))])),
    ];
    graph(&all.into_iter().filter_map(|(name, node)| change(name, node)).collect::<Vec<_>>())
}

#[test]
fn a_loop_of_the_first_generation_counts() {
    let model = crate::common::read(&counted(|_, n| Some(n)).0).unwrap();
    assert_eq!(crate::common::evaluate(&model, &[(&[], &[2.5])]), [(vec![], vec![5.5])]);
}

#[test]
fn a_loop_without_a_condition_is_refused() {
    let g = counted(|name, n| match name {
        "cond" => Some(node("cond", "Identity", &["less"], &[])),
        _ => Some(n),
    });
    check_error(&g.0, "loop `frame` has no condition");
}

#[test]
fn a_loop_with_two_conditions_is_refused() {
    let g = counted(|name, n| match name {
        "one" => Some(node("one", "LoopCond", &["less"], &[])),
        _ => Some(n),
    });
    check_error(&g.0, "has two conditions");
}

#[test]
fn a_value_that_never_entered_a_loop_is_refused() {
    let g = counted(|name, n| match name {
        "merge" => Some(merge("merge", &["next", "next"])),
        _ => Some(n),
    });
    check_error(&g.0, "`merge`");
}

#[test]
fn leaving_a_loop_that_nothing_enters_is_refused() {
    let g = graph(&[placeholder("x", &[]), node("y", "Exit", &["x"], &[("T", dtype(1))])]);
    check_error(&g.0, "node `y` (Exit): leaves a loop that nothing enters");
}

#[test]
fn leaving_a_loop_around_its_condition_is_refused() {
    let g = counted(|name, n| match name {
        "exit" => Some(node("exit", "Exit", &["merge"], &[("T", dtype(1))])),
        _ => Some(n),
    });
    check_error(&g.0, "no Switch of its condition gives");
}

#[test]
fn a_cycle_that_is_no_loop_is_refused() {
    let g = graph(&[
        placeholder("x", &[]),
        merge("a", &["x", "b"]),
        node("b", "AddV2", &["a", "x"], &[("T", dtype(1))]),
        node("y", "Identity", &["b"], &[("T", dtype(1))]),
    ]);
    check_error(&g.0, "a cycle that no NextIteration closes");
}

#[test]
fn a_merge_of_nothing_is_refused() {
    let g = graph(&[placeholder("x", &[]), merge("m", &[]), node("y", "AddV2", &["m", "x"], &[("T", dtype(1))])]);
    check_error(&g.0, "node `m` (Merge): merges nothing");
}

#[test]
fn a_merge_of_unrelated_values_is_refused() {
    let g = graph(&[placeholder("x", &[]), placeholder("z", &[]), merge("y", &["x", "z"])]);
    check_error(&g.0, "node `y` (Merge): merges 2 values that are not the sides of one predicate");
}

#[test]
fn loops_deeper_than_any_real_one_are_refused() {
    let mut nodes = vec![placeholder("x", &[])];
    for i in 0..80 {
        let from = if i == 0 { "x".to_string() } else { format!("e{}", i - 1) };
        let frame = text(&format!("frame{i}"));
        nodes.push(node(&format!("e{i}"), "Enter", &[&from], &[("T", dtype(1)), ("frame_name", frame)]));
    }
    nodes.push(node("y", "Exit", &["e79"], &[("T", dtype(1))]));
    check_error(&graph(&nodes).0, "loops are nested deeper than 64");
}

// A function of some arguments that gives some of them back.
fn function(name: &str, args: &[&str], outputs: &[(&str, &str)]) -> Proto {
    let arg = |name: &str| Proto::new().bytes(1, name).int(3, 1);
    let signature = args.iter().fold(Proto::new().bytes(1, name), |s, a| s.message(2, arg(a)));
    let signature = outputs.iter().fold(signature, |s, (o, _)| s.message(3, arg(o)));
    let f = Proto::new().message(1, signature);
    outputs.iter().fold(f, |f, (o, of)| f.message(4, Proto::new().bytes(1, o).bytes(2, of)))
}

fn calls(name: &str) -> Proto {
    Proto::new().message(10, Proto::new().bytes(1, name))
}

fn types(n: usize) -> Proto {
    Proto::new().message(1, Proto::new().bytes(6, vec![1; n]))
}

fn with_functions(node: Proto, functions: &[Proto]) -> Proto {
    let library = functions.iter().fold(Proto::new(), |l, f| l.message(1, f.clone()));
    let boolean =
        self::node("p", "Placeholder", &[], &[("dtype", dtype(10)), ("shape", Proto::new().message(7, Proto::new()))]);
    graph(&[boolean, placeholder("x", &[]), node]).message(2, library)
}

#[test]
fn a_branch_with_other_arguments_is_refused() {
    let attrs = [("then_branch", calls("one")), ("else_branch", calls("two")), ("Tout", types(1))];
    let functions = [function("one", &["a"], &[("r", "a")]), function("two", &["a", "b"], &[("r", "a")])];
    let g = with_functions(node("y", "If", &["p", "x"], &attrs), &functions);
    check_error(&g.0, "`else_branch` takes 2 inputs, the node gives 1");
}

#[test]
fn branches_with_other_outputs_are_refused() {
    let attrs = [("then_branch", calls("one")), ("else_branch", calls("two")), ("Tout", types(1))];
    let functions = [function("one", &["a"], &[("r", "a")]), function("two", &["a"], &[("r", "a"), ("s", "a")])];
    let g = with_functions(node("y", "If", &["p", "x"], &attrs), &functions);
    check_error(&g.0, "all branches need the same outputs, found 1 and 2");
}

#[test]
fn a_body_that_forgets_a_variable_is_refused() {
    let attrs = [("cond", calls("cond")), ("body", calls("body")), ("T", types(1))];
    let functions = [function("cond", &["a"], &[("r", "a")]), function("body", &["a"], &[])];
    let g = with_functions(node("y", "While", &["x"], &attrs), &functions);
    check_error(&g.0, "`body` gives 0 values, the loop has 1 variables");
}

#[test]
fn a_condition_of_two_values_is_refused() {
    let attrs = [("cond", calls("cond")), ("body", calls("body")), ("T", types(1))];
    let functions = [function("cond", &["a"], &[("r", "a"), ("s", "a")]), function("body", &["a"], &[("r", "a")])];
    let g = with_functions(node("y", "While", &["x"], &attrs), &functions);
    check_error(&g.0, "`cond` must give one tensor, found 2 values");
}
