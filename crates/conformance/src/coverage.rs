//! Which operations a device takes, asked case by case without running anything. A form is one operation case: types, shapes and
//! attributes that somebody found worth testing, so the share that a device takes says how far it goes with an operation.

use crate::case_files;
use crate::ops::class;
use crate::runner::{InputsAs, build};
use carafe::{Core, Error, Properties, Result};
use std::collections::BTreeMap;

/// What a device takes of one operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Name of the operation.
    pub op: String,
    /// Opset it is written under.
    pub opset: String,
    /// Forms that were asked.
    pub forms: usize,
    /// Forms that the device takes.
    pub taken: usize,
    /// Why it does not take others: the reason that was given most often.
    pub reason: Option<String>,
}

/// Asks a device for every operation of the case files, by name. Inputs behind the first are constants, as in most models.
pub fn coverage(core: &Core, device: &str) -> Result<Vec<Coverage>> {
    let mut rows: BTreeMap<(String, String), (Coverage, BTreeMap<String, usize>)> = BTreeMap::new();
    for file in case_files().map_err(|e| Error::invalid(e.to_string()))? {
        for case in file.cases.iter().filter(|c| !c.is_inference()) {
            let Ok(model) = build(case, InputsAs::ConstantsButFirst) else { continue };
            let (op, opset, _) = class(file, case);
            let (row, reasons) = rows.entry((op, opset)).or_default();
            row.forms += 1;
            match core.query_model(&model, device, &Properties::new())?.unsupported.first() {
                None => row.taken += 1,
                Some(u) => *reasons.entry(u.reason.clone()).or_default() += 1,
            }
        }
    }
    let done = rows.into_iter().filter(|((_, opset), _)| opset != "models");
    Ok(done
        .map(|((op, opset), (row, reasons))| {
            let reason = reasons.into_iter().max_by_key(|(_, n)| *n).map(|(reason, _)| reason);
            Coverage { op, opset, reason, ..row }
        })
        .collect())
}
