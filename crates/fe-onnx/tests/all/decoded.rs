//! Rewrites of the graph as decoded, before it is translated.

use crate::common::{Folder, graph, proto, read_as, request};
use carafe_fe_onnx::Onnx;
use carafe_frontend::ReadRequest;
use carafe_graph::{AttrValue, Error, FrameworkNode, Model, NodeId, Notes, Outcome, Pass, Result, Rewrite, Value};
use carafe_tensor::Tensor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn read_with(text: &str, passes: &[Arc<dyn Pass>]) -> Result<Model> {
    read_as(graph(text), &ReadRequest { decoded: passes, ..request() })
}

fn rewritten(text: &str, pass: impl Pass + 'static) -> Model {
    read_with(text, &[Arc::new(pass)]).unwrap()
}

fn types(model: &Model) -> Vec<&str> {
    let mut types: Vec<&str> = model.nodes().map(|(_, n)| n.op().type_name()).collect();
    types.sort_unstable();
    types
}

fn run(model: &Model, x: &[f32]) -> Vec<f32> {
    let x = Tensor::from_slice(&[x.len()], x).unwrap();
    model.evaluate(&[x]).unwrap()[0].to_vec::<f32>().unwrap().into_owned()
}

/// A rewrite out of a function, at nodes of one type.
struct At(&'static str, fn(&mut Model, NodeId, FrameworkNode) -> Result<()>);

impl Rewrite for At {
    fn name(&self) -> &'static str {
        "rewrite_at"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(op) = model.op_at::<FrameworkNode>(root).filter(|op| op.type_name == self.0).cloned() else {
            return Ok(Outcome::NoMatch);
        };
        (self.1)(model, root, op)?;
        Ok(Outcome::Done)
    }
}

/// Looks and does nothing.
struct Look;

impl Pass for Look {
    fn name(&self) -> &'static str {
        "look"
    }
    fn run(&self, _: &mut Model, notes: &mut Notes) -> Result<usize> {
        assert!(notes.is_decoded());
        Ok(0)
    }
}

#[test]
fn a_node_gets_another_type() {
    let rename = At("MyRelu", |model, id, op| {
        model.set_op(id, Arc::new(FrameworkNode { type_name: "Relu".into(), opset: "ai.onnx".into(), ..op }))
    });
    let text = "g (float[3] x) => (float[3] y) { y = d.MyRelu (x) }";
    assert!(read_with(text, &[]).unwrap_err().to_string().contains("MyRelu"));
    let model = rewritten(text, rename);
    assert_eq!(types(&model), ["Parameter", "ReLU", "Result"]);
    assert_eq!(run(&model, &[-1.0, 0.0, 2.0]), [0.0, 0.0, 2.0]);
}

#[test]
fn two_nodes_become_one() {
    let fuse = At("Mul", |model, mul, _| {
        let x = model.input(mul, 0).ok_or_else(|| Error::invalid("no input"))?;
        let new = model.add("fused", FrameworkNode::new("", "HardSwish"), &[x])?;
        model.supersede(mul, new);
        Ok(())
    });
    let text = "g (float[3] x) => (float[3] y) { s = HardSigmoid <alpha = 0.1666667, beta = 0.5> (x) y = Mul (x, s) }";
    let model = rewritten(text, fuse);
    assert_eq!(types(&model), ["HSwish", "Parameter", "Result"]);
    assert_eq!(model.result_name(model.results()[0]), "y");
}

#[test]
fn an_attribute_changes_by_value_or_by_text() {
    let text = "g (float[2] x) => (float[2] y) { y = LeakyRelu <alpha = 0.5> (x) }";
    let by_value =
        At("LeakyRelu", |model, id, op| model.set_op(id, Arc::new(op.with("alpha", AttrValue::Float(0.25)))));
    let by_text =
        At("LeakyRelu", |model, id, op| model.set_op(id, Arc::new(op.with("alpha", AttrValue::Text("0.25".into())))));
    assert_eq!(run(&rewritten(text, Look), &[-4.0, 4.0]), [-2.0, 4.0]);
    assert_eq!(run(&rewritten(text, by_value), &[-4.0, 4.0]), [-1.0, 4.0]);
    assert_eq!(run(&rewritten(text, by_text), &[-4.0, 4.0]), [-1.0, 4.0]);
}

#[test]
fn what_no_rewrite_touches_is_read_as_it_was() {
    let branch = |name: &str, op: &str| format!("{name} = b () => (float[2] z) {{ z = {op} (t, w) }}");
    let texts = [
        "g (float[2] x) => (float[2] y, float[2] t) <float[2] w = {1, 2}> { t = Add (x, w) y = Neg (t) }".to_string(),
        "g (float[4] x) => (float[4] y) <float hi = {1}> { y = Clip (x, , hi) }".to_string(),
        "g (float[4] x) => (float[2] a) { a, b = Split <num_outputs = 2> (x) }".to_string(),
        format!(
            "g (bool c, float[2] x) => (float[2] y) <float[2] w = {{1, 2}}> {{ t = Neg (x) y = If (c) <{}, {}> }}",
            branch("then_branch", "Add"),
            branch("else_branch", "Sub")
        ),
        "g (float[2] x) => (float[2] y) { k = Constant <value = float[2] {3, 4}> () y = Add (x, k) }".to_string(),
    ];
    for text in texts {
        let plain = read_with(&text, &[]).unwrap();
        assert!(plain.same_as(&rewritten(&text, Look)), "{text}");
    }
}

#[test]
fn a_sub_graph_reads_what_took_the_place_of_a_value() {
    let double = At("Neg", |model, neg, _| {
        let x = model.input(neg, 0).ok_or_else(|| Error::invalid("no input"))?;
        let new = model.add("double", FrameworkNode::new("", "Add"), &[x, x])?;
        model.replace_value(neg.into(), new.into());
        Ok(())
    });
    let text = "g (float[2] x) => (float[2] y) <bool c = {1}> { t = Neg (x) y = If (c) <
        then_branch = b () => (float[2] z) { z = Relu (t) }, else_branch = b () => (float[2] z) { z = Abs (t) }> }";
    assert_eq!(run(&rewritten(text, double), &[3.0, -3.0]), [6.0, 0.0]);
}

#[test]
fn a_sub_graph_moves_to_another_node() {
    let rename = At("MyIf", |model, id, op| {
        let inputs: Vec<Value> = model.node(id).inputs().to_vec();
        let mut new = FrameworkNode::new("ai.onnx", "If");
        op.attrs.iter().for_each(|(name, value)| new.attrs.set(name, value.clone()));
        let new = model.add("new", new, &inputs)?;
        model.supersede(id, new);
        Ok(())
    });
    let text = "g (float[2] x) => (float[2] y) <bool c = {0}> { t = Neg (x) y = d.MyIf (c) <
        then_branch = b () => (float[2] z) { z = Relu (t) }, else_branch = b () => (float[2] z) { z = Abs (t) }> }";
    assert_eq!(run(&rewritten(text, rename), &[3.0, -3.0]), [3.0, 3.0]);
}

#[test]
fn values_that_become_one_keep_both_names() {
    let drop = At("Identity", |model, id, _| {
        let x = model.input(id, 0).ok_or_else(|| Error::invalid("no input"))?;
        model.replace_value(id.into(), x);
        Ok(())
    });
    let text = "g (float[2] x) => (float[2] y, float[2] z) { y = Neg (x) z = Identity (y) }";
    let model = rewritten(text, drop);
    let names: Vec<String> = model.results().iter().map(|r| model.result_name(*r)).collect();
    assert_eq!(names, ["y", "z"]);
}

#[test]
fn a_new_constant_whose_name_is_taken_gets_another() {
    let shift = At("Neg", |model, neg, _| {
        let x = model.input(neg, 0).ok_or_else(|| Error::invalid("no input"))?;
        let one = model.constant("w", Tensor::from_slice(&[1], &[1.0f32])?)?;
        let new = model.add("add", FrameworkNode::new("", "Add"), &[x, one])?;
        model.supersede(neg, new);
        Ok(())
    });
    let text = "g (float[2] x) => (float[2] y) <float[2] w = {10, 20}> { t = Mul (x, w) y = Neg (t) }";
    assert_eq!(run(&rewritten(text, shift), &[1.0, 2.0]), [11.0, 41.0]);
}

#[test]
fn an_operation_of_the_engine_is_refused() {
    let wrong = At("Neg", |model, neg, _| {
        let x = model.input(neg, 0).ok_or_else(|| Error::invalid("no input"))?;
        let new = model.add("abs", carafe_ops::math::Abs {}, &[x])?;
        model.supersede(neg, new);
        Ok(())
    });
    let e = read_with("g (float[2] x) => (float[2] y) { y = Neg (x) }", &[Arc::new(wrong)]).unwrap_err();
    assert!(e.to_string().contains("is an operation of the engine"), "{e}");
}

#[test]
fn stored_tensors_are_not_copied() {
    let folder = Folder::new("decoded");
    folder.write("w.bin", [10.0f32, 20.0].map(f32::to_le_bytes).concat());
    let float = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } }";
    let external = "data_location: 1 external_data { key: 'location' value: 'w.bin' }";
    let text = proto(&format!(
        "node {{ op_type: 'Mul' input: 'x' input: 'w' output: 'y' }}
         initializer {{ name: 'w' dims: 2 data_type: 1 {external} }}
         input {{ name: 'x' {float} }} output {{ name: 'y' {float} }}"
    ));
    let path = folder.write("m.prototxt", text);
    let passes: [Arc<dyn Pass>; 1] = [Arc::new(Look)];
    let model = carafe_frontend::read(&Onnx, &ReadRequest { decoded: &passes, ..ReadRequest::new(&path) }).unwrap();
    let w = model.find_node("w").unwrap();
    assert!(model.constant_of(w.into()).unwrap().is_mapped());
    assert_eq!(run(&model, &[1.0, 2.0]), [10.0, 40.0]);
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.extension() {
            _ if path.is_dir() => files_below(&path, found),
            Some(ext) if ext == "onnx" => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn every_model_of_the_repository_reads_the_same_after_a_rewrite_that_does_nothing() {
    let mut files = vec![];
    files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut files);
    assert!(files.len() > 100, "found {}", files.len());
    let passes: [Arc<dyn Pass>; 1] = [Arc::new(Look)];
    for path in files {
        let request = ReadRequest::new(&path);
        let plain = carafe_frontend::read(&Onnx, &request);
        let decoded = carafe_frontend::read(&Onnx, &ReadRequest { decoded: &passes, ..request });
        match (plain, decoded) {
            (Ok(mut a), Ok(mut b)) => {
                // What nothing reads is dropped before translation.
                a.prune();
                b.prune();
                assert!(a.same_as(&b), "{} differs", path.display());
            }
            (Err(_), Err(_)) => {}
            (a, b) => panic!("{}: {:?}, then {:?}", path.display(), a.err(), b.err()),
        }
    }
}
