//! Resizing of images `[N, H, W, C]`.

use super::layout::Layout;
use super::shapes::i64_vector;
use carafe_frontend::NodeCx;
use carafe_graph::{Result, Value};
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{Coordinates, Interpolate, Mode, NearestMode};

/// Where an output pixel lies in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corners {
    /// First and last pixels fall together.
    pub align_corners: bool,
    /// Pixels have their centre at half.
    pub half_pixel_centers: bool,
}

/// Blends the four neighbours. The data must be of floats.
pub fn bilinear(n: &mut NodeCx<'_>, x: Value, size: Value, corners: Corners) -> Result<Value> {
    let coordinates = match corners {
        Corners { align_corners: true, .. } => Coordinates::AlignCorners,
        Corners { half_pixel_centers: true, .. } => Coordinates::HalfPixel,
        _ => Coordinates::Asymmetric,
    };
    interpolate(n, x, size, Mode::LinearOnnx, coordinates, NearestMode::RoundPreferFloor)
}

/// Takes the nearest pixel.
pub fn nearest(n: &mut NodeCx<'_>, x: Value, size: Value, corners: Corners) -> Result<Value> {
    let (coordinates, mode) = match corners {
        Corners { align_corners: true, .. } => (Coordinates::AlignCorners, NearestMode::RoundPreferCeil),
        Corners { half_pixel_centers: true, .. } => (Coordinates::TfHalfPixelForNn, NearestMode::Floor),
        _ => (Coordinates::Asymmetric, NearestMode::Floor),
    };
    interpolate(n, x, size, Mode::Nearest, coordinates, mode)
}

fn interpolate(
    n: &mut NodeCx<'_>,
    x: Value,
    size: Value,
    mode: Mode,
    coordinate_transformation_mode: Coordinates,
    nearest_mode: NearestMode,
) -> Result<Value> {
    let layout = Layout::ChannelsLast;
    let x = layout.to_first(n, x, 2)?;
    let (size, axes) = (i64_vector(n, size)?, n.i64s(&[2, 3])?);
    let op = Interpolate {
        mode,
        shape_calculation_mode: ShapeCalculation::Sizes,
        coordinate_transformation_mode,
        nearest_mode,
        antialias: false,
        pads_begin: vec![0; 4],
        pads_end: vec![0; 4],
        cube_coeff: -0.75,
    };
    let y = n.emit(op, &[x, size, axes])?;
    layout.from_first(n, y, 2)
}
