//! Operation cases as text, comparators, and the paths each case runs through. For tests only: everything here may
//! assume that a failing check ends the test.

#![forbid(unsafe_code)]

pub mod case;
pub mod compare;
pub mod coverage;
pub mod dynamic;
pub mod fake_device;
pub mod fixture;
mod guard;
pub mod libraries;
pub mod paths;
pub mod runner;
mod scan;
mod tidy;
pub mod values;

pub use case::{Case, CaseError, CaseFile, Expect, Expected, Input, Options, Subject};
pub use compare::{Tolerance, assert_close, compare};
pub use fake_device::{FakeDevice, Told};
pub use paths::Path;
