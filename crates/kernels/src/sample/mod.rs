//! Images read between their pixels, at points that are data: samples of a grid, and convolutions whose taps are moved.

mod blend;
mod deformable;
mod grid;

pub use deformable::{Deformable, DeformableShape, Moves};
pub use grid::{GridSample, SampleMode, SamplePadding};
