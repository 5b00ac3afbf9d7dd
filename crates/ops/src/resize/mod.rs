//! Sampling an image at other places than its pixels.

mod resample;
mod taps;

opset! {
    grid_sample::{GridSample},
    interpolate::{Interpolate, InterpolateV1, InterpolateV4},
}
