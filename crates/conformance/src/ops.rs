//! The operation suite: every case that computes something is built as a model, offered to the device, and run there if
//! the device takes it. Cases about inference or about models that cannot be built never reach a device and do not count.

use crate::case::{Case, CaseFile, Expect, Subject};
use crate::guard::within;
use crate::report::OpRow;
use crate::runner::{InputsAs, build, check_outputs, feed, find_op};
use crate::target::Target;
use carafe::{Core, Model, Result, Tensor};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs the cases of the operations whose name is wanted.
pub fn run(
    target: &Arc<Target>,
    files: &[CaseFile],
    wanted: &dyn Fn(&str) -> bool,
    hear: &mut dyn FnMut(&str),
) -> Result<Vec<OpRow>> {
    let core = target.core()?;
    let mut rows: BTreeMap<(String, u32), OpRow> = BTreeMap::new();
    for file in files {
        let mut heard = false;
        for case in file.cases.iter().filter(|c| !c.is_inference()) {
            let (name, opset, since) = class(file, case);
            if !wanted(&name) {
                continue;
            }
            if !std::mem::replace(&mut heard, true) {
                hear(&format!("ops::{name}"));
            }
            let Ok(model) = build(case, InputsAs::Parameters) else { continue };
            let row = rows.entry((name.clone(), since)).or_default();
            (row.name, row.opset) = (name, opset);
            let (target, core, this) = (target.clone(), core.clone(), case.clone());
            match within(target.patience, &row.name, move || judge(&target, &core, &this, &model)) {
                Ok(None) => row.passed += 1,
                Ok(Some(why)) => row.unsupported.push((case.place(), why)),
                Err(message) => row.failures.push((case.place(), message)),
            }
        }
    }
    Ok(rows.into_values().collect())
}

// What a case is about. A case with a model file is about the operation that its case file is named after.
fn class(file: &CaseFile, case: &Case) -> (String, String, u32) {
    let found = match &case.subject {
        Subject::Op { name, opset } => find_op(name, opset.as_deref()),
        Subject::Model { .. } => find_op(&file.name, None),
    };
    match found {
        Ok(f) => (f.info.name.to_string(), f.info.opset.to_string(), f.info.since),
        Err(_) => (file.name.clone(), "models".into(), 0),
    }
}

// `Some` with the reason when the device does not take the model.
fn judge(target: &Target, core: &Core, case: &Case, model: &Model) -> Result<Option<String>, String> {
    let query = core.query_model(model, &target.device, &target.properties).map_err(|e| e.to_string())?;
    if let Some(u) = query.unsupported.first() {
        return Ok(Some(format!("`{}` ({}): {}", u.name, u.type_name, u.reason)));
    }
    match (&case.expect, on_device(target, core, case, model)) {
        // The words are the reference's; a device may say it in its own.
        (Expect::Error(_), Err(_)) => Ok(None),
        (_, found) => check_outputs(case, found).map(|()| None),
    }
}

fn on_device(target: &Target, core: &Core, case: &Case, model: &Model) -> Result<Vec<Tensor>> {
    let compiled = core.compile_model(model, &target.device, &target.properties)?;
    let count = compiled.outputs().len();
    let mut request = compiled.create_request();
    for (index, tensor) in feed(case, model)?.into_iter().enumerate() {
        request.set_input(index, tensor)?;
    }
    request.infer()?;
    (0..count).map(|index| request.output(index).cloned()).collect()
}
