//! Checks over all case files together: no operation is forgotten, and attributes survive being written and read.

use crate::case::{Case, CaseFile, Subject};
use crate::runner::{InputsAs, build, find_op, make_op, registry};
use carafe_graph::{AttrMap, AttrValue, Model, Op, OpInfo};
use std::collections::HashMap;

/// Fewest cases of an operation, all its versions together.
const LEAST_CASES: usize = 3;

/// Every version of an operation has a case, and every operation at least three.
pub fn every_op_has_three_cases(files: &[CaseFile]) -> Result<(), String> {
    let mut by_class: HashMap<*const OpInfo, usize> = HashMap::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for case in files.iter().flat_map(|f| &f.cases) {
        for info in ops_of(case) {
            *by_class.entry(info).or_default() += 1;
            *by_name.entry(info.name).or_default() += 1;
        }
    }
    let mut lacking = Vec::new();
    for factory in registry().all() {
        let info = factory.info;
        if ["Parameter", "Constant", "Result"].contains(&info.name) {
            continue;
        }
        let total = by_name.get(info.name).copied().unwrap_or(0);
        if total < LEAST_CASES {
            lacking.push(format!("{} {}: {total} cases, {LEAST_CASES} are needed", info.name, info.opset));
        } else if !by_class.contains_key(&(info as *const OpInfo)) {
            lacking.push(format!("{} {}: no case of this version", info.name, info.opset));
        }
    }
    if lacking.is_empty() { Ok(()) } else { Err(lacking.join("\n")) }
}

/// The case file of scripts/fixtures/carafe-opset.
const CARAFE_OPSET: &str = "carafe_opset";

/// Every operation of our own opset, which no other engine has under its name, has a case with numbers from elsewhere.
pub fn every_own_op_has_an_oracle(files: &[CaseFile]) -> Result<(), String> {
    let Some(file) = files.iter().find(|f| f.name == CARAFE_OPSET) else {
        return Err(format!("no case file `{CARAFE_OPSET}`; scripts/fixtures/carafe-opset writes it"));
    };
    let judged: Vec<&OpInfo> = file.cases.iter().flat_map(ops_of).collect();
    let own = registry().all().into_iter().map(|f| f.info).filter(|info| info.opset == "carafe");
    let lacking: Vec<&str> =
        own.filter(|info| !judged.iter().any(|j| std::ptr::eq(*j, *info))).map(|i| i.name).collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(format!("add to scripts/fixtures/carafe-opset: {}", lacking.join(", "))),
    }
}

/// The operations a case runs, each once. A model that cannot be read counts for none; its case fails elsewhere.
fn ops_of(case: &Case) -> Vec<&'static OpInfo> {
    let mut infos = match &case.subject {
        Subject::Op { name, opset } => find_op(name, opset.as_deref()).map(|f| vec![f.info]).unwrap_or_default(),
        Subject::Model { .. } => build(case, InputsAs::Parameters).map(|m| ops_in(&m)).unwrap_or_default(),
    };
    infos.sort_by_key(|i| *i as *const OpInfo);
    infos.dedup_by_key(|i| *i as *const OpInfo);
    infos
}

/// Operations of a model and of its bodies.
fn ops_in(model: &Model) -> Vec<&'static OpInfo> {
    let mut infos = Vec::new();
    for (_, node) in model.nodes() {
        infos.push(node.op().info());
        infos.extend(node.op().bodies().iter().flat_map(|(_, body)| ops_in(&body.model)));
    }
    infos
}

/// Each operation made by a case equals the one made from its own attributes, as values and as IR text.
pub fn every_op_round_trips_its_attributes(files: &[CaseFile]) -> Result<(), String> {
    let mut failures = Vec::new();
    for case in files.iter().flat_map(|f| &f.cases) {
        if let Ok(Some(op)) = make_op(case)
            && let Err(e) = round_trip(&*op)
        {
            failures.push(format!("{}: {e}", case.location()));
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn round_trip(op: &dyn Op) -> Result<(), String> {
    let values: AttrMap = op.attrs().into_iter().map(|(n, v)| (n.into_owned(), v)).collect();
    let text: AttrMap =
        values.iter().map(|(n, v)| (n.to_string(), v.to_text().map_or_else(|| v.clone(), AttrValue::Text))).collect();
    let factory = find_op(op.info().name, Some(op.info().opset)).map_err(|e| e.to_string())?;
    for (how, attrs) in [("values", values), ("text", text)] {
        let again = factory.create(&attrs).map_err(|e| format!("attributes as {how} {attrs:?}: {e}"))?;
        if !op.eq_op(&*again) {
            return Err(format!("attributes as {how} make {again:?} out of {op:?}"));
        }
    }
    Ok(())
}
