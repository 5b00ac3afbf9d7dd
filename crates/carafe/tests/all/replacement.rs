//! Sub-graphs replaced as a JSON file says (`--transformations_config`).

use carafe::prelude::*;
use carafe::{
    Core, Extension, Mapping, Match, Model, NodeId, Notes, Outcome, PartialShape, Phase, PhasedPass, Replacement,
    Rewrite, Tensor, convert, ops,
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
    let n = convert::apply_config(&mut m, config, &core(), &mut Notes::default())?;
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
fn what_replaces_a_scope_is_named_after_what_the_pattern_matched() {
    for pattern in ["block/", "bl[a-o]+ck?/", "(head2|block)/.*", "b.*k/"] {
        let config = format!(
            r#"[{{"id": "Block", "match_kind": "scope", "op": "Grow", "custom_attributes": {{"times": 5}},
            "instances": ["{pattern}"]}}]"#
        );
        let mut m = chain();
        convert::apply_config(&mut m, &config, &core(), &mut Notes::default()).unwrap();
        let names: Vec<&str> = m.nodes().filter(|(_, n)| n.op().is::<Grow>()).map(|(_, n)| n.name()).collect();
        assert_eq!(names, ["block"], "{pattern}");
    }
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
    let apply = |config: &str| convert::apply_config(&mut chain(), config, &core, &mut Notes::default());
    assert_eq!(apply(r#"[{"id": "drop_negative", "match_kind": "general"}]"#).unwrap(), 1);
    let handed = r#"[{"id": "drop_negative", "match_kind": "general", "custom_attributes": {"n": 1}}]"#;
    assert!(apply(handed).unwrap_err().to_string().contains("cannot be handed to a rewrite"));
    let matched = r#"[{"id": "drop_negative", "match_kind": "scope", "instances": ["block/"]}]"#;
    assert!(apply(matched).unwrap_err().to_string().contains("a rewrite is handed no match"));
}

/// Grows by what the user wrote, whatever the match is.
struct GrowBlock;

impl Replacement for GrowBlock {
    fn id(&self) -> &str {
        "GrowBlock"
    }
    fn replace(&self, model: &mut Model, found: &Match, _: &mut Notes) -> Result<()> {
        let times = found.attrs.read("times", None)?;
        let grow = model.add(format!("{}/grow", found.name), Grow { times }, &found.inputs)?;
        model.replace_value(found.outputs[0], grow.into());
        Ok(())
    }
}

#[test]
fn a_replacement_of_an_extension_is_handed_match_and_attributes() {
    let core = core();
    core.add_extension(Extension::new("blocks").replacement(Arc::new(GrowBlock))).unwrap();
    let x = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
    let points = r#""points", "instances": {"start_points": ["block/abs"], "end_points": ["block/neg"]}"#;
    for matched in [points, r#""scope", "instances": ["block/"]"#] {
        let config =
            format!(r#"[{{"id": "GrowBlock", "custom_attributes": {{"times": 7}}, "match_kind": {matched}}}]"#);
        let mut m = chain();
        assert_eq!(convert::apply_config(&mut m, &config, &core, &mut Notes::default()).unwrap(), 1);
        assert_eq!(m.evaluate(std::slice::from_ref(&x)).unwrap()[0].as_slice::<f32>().unwrap(), [7.0, 14.0]);
        assert!(m.find_node("block/neg").is_none(), "the old nodes are gone");
    }
}

#[test]
fn a_start_point_with_several_inputs_is_refused() {
    let mut m = Model::new("two");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2])).unwrap();
    let a = m.add("a", ops::math::Abs, &[x]).unwrap();
    let add = m.add("add", ops::arithmetic::Add::default(), &[x, a.into()]).unwrap();
    m.result("y", add.into()).unwrap();
    let config = r#"[{"id": "a", "match_kind": "points", "op": "Grow", "custom_attributes": {"times": 3},
        "instances": {"start_points": ["add"], "end_points": ["add"]}}]"#;
    let e = convert::apply_config(&mut m, config, &core(), &mut Notes::default()).unwrap_err().to_string();
    assert!(e.contains("start point `add` has 2 inputs"), "{e}");
}

#[test]
fn the_ports_of_a_scope_are_filled_in() {
    let config = r#"[{"id": "Block", "match_kind": "scope", "instances": ["none/", "block/"]}]"#;
    let text = convert::update_config(&chain(), config).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json[0]["inputs"], serde_json::json!([[{"node": "abs$", "port": 0}]]));
    assert_eq!(json[0]["outputs"], serde_json::json!([{"node": "neg$", "port": 0}]));
    let e = convert::update_config(&chain(), r#"[{"id": "B", "match_kind": "scope", "instances": ["none/"]}]"#);
    assert!(e.unwrap_err().to_string().contains("no instance is in this model: none/"));
}

#[test]
fn mistakes_are_told_with_the_entry() {
    assert!(error("{").contains("not valid JSON"));
    assert!(error("{}").contains("expected a list"));
    assert!(error(r#"[{"match_kind": "points"}]"#).contains("entry 0 has no `id`"));
    assert!(error(r#"[{"id": "a", "match_kind": "shape", "op": "Grow"}]"#).contains("known: points, scope, general"));
    let nobody = "no extension brings a replacement or a rewrite of this name";
    assert!(error(r#"[{"id": "a", "match_kind": "general"}]"#).contains(nobody));
    assert!(error(r#"[{"id": "a", "match_kind": "scope", "instances": ["block/"]}]"#).contains(nobody));
    assert!(error(r#"[{"id": "a", "match_kind": "general", "op": "Grow"}]"#).contains("so it has no `op`"));
    assert!(error(r#"[{"id": "a", "match_kind": "general", "instnaces": []}]"#).contains("`instnaces` is no key"));
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
