//! The behaviour suite: one file a suite, one function a check, its name the sentence it stands for. A check runs in a
//! thread of its own, so that one that never ends or panics is a failure like any other.

mod asynchronous;
mod bench;
mod cache;
mod compile;
mod dynamic;
mod export;
mod hetero;
mod lifetime;
mod parallel;
mod profiling;
mod properties;
mod query;
mod queue;
mod runtime_model;
mod state;
mod tensors;
mod version;

use crate::guard::within;
use crate::report::Verdict;
use crate::target::Target;
use bench::{Bench, Outcome, Stop};
use std::sync::Arc;

pub(crate) type Check = fn(&Bench) -> Outcome;

pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) checks: &'static [(&'static str, Check)],
}

/// In this order, so that what fails first explains what fails later.
pub(crate) const SUITES: &[Suite] = &[
    version::SUITE,
    properties::SUITE,
    query::SUITE,
    compile::SUITE,
    tensors::SUITE,
    asynchronous::SUITE,
    queue::SUITE,
    dynamic::SUITE,
    state::SUITE,
    parallel::SUITE,
    profiling::SUITE,
    runtime_model::SUITE,
    export::SUITE,
    cache::SUITE,
    lifetime::SUITE,
    hetero::SUITE,
];

/// A suite of the functions that are listed, each under its own name.
macro_rules! suite {
    ($name:literal: $($check:ident),+ $(,)?) => {
        pub(super) const SUITE: super::Suite =
            super::Suite { name: $name, checks: &[$((stringify!($check), $check)),+] };
    };
}

/// Fails the check unless something holds.
macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err($crate::behaviour::bench::Stop::Failed(format!($($message)+)));
        }
    };
}

pub(crate) use {ensure, suite};

/// Runs one check.
pub(crate) fn run(target: &Arc<Target>, name: &'static str, check: Check) -> Verdict {
    let for_check = target.clone();
    let outcome = within(target.patience, name, move || Ok(Bench::new(for_check).and_then(|bench| check(&bench))));
    let outcome = outcome.unwrap_or_else(|message| Err(Stop::Failed(message)));
    match outcome {
        Ok(()) => Verdict::Passed,
        Err(Stop::Failed(message)) => Verdict::Failed(message),
        Err(Stop::Skipped(why)) => Verdict::Skipped(why),
    }
}
