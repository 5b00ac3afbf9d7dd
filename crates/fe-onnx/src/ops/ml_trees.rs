//! Ensembles of trees of `ai.onnx.ml`: reading the three ways they are written, and turning scores into labels.

use super::forest::{Forest, Mode};
use super::ml::{ML, best, floats, post_transformed, rows};
use super::ml_labels::labels;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, TensorAttr, Value};
use carafe_ops::activation::Sigmoid;
use carafe_tensor::{ElementType, Tensor};
use std::collections::{HashMap, HashSet};

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(ML, "TreeEnsembleClassifier", 1, classifier),
    rule_in(ML, "TreeEnsembleRegressor", 1, regressor),
    rule_in(ML, "TreeEnsemble", 5, ensemble),
];

// Floats, or a tensor that stands for them.
fn numbers(n: &NodeCx<'_>, name: &str) -> Result<Vec<f64>> {
    let plain: Vec<f64> = n.attr(name, vec![])?;
    let tensor: Option<TensorAttr> = n.opt_attr(&format!("{name}_as_tensor"))?;
    match tensor {
        Some(t) => Ok(t.0.to_vec::<f64>()?.into_owned()),
        // An f32 attribute comes by its shortest digits; comparisons need what it was.
        None => Ok(plain.iter().map(|&v| f64::from(v as f32)).collect()),
    }
}

// The forest of the older operations: parallel lists, nodes named by tree and number.
fn forest(n: &NodeCx<'_>, weights_of: &str, targets: usize) -> Result<Forest> {
    let ints = |name: &str| n.attr::<Vec<i64>>(name, vec![]);
    let (trees, ids) = (ints("nodes_treeids")?, ints("nodes_nodeids")?);
    let (features, values) = (ints("nodes_featureids")?, numbers(n, "nodes_values")?);
    let (yes, no) = (ints("nodes_truenodeids")?, ints("nodes_falsenodeids")?);
    let modes: Vec<String> = n.attr("nodes_modes", vec![])?;
    let missing = ints("nodes_missing_value_tracks_true")?;
    n.ignore(&["nodes_hitrates", "nodes_hitrates_as_tensor"]);
    let count = trees.len();
    let lengths = [ids.len(), features.len(), values.len(), yes.len(), no.len(), modes.len()];
    if lengths.iter().any(|&l| l != count) {
        return Err(n.fail(format!("the lists of nodes differ in length: {count} and {lengths:?}")));
    }
    let mut f = Forest { targets, ..Forest::default() };
    let mut positions = HashMap::new();
    for i in 0..count {
        positions.insert((trees[i], ids[i]), f.add());
    }
    let position = |tree: i64, id: i64| {
        positions.get(&(tree, id)).copied().ok_or_else(|| n.fail(format!("tree {tree} has no node {id}")))
    };
    let mut reached = vec![false; count];
    for i in 0..count {
        f.modes[i] = match modes[i].as_str() {
            "LEAF" => None,
            "BRANCH_LEQ" => Some(Mode::LessEqual),
            "BRANCH_LT" => Some(Mode::Less),
            "BRANCH_GTE" => Some(Mode::GreaterEqual),
            "BRANCH_GT" => Some(Mode::Greater),
            "BRANCH_EQ" => Some(Mode::Equal),
            "BRANCH_NEQ" => Some(Mode::NotEqual),
            other => return Err(n.fail(format!("node mode `{other}` is not known"))),
        };
        if f.modes[i].is_some() {
            (f.features[i], f.values[i]) = (features[i], values[i]);
            (f.yes[i], f.no[i]) = (position(trees[i], yes[i])?, position(trees[i], no[i])?);
            f.missing_is_yes[i] = missing.get(i).is_some_and(|&m| m != 0);
            reached[f.yes[i]] = true;
            reached[f.no[i]] = true;
        }
    }
    // A tree starts at the first of its nodes that nothing leads to.
    let mut rooted = HashSet::new();
    f.roots = (0..count).filter(|&i| !reached[i] && rooted.insert(trees[i])).collect();
    let list = |part: &str| ints(&format!("{weights_of}_{part}"));
    let (trees, nodes, ids) = (list("treeids")?, list("nodeids")?, list("ids")?);
    let weights = numbers(n, &format!("{weights_of}_weights"))?;
    if [nodes.len(), ids.len(), weights.len()].iter().any(|&l| l != trees.len()) {
        return Err(n.fail("the lists of leaf weights differ in length"));
    }
    for i in 0..trees.len() {
        let target = usize::try_from(ids[i]).ok().filter(|&t| t < targets);
        let target = target.ok_or_else(|| n.fail(format!("target {} is not within 0..{targets}", ids[i])))?;
        f.weights[position(trees[i], nodes[i])?].push((target, weights[i]));
    }
    Ok(f)
}

// Comparisons happen in the type of the features; whole numbers are compared as floats.
fn features(n: &mut NodeCx<'_>) -> Result<Value> {
    let x = n.input(0)?;
    match n.ty(x) {
        ElementType::F64 => Ok(x),
        _ => rows(n),
    }
}

fn regressor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let targets: i64 = n.attr("n_targets", 1)?;
    let targets = usize::try_from(targets).ok().filter(|&t| t > 0).ok_or_else(|| n.fail("n_targets must be above 0"))?;
    let aggregate: String = n.attr("aggregate_function", "SUM".to_string())?;
    let post: String = n.attr("post_transform", "NONE".to_string())?;
    let base = numbers(n, "base_values")?;
    let f = forest(n, "target", targets)?;
    let x = features(n)?;
    let mut scores = f.scores(n, x, &aggregate)?;
    if !base.is_empty() {
        let base = n.constant(Tensor::from_f64(n.ty(scores), &[base.len()], &base)?)?;
        scores = n.plus(scores, base)?;
    }
    let scores = n.convert(scores, ElementType::F32)?;
    // A single score is no distribution: there is nothing to transform but a probability.
    let post = if targets == 1 && post != "PROBIT" { "NONE" } else { &post };
    Ok(post_transformed(n, scores, post)?.into())
}

fn classifier(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let post: String = n.attr("post_transform", "NONE".to_string())?;
    let labels = labels(n, "classlabels_int64s", "classlabels_strings")?;
    let base = numbers(n, "base_values")?;
    let classes = labels.len();
    let f = forest(n, "class", classes)?;
    let ids: Vec<i64> = n.attr("class_ids", vec![])?;
    let single = classes == 2 && ids.windows(2).all(|w| w[0] == w[1]);
    let positive = f.weights.iter().flatten().all(|&(_, w)| w >= 0.0);
    let x = features(n)?;
    let scores = f.scores(n, x, "SUM")?;
    let scores = n.convert(scores, ElementType::F32)?;
    let base: Vec<f32> = base.iter().map(|&b| b as f32).collect();
    if !single {
        let scores = if base.is_empty() {
            scores
        } else {
            let base = floats(n, &[base.len()], &base)?;
            n.plus(scores, base)?
        };
        let at = best(n, scores)?;
        let label = labels.pick(n, at)?;
        return Ok(vec![label, post_transformed(n, scores, &post)?].into());
    }
    // One class has all weights: its score, or the margin between both.
    let score = n.sum_over(scores, &[1], true)?;
    let score = match base.as_slice() {
        [] => score,
        [one] | [_, one] => n.plus_number(score, f64::from(*one))?,
        _ => return Err(n.fail(format!("two classes have at most 2 base values, found {}", base.len()))),
    };
    let limit = n.number(score, if positive { 0.5 } else { 0.0 })?;
    let at = n.greater(score, limit)?;
    let at = n.convert(at, ElementType::I64)?;
    let at = n.squeeze(at, &[-1])?;
    let label = labels.pick(n, at)?;
    let both = if ids.first() == Some(&1) {
        let nothing = n.times_number(score, 0.0)?;
        let all = n.concat(&[nothing, score], 1)?;
        post_transformed(n, all, &post)?
    } else {
        let score = if post == "LOGISTIC" { n.emit(Sigmoid, &[score])? } else { score };
        let rest = match positive || post == "LOGISTIC" {
            true => n.sub_from(1.0, score)?,
            false => n.times_number(score, -1.0)?,
        };
        n.concat(&[rest, score], 1)?
    };
    Ok(vec![label, both].into())
}

// The newest form: nodes and leaves in lists of their own, addressed by index.
fn ensemble(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let ints = |name: &str| n.attr::<Vec<i64>>(name, vec![]);
    let tensor = |name: &str| -> Result<Vec<f64>> {
        let t: Option<TensorAttr> = n.opt_attr(name)?;
        Ok(match t {
            Some(t) => t.0.to_vec::<f64>()?.into_owned(),
            None => vec![],
        })
    };
    let targets: i64 = n.attr("n_targets", 1)?;
    let targets = usize::try_from(targets).ok().filter(|&t| t > 0).ok_or_else(|| n.fail("n_targets must be above 0"))?;
    let aggregate = match n.attr("aggregate_function", 1i64)? {
        0 => "AVERAGE",
        1 => "SUM",
        2 => "MIN",
        3 => "MAX",
        other => return Err(n.fail(format!("aggregate_function {other} is not known"))),
    };
    let post = match n.attr("post_transform", 0i64)? {
        0 => "NONE",
        1 => "SOFTMAX",
        2 => "LOGISTIC",
        3 => "SOFTMAX_ZERO",
        4 => "PROBIT",
        other => return Err(n.fail(format!("post_transform {other} is not known"))),
    };
    let (modes, splits) = (tensor("nodes_modes")?, tensor("nodes_splits")?);
    let (yes, no) = (ints("nodes_truenodeids")?, ints("nodes_falsenodeids")?);
    let (yes_leaf, no_leaf) = (ints("nodes_trueleafs")?, ints("nodes_falseleafs")?);
    let (features_of, missing) = (ints("nodes_featureids")?, ints("nodes_missing_value_tracks_true")?);
    let (leaf_targets, leaf_weights) = (ints("leaf_targetids")?, tensor("leaf_weights")?);
    let roots = ints("tree_roots")?;
    let mut members = tensor("membership_values")?.into_iter();
    n.ignore(&["nodes_hitrates"]);
    let count = modes.len();
    let lengths = [splits.len(), yes.len(), no.len(), yes_leaf.len(), no_leaf.len(), features_of.len()];
    if lengths.iter().any(|&l| l != count) || leaf_targets.len() != leaf_weights.len() {
        return Err(n.fail(format!("the lists of nodes differ in length: {count} and {lengths:?}")));
    }
    let mut f = Forest { targets, ..Forest::default() };
    for _ in 0..count + leaf_weights.len() {
        f.add();
    }
    let position = |leaf: i64, at: i64| -> Result<usize> {
        let limit = if leaf != 0 { leaf_weights.len() } else { count };
        let at = usize::try_from(at).ok().filter(|&i| i < limit).ok_or_else(|| n.fail(format!("node {at} is missing")))?;
        Ok(if leaf != 0 { count + at } else { at })
    };
    for i in 0..count {
        f.modes[i] = Some(match modes[i] as i64 {
            0 => Mode::LessEqual,
            1 => Mode::Less,
            2 => Mode::GreaterEqual,
            3 => Mode::Greater,
            4 => Mode::Equal,
            5 => Mode::NotEqual,
            6 => Mode::Member,
            other => return Err(n.fail(format!("node mode {other} is not known"))),
        });
        (f.features[i], f.values[i]) = (features_of[i], splits[i]);
        (f.yes[i], f.no[i]) = (position(yes_leaf[i], yes[i])?, position(no_leaf[i], no[i])?);
        f.missing_is_yes[i] = missing.get(i).is_some_and(|&m| m != 0);
        if f.modes[i] == Some(Mode::Member) {
            f.members[i] = members.by_ref().take_while(|v| !v.is_nan()).collect();
        }
    }
    for (i, (&target, &weight)) in leaf_targets.iter().zip(&leaf_weights).enumerate() {
        let target = usize::try_from(target).ok().filter(|&t| t < targets);
        let target = target.ok_or_else(|| n.fail(format!("targets must be within 0..{targets}")))?;
        f.weights[count + i].push((target, weight));
    }
    for root in roots {
        // A tree that is a leaf alone says so by a node both of whose sides are that leaf.
        f.roots.push(position(0, root)?);
    }
    let x = n.input(0)?;
    let ty = n.ty(x);
    let x = match ty {
        ElementType::F16 => n.convert(x, ElementType::F32)?,
        _ => x,
    };
    let scores = f.scores(n, x, aggregate)?;
    let y = post_transformed(n, scores, post)?;
    Ok(n.convert(y, ty)?.into())
}
