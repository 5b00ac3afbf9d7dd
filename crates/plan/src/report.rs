//! What runs each node: for the model that a device shows, and for the profile of an inference.

use crate::backend::Backend;
use crate::plan::Plan;
use crate::run::RunMemory;
use crate::segments::segments;
use carafe_device::{NodeProfile, NodeStatus};
use carafe_graph::{Constant, Model, NodeId, Parameter, ResultOp};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Writes into the nodes of a model when they run, by which kernel and in which precision.
pub fn annotate<B: Backend>(model: &mut Model, plans: &[Arc<Plan<B>>]) {
    let mut rows: HashMap<&str, (usize, String, String)> = HashMap::new();
    for (order, step) in plans.iter().flat_map(|p| &p.steps).enumerate() {
        let precision = step.precision.to_string();
        for name in &step.fused {
            rows.insert(name, (order, format!("fused into {}", step.name), precision.clone()));
        }
        rows.insert(&step.name, (order, step.exec_type(), precision));
    }
    // Nodes without a step of their own stand beside the step that does their work, or where the model has them.
    let mut order: Vec<(usize, NodeId, String, String)> = vec![];
    let mut last = 0;
    for id in model.topological_order().unwrap_or_default() {
        let row = rows.get(model.node(id).name()).cloned();
        let (at, kernel, precision) = row.unwrap_or_else(|| {
            let ty = model.node(id).outputs().first().map(|o| o.fact.ty.to_string());
            (last, "optimized out".into(), ty.unwrap_or_default())
        });
        last = at;
        order.push((at, id, kernel, precision));
    }
    carafe_graph::sort_by_key(&mut order, |(at, ..)| *at);
    for (at, (_, id, kernel, precision)) in order.into_iter().enumerate() {
        let info = model.rt_info_mut(id);
        for (key, value) in [("execOrder", at.to_string()), ("primitiveType", kernel), ("runtimePrecision", precision)]
        {
            if !value.is_empty() {
                info.set(key, "0", vec![("value".into(), value)]);
            }
        }
    }
}

/// Times of the last run, a row for each step and each node without one.
pub fn profile<B: Backend>(model: &Model, plan: &Plan<B>, memory: &RunMemory<B>) -> Vec<NodeProfile> {
    let row = |name: &str, type_name: &str, kernel: String, status, time| NodeProfile {
        name: name.to_string(),
        type_name: type_name.to_string(),
        kernel,
        status,
        real_time: time,
        cpu_time: time,
    };
    let segments = segments(plan, memory);
    let (mut rows, mut covered, mut fused) = (vec![], HashSet::new(), HashMap::new());
    for (plan, times) in &segments {
        for (step, &time) in plan.steps.iter().zip(*times) {
            covered.insert(step.name.as_str());
            rows.push(row(&step.name, &step.type_name, step.exec_type(), NodeStatus::Executed, time));
        }
        fused.extend(plan.steps.iter().flat_map(|s| s.fused.iter().map(|f| (f.as_str(), s.name.as_str()))));
    }
    // Nodes whose work was moved or is none.
    for (_, node) in model.nodes() {
        let (name, op) = (node.name(), node.op());
        let still = op.is::<Constant>() || op.is::<Parameter>() || op.is::<ResultOp>();
        let kernel = match fused.get(name) {
            Some(into) => format!("fused into {into}"),
            None if still || !covered.contains(name) => "none".into(),
            None => continue,
        };
        rows.push(row(name, op.type_name(), kernel, NodeStatus::OptimizedOut, Duration::ZERO));
    }
    rows
}
