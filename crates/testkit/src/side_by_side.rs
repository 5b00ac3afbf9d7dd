//! Runs a case on two devices that take turns: every input and output of the model gets a node of its own, and of two nodes
//! that follow each other one is on CPU and the other on TEMPLATE. Then the other way round. So every value of the case
//! crosses a border between devices.

use crate::case::{Case, Expect};
use crate::paths::{core, infer};
use crate::runner::{InputsAs, build, check_outputs, feed};
use carafe::multi::set_affinity;
use carafe_graph::{Constant, Model, NodeId, Parameter, Result, ResultOp, Value};
use carafe_ops::movement::Identity;
use carafe_tensor::Tensor;
use std::collections::HashMap;

const DEVICES: [[&str; 2]; 2] = [["CPU", "TEMPLATE"], ["TEMPLATE", "CPU"]];

/// Runs the check.
pub(crate) fn check(case: &Case) -> Result<(), String> {
    for devices in DEVICES {
        let found = outputs(case, devices);
        check_outputs(case, found).map_err(|e| format!("{} at the borders, {} inside: {e}", devices[0], devices[1]))?;
    }
    Ok(())
}

fn outputs(case: &Case, devices: [&str; 2]) -> Result<Vec<Tensor>> {
    let mut model = build(case, InputsAs::Parameters)?;
    let inputs = feed(case, &model)?;
    surround(&mut model)?;
    let turns = take_turns(&mut model, devices)?;
    let name = format!("HETERO:{},{}", devices[0], devices[1]);
    let compiled = core().compile_model(&model, &name, &carafe::Properties::new())?;
    if turns && !matches!(case.expect, Expect::Error(_)) {
        let report = compiled.property("HETERO_REPORT")?;
        assert!(devices.iter().all(|d| report.contains(d)), "one device alone runs the case:\n{report}");
    }
    infer(compiled, &inputs)
}

// Puts an Identity behind every input and before every output. Names of inputs and outputs stay.
fn surround(model: &mut Model) -> Result<()> {
    for (i, &p) in model.parameters().to_vec().iter().enumerate() {
        let users = model.users(p.into()).to_vec();
        let entered: Value = model.add(format!("enter_{i}"), Identity, &[p.into()])?.into();
        users.iter().for_each(|user| model.set_input(user.node, user.input, entered));
    }
    for (i, &r) in model.results().to_vec().iter().enumerate() {
        let value = model.result_value(r);
        let leaving: Value = model.add(format!("leave_{i}"), Identity, &[value])?.into();
        model.set_input(r, 0, leaving);
    }
    model.infer()
}

// Gives nodes to the devices by how many come before them; whether both have some. Nodes that work with one variable must
// stay together, so a model with variables is divided at its borders only.
fn take_turns(model: &mut Model, devices: [&str; 2]) -> Result<bool> {
    let stateful = model.nodes().any(|(_, n)| n.op().info().stateful || n.op().info().sink);
    let mut level: HashMap<NodeId, usize> = HashMap::new();
    let mut turns = [false; 2];
    for id in model.topological_order()? {
        let node = model.node(id);
        let op = node.op();
        if op.is::<Constant>() || op.is::<ResultOp>() {
            continue;
        }
        // What stands behind no input is known before anything runs, and belongs to no device.
        let before = node.inputs().iter().filter_map(|v| level.get(&v.node)).max();
        let own = match (op.is::<Parameter>(), before) {
            (true, _) => 0,
            (false, Some(level)) => level + 1,
            (false, None) => continue,
        };
        level.insert(id, own);
        if own > 0 && (!stateful || op.is::<Identity>()) {
            let device = usize::from(own % 2 == 0);
            turns[device] = true;
            set_affinity(model, id, devices[device]);
        }
    }
    Ok(turns == [true; 2])
}
