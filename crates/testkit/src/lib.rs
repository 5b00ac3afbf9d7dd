//! Operation cases as text, comparators, and the paths each case runs through. For tests only: everything here may
//! assume that a failing check ends the test.

#![forbid(unsafe_code)]

mod blocked;
pub mod coverage;
pub mod dynamic;
pub mod fake_device;
pub mod fixture;
pub mod kernel_coverage;
pub mod libraries;
pub mod paths;
mod reshaped;
mod side_by_side;
mod tidy;

pub use carafe_conformance::case::{Case, CaseError, CaseFile, Expect, Expected, Input, Options, Subject};
pub use carafe_conformance::compare::{Tolerance, assert_close};
pub use carafe_conformance::{case, compare, guard, runner};
pub use fake_device::{FakeDevice, Fault, Told};
pub use paths::{Path, core_in_f32};
