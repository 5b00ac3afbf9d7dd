//! Building, editing, ordering and checking graphs, with two tiny operations of the test's own.

use carafe_graph::tensor::{ElementType, PartialShape, Tensor};
use carafe_graph::{EvalCx, InferCx, Model, Op, Result, Value, dump, verify};
use std::collections::HashMap;

/// Adds `by` to every element.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "test")]
struct Shift {
    #[attr(default = 1.0)]
    by: f32,
}

impl Op for Shift {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y = cx.get::<f32>(0)?.iter().map(|x| x + self.by).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

/// Sum of two tensors of one shape.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "test", inputs = "a, b", commutative)]
struct Sum;

impl Op for Sum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1])?;
        let shape = cx.broadcast(0, 1)?;
        cx.set(0, ty, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y = cx.get::<f32>(0)?.iter().zip(cx.get::<f32>(1)?.iter()).map(|(a, b)| a + b).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

fn shape(text: &str) -> PartialShape {
    text.parse().unwrap()
}

/// x -> a(+1) -> b(+10) -> result, and x + b -> second result.
fn chain() -> (Model, Value, Value, Value) {
    let mut m = Model::new("chain");
    let x = m.parameter("x", ElementType::F32, shape("2")).unwrap();
    let a: Value = m.add("a", Shift { by: 1.0 }, &[x]).unwrap().into();
    let b: Value = m.add("b", Shift { by: 10.0 }, &[a]).unwrap().into();
    let s: Value = m.add("s", Sum, &[x, b]).unwrap().into();
    m.result("first", b).unwrap();
    m.result("second", s).unwrap();
    (m, x, a, b)
}

fn run(m: &Model) -> Vec<Vec<f32>> {
    let x = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
    m.evaluate(&[x]).unwrap().iter().map(|t| t.as_slice::<f32>().unwrap().to_vec()).collect()
}

#[test]
fn a_model_evaluates_in_order_with_several_results() {
    let (m, ..) = chain();
    assert_eq!(run(&m), [[12.0, 13.0], [13.0, 15.0]]);
}

#[test]
fn replacing_a_value_moves_all_users_and_the_tensor_names() {
    let (mut m, x, a, b) = chain();
    m.add_tensor_name(b, "named");
    m.replace_value(b, a);
    verify(&m).unwrap();
    assert_eq!(run(&m), [[2.0, 3.0], [3.0, 5.0]]);
    assert!(m.output(a).names.contains("named") && m.output(b).names.is_empty());
    assert!(m.users(b).is_empty() && m.users(x).len() == 2);
}

#[test]
fn a_node_in_use_cannot_be_removed() {
    let (mut m, _, a, _) = chain();
    let e = m.remove(a.node).unwrap_err().to_string();
    assert_eq!(e, "node `a` (Shift, test): cannot remove: its output is used");
}

#[test]
fn pruning_drops_what_no_result_needs_and_keeps_parameters() {
    let (mut m, x, a, b) = chain();
    m.replace_value(b, x);
    assert_eq!(m.prune(), 2);
    verify(&m).unwrap();
    assert!(m.get(a.node).is_none() && m.parameters().len() == 1);
    assert_eq!(run(&m)[0], [1.0, 2.0]);
}

#[test]
fn a_cycle_is_an_error_that_names_its_nodes() {
    let (mut m, _, a, b) = chain();
    m.set_input(a.node, 0, b);
    let e = m.topological_order().unwrap_err().to_string();
    assert!(e.contains("cycle through `b`, `a`") || e.contains("cycle through `a`, `b`"), "{e}");
    assert!(verify(&m).is_err());
}

#[test]
fn exchanging_an_operation_that_does_not_fit_leaves_the_node_as_it_was() {
    let (mut m, _, a, _) = chain();
    let e = m.set_op(a.node, std::sync::Arc::new(Sum)).unwrap_err().to_string();
    assert!(e.contains("takes 2 inputs, found 1"), "{e}");
    assert_eq!(run(&m)[0], [12.0, 13.0]);
}

#[test]
fn reshaping_infers_everything_again_or_changes_nothing() {
    let (mut m, _, a, _) = chain();
    m.reshape(&HashMap::from([(0, shape("?,7"))])).unwrap();
    assert_eq!(m.fact(a).to_string(), "f32[?,7]");
    assert!(m.reshape(&HashMap::from([(3, shape("1"))])).is_err());
    assert_eq!(m.fact(a).to_string(), "f32[?,7]");
}

#[test]
fn a_wrong_input_at_run_time_names_the_input() {
    let (m, ..) = chain();
    let e = m.evaluate(&[Tensor::zeros(ElementType::F32, &[3]).unwrap()]).unwrap_err().to_string();
    assert_eq!(e, "input `x` takes f32[2], found f32[3]");
}

#[test]
fn a_bad_node_is_refused_with_its_name_and_type() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::I32, shape("2")).unwrap();
    let e = m.add("bad", Shift { by: 1.0 }, &[x]).unwrap_err().to_string();
    assert_eq!(e, "node `bad` (Shift, test): input 0 (`data`) must be a float tensor, found i32");
}

#[test]
fn the_text_form_shows_operations_attributes_and_facts() {
    let (m, ..) = chain();
    let text = dump::text(&m);
    assert!(text.contains("%1 = Shift@test(%0) {by=1} : f32[2]  # a"), "{text}");
    assert!(dump::dot(&m).starts_with("digraph"));
}

#[test]
fn models_compare_by_structure_not_by_ids() {
    let (mut a, ..) = chain();
    let (b, ..) = chain();
    let extra = a.constant("unused", Tensor::scalar(1f32)).unwrap();
    assert!(!a.same_as(&b));
    a.remove(extra.node).unwrap();
    assert!(a.same_as(&b));
}

#[test]
fn dynamic_dimensions_of_one_parameter_are_equal_to_themselves() {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, shape("?,4")).unwrap();
    let y: Value = m.add("y", Shift { by: 0.0 }, &[x]).unwrap().into();
    let s: Value = m.add("s", Sum, &[x, y]).unwrap().into();
    assert_eq!(m.fact(s).shape.dim(0).symbol(), m.fact(x).shape.dim(0).symbol());
    assert!(m.fact(s).shape.dim(0).symbol().is_some());
}
