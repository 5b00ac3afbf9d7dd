//! What a run consists of, in order: checks of behaviours, then operation cases. The same filter gives the same plan in
//! every process, so that a step can be named by its number.

use crate::behaviour::{self, Suite};
use crate::case::{Case, CaseFile};
use crate::case_files;
use crate::ops;
use crate::report::{OpRow, Report, Row, Verdict};
use crate::target::Target;
use carafe::{Core, Error, Properties, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The steps of a run.
#[derive(Debug)]
pub struct Plan(Vec<Step>);

#[derive(Clone, Copy)]
enum Step {
    Check { suite: &'static Suite, name: &'static str, check: behaviour::Check },
    Case { file: &'static CaseFile, case: &'static Case },
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Step {
    fn name(&self) -> String {
        match self {
            Step::Check { suite, name, .. } => format!("{}::{name}", suite.name),
            Step::Case { file, case } => format!("ops::{}", ops::class(file, case).0),
        }
    }
}

/// How a step ended; no verdict where a case is none for a device.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) verdict: Option<Verdict>,
    pub(crate) time: Duration,
}

impl Plan {
    /// Both suites, or what of them has a name that contains `filter`.
    pub fn new(filter: &str) -> Result<Plan> {
        let wanted = |name: &str| name.to_ascii_lowercase().contains(&filter.to_ascii_lowercase());
        let mut steps = Vec::new();
        for suite in behaviour::SUITES {
            let checks = suite.checks.iter().map(|(name, check)| Step::Check { suite, name, check: *check });
            steps.extend(checks.filter(|s| wanted(&s.name())));
        }
        // `export::` and the like name a behaviour, and reading the cases takes a moment.
        let suite = filter.split_once("::").map(|(suite, _)| suite.to_ascii_lowercase());
        if suite.is_some_and(|s| !"ops".ends_with(&s)) && !steps.is_empty() {
            return Ok(Plan(steps));
        }
        for file in case_files().map_err(|e| Error::invalid(e.to_string()))? {
            let cases = file.cases.iter().filter(|c| !c.is_inference()).map(|case| Step::Case { file, case });
            steps.extend(cases.filter(|s| wanted(&s.name())));
        }
        match steps.is_empty() {
            true => Err(Error::usage(format!("nothing has a name that contains `{filter}`"))),
            false => Ok(Plan(steps)),
        }
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// `suite::check`, or `ops::Operation` of a case.
    pub fn name(&self, step: usize) -> String {
        self.0[step].name()
    }
    /// `cases` is the `Core` that operation cases share, made for the first of them.
    pub(crate) fn run(&self, step: usize, target: &Arc<Target>, cases: &mut Option<Core>) -> Result<Ended> {
        let start = Instant::now();
        let verdict = match &self.0[step] {
            Step::Check { name, check, .. } => Some(behaviour::run(target, name, *check)),
            Step::Case { file, case } => {
                if cases.is_none() {
                    *cases = Some(exact_core(target)?);
                }
                let name = ops::class(file, case).0;
                cases.as_ref().and_then(|core| ops::run(target, core, &name, case))
            }
        };
        Ok(Ended { verdict, time: start.elapsed() })
    }
}

/// A `Core` whose devices compute in f32, where they can be asked to: cases compare numbers strictly.
fn exact_core(target: &Target) -> Result<Core> {
    let (core, name) = (target.core()?, "INFERENCE_PRECISION_HINT");
    for device in core.available_devices() {
        if core.device(&device)?.properties().iter().any(|p| p.name == name) {
            core.set_property(&device, &Properties::new().with(name, "f32"))?;
        }
    }
    Ok(core)
}

/// A report that grows step by step.
#[derive(Debug)]
pub(crate) struct Growing {
    pub(crate) report: Report,
    ops: BTreeMap<(String, u32), OpRow>,
}

impl Growing {
    /// One that has nothing but the device.
    pub(crate) fn new(report: Report) -> Growing {
        Growing { report, ops: BTreeMap::new() }
    }
    pub(crate) fn add(&mut self, plan: &Plan, step: usize, ended: Ended) {
        let Some(verdict) = ended.verdict else { return };
        match &plan.0[step] {
            Step::Check { suite, name, .. } => {
                self.report.behaviours.push(Row { suite: suite.name, name, verdict, time: ended.time });
            }
            Step::Case { file, case } => {
                let (name, opset, since) = ops::class(file, case);
                let row = self.ops.entry((name.clone(), since)).or_default();
                (row.name, row.opset) = (name, opset);
                match verdict {
                    Verdict::Passed => row.passed += 1,
                    Verdict::Skipped(why) => row.unsupported.push((case.location(), why)),
                    Verdict::Failed(message) => row.failures.push((case.location(), message)),
                }
            }
        }
    }
    pub(crate) fn finish(mut self) -> Report {
        self.report.ops = self.ops.into_values().collect();
        self.report
    }
}
