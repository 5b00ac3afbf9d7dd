//! Sub-graphs replaced as a JSON file says (`--transformations_config`).

use carafe::prelude::*;
use carafe::{
    Core, Extension, Mapping, Model, NodeId, Notes, Outcome, PartialShape, Phase, PhasedPass, Rewrite, Tensor,
    conversion, ops,
};
use std::sync::Arc;

/// Gives back its input, `times` as large.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme")]
struct Grow {
    times: i64,
}

impl Op for Grow {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y: Vec<f32> = cx.get::<f32>(0)?.iter().map(|x| x * self.times as f32).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

fn core() -> Core {
    let core = carafe::core();
    core.add_extension(Extension::new("acme").op::<Grow>().mapping(Mapping::new("acme::Grow"))).unwrap();
    core
}

// x -> head/relu -> block/abs -> block/neg -> tail/relu
fn chain() -> Model {
    let mut m = Model::new("chain");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2])).unwrap();
    let a = m.add("head/relu", ops::activation::Relu, &[x]).unwrap();
    let b = m.add("block/abs", ops::math::Abs, &[a.into()]).unwrap();
    let c = m.add("block/neg", ops::math::Negative, &[b.into()]).unwrap();
    let d = m.add("tail/relu", ops::activation::Relu, &[c.into()]).unwrap();
    m.result("y", d.into()).unwrap();
    m
}

fn replaced(config: &str) -> Result<(usize, Vec<f32>)> {
    let mut m = chain();
    let n = conversion::apply_config(&mut m, config, &core(), &mut Notes::default())?;
    let x = Tensor::from_slice(&[2], &[1f32, 2.0])?;
    Ok((n, m.evaluate(&[x])?[0].as_slice::<f32>()?.to_vec()))
}

fn error(config: &str) -> String {
    replaced(config).unwrap_err().to_string()
}

#[test]
fn points_name_the_first_and_last_nodes() {
    let config = r#"[{"id": "Block", "match_kind": "points", "op": "acme::Grow", "custom_attributes": {"times": 3},
        "instances": {"start_points": ["block/abs"], "end_points": ["block/neg"]}}]"#;
    assert_eq!(replaced(config).unwrap(), (1, vec![3.0, 6.0]));
}

#[test]
fn points_may_stay_outside_of_the_sub_graph() {
    let config = r#"[{"id": "Block", "match_kind": "points", "op": "Grow", "custom_attributes": {"times": 3},
        "include_inputs_to_sub_graph": false, "include_outputs_to_sub_graph": false,
        "instances": {"start_points": ["head/relu"], "end_points": ["tail/relu"]}}]"#;
    assert_eq!(replaced(config).unwrap(), (1, vec![3.0, 6.0]));
}

#[test]
fn a_scope_names_its_nodes_by_how_they_begin() {
    let config = r#"[{"id": "Block", "match_kind": "scope", "op": "Grow", "custom_attributes": {"times": 5},
        "instances": ["block/"], "inputs": [[{"node": "abs$", "port": 0}]], "outputs": [{"node": "neg$", "port": 0}]}]"#;
    assert_eq!(replaced(config).unwrap(), (1, vec![5.0, 10.0]));
}

#[test]
fn a_scope_that_is_not_there_matches_nothing() {
    let config = r#"[{"id": "Block", "match_kind": "scope", "op": "Grow", "custom_attributes": {"times": 5},
        "instances": ["elsewhere/"], "inputs": [], "outputs": []}]"#;
    assert_eq!(replaced(config).unwrap(), (0, vec![0.0, 0.0]));
}

#[test]
fn an_entry_without_an_operation_runs_the_rewrite_of_its_name() {
    struct DropNegative;
    impl Rewrite for DropNegative {
        fn name(&self) -> &'static str {
            "drop_negative"
        }
        fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
            if model.op_at::<ops::math::Negative>(root).is_none() {
                return Ok(Outcome::NoMatch);
            }
            let x = model.input(root, 0).unwrap();
            model.replace_value(root.into(), x);
            Ok(Outcome::Done)
        }
    }
    let core = core();
    let pass = PhasedPass::new(Phase::Front, Arc::new(DropNegative));
    core.add_extension(Extension::new("rewrites").pass(pass)).unwrap();
    let mut m = chain();
    let config = r#"[{"id": "drop_negative", "match_kind": "general"}]"#;
    assert_eq!(conversion::apply_config(&mut m, config, &core, &mut Notes::default()).unwrap(), 1);
}

#[test]
fn mistakes_are_told_with_the_entry() {
    assert!(error("{").contains("not valid JSON"));
    assert!(error("{}").contains("expected a list"));
    assert!(error(r#"[{"match_kind": "points"}]"#).contains("entry 0 has no `id`"));
    assert!(error(r#"[{"id": "a", "match_kind": "shape", "op": "Grow"}]"#).contains("known: points, scope, general"));
    assert!(error(r#"[{"id": "a", "match_kind": "general"}]"#).contains("no extension brings a rewrite of this name"));
    let by_scope = r#"[{"id": "a", "match_kind": "scope", "instances": ["block/"]}]"#;
    assert!(error(by_scope).contains("needs `op`"));
    let handed = r#"[{"id": "a", "match_kind": "general", "custom_attributes": {"n": 1}}]"#;
    assert!(error(handed).contains("cannot be handed to a rewrite"));
    let unknown = r#"[{"id": "a", "match_kind": "points", "op": "Growl", "instances": {"start_points": ["block/abs"],
        "end_points": ["block/neg"]}}]"#;
    assert!(error(unknown).contains("there is no operation `Growl`; near: Grow"), "{}", error(unknown));
    let backwards = r#"[{"id": "a", "match_kind": "points", "op": "Grow", "instances": {"start_points": ["block/neg"],
        "end_points": ["block/abs"]}}]"#;
    assert!(error(backwards).contains("end point `block/abs` is not reached"));
    let nowhere = r#"[{"id": "a", "match_kind": "points", "op": "Grow", "instances": {"start_points": ["nowhere"],
        "end_points": ["block/abs"]}}]"#;
    assert!(error(nowhere).contains("replacement `a`: the model has no node `nowhere`"));
}
