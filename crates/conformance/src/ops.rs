//! The operation suite: every case that computes something is built as a model, offered to the device, and run there if
//! the device takes it. Cases about inference or about models that cannot be built never reach a device and do not count.

use crate::case::{Case, CaseFile, Expect, Subject};
use crate::guard::within;
use crate::report::Verdict;
use crate::runner::{InputsAs, build, check_outputs, feed, find_op};
use crate::target::Target;
use carafe::{Core, Model, Result, Tensor};
use std::sync::Arc;

/// Runs one case; nothing for one whose model cannot be built, which no device would see.
pub(crate) fn run(target: &Arc<Target>, core: &Core, name: &str, case: &Case) -> Option<Verdict> {
    let model = build(case, InputsAs::Parameters).ok()?;
    let (for_case, core, this) = (target.clone(), core.clone(), case.clone());
    Some(match within(target.patience, name, move || judge(&for_case, &core, &this, &model)) {
        Ok(None) => Verdict::Passed,
        Ok(Some(why)) => Verdict::Skipped(why),
        Err(message) => Verdict::Failed(message),
    })
}

// What a case is about. A case with a model file is about the operation that its case file is named after.
pub(crate) fn class(file: &CaseFile, case: &Case) -> (String, String, u32) {
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
    Ok(compiled.infer(feed(case, model)?)?.into_vec())
}
