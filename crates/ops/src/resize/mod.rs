//! Sampling an image at other positions than its pixels.

mod resample;
mod taps;
pub use taps::{AxisPlan, Coordinates, Mode, NearestMode, plan_axis};

opset! {
    grid_sample::{GridSample},
    interpolate::{Interpolate, InterpolateV1, InterpolateV4},
}
