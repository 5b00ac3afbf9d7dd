//! Passes of the engine by name, for models that Python edits.

use super::model::EngineModel;
use crate::errors::{OrRaise, failure};
use carafe::passes::{CompressToFp16, FoldConstants};
use carafe::{Notes, Pass, run_passes};
use pyo3::prelude::*;
use std::sync::Arc;

/// The model after a pass.
#[pyfunction]
pub(super) fn run_pass(py: Python<'_>, model: &EngineModel, name: &str) -> PyResult<EngineModel> {
    let passes: &[&dyn Pass] = match name {
        "fold_constants" => &[&FoldConstants { decompression: false }],
        "compress_to_fp16" => &[&CompressToFp16],
        "clean" => carafe::passes::COMMON,
        "tidy" => carafe::passes::TIDY,
        _ => return Err(failure(format!("there is no pass `{name}`"))),
    };
    let changed = py.detach(|| {
        let mut changed = model.0.as_ref().clone();
        run_passes(&mut changed, passes, &mut Notes::default()).map(|()| changed)
    });
    Ok(EngineModel(Arc::new(changed.or_raise()?)))
}
