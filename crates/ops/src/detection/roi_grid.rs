//! Pooling of bilinear samples over the bins of a region. Samples more than a pixel outside count as zeros: they take
//! part in the average, and a maximum never falls below zero.

use super::expect::{at_least, dim_is, same_dim, same_float};
use carafe_graph::{Error, InferCx, Result};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// How the samples of a bin become one number.
    pub enum PoolMode { Avg = "avg", Max = "max" }
}

/// Bins with more samples are refused: no feature map is that large.
const MOST_SAMPLES: usize = 1 << 20;

/// One image of feature maps.
pub(super) struct Features<'a> {
    pub(super) data: &'a [f32],
    pub(super) channels: usize,
    pub(super) height: usize,
    pub(super) width: usize,
}

/// Output bins and samples a side of each; 0 samples for one per pixel.
#[derive(Clone, Copy)]
pub(super) struct Bins {
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) sampling: usize,
}

/// An upright region in feature-map coordinates.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) x: f32,
    pub(super) y: f32,
    pub(super) width: f32,
    pub(super) height: f32,
}

/// Two neighbours on an axis and the part that the second has.
#[derive(Clone, Copy)]
struct Tap {
    low: usize,
    high: usize,
    to_high: f32,
}

/// Checks `data, rois, batch_indices` with `roi_size` numbers a region, and sets the output shape.
pub(super) fn infer_align(
    cx: &mut InferCx<'_>,
    roi_size: i64,
    (pooled_h, pooled_w): (i64, i64),
    sampling: i64,
) -> Result<()> {
    at_least(cx, "pooled_h", pooled_h, 1)?;
    at_least(cx, "pooled_w", pooled_w, 1)?;
    at_least(cx, "sampling_ratio", sampling, 0)?;
    let ty = same_float(cx, &[0, 1])?;
    cx.require_integer(2)?;
    cx.require_rank(0, &[4])?;
    cx.require_rank(1, &[2])?;
    cx.require_rank(2, &[1])?;
    dim_is(cx, 1, 1, roi_size)?;
    let regions = same_dim(cx, (1, 0), (2, 0))?;
    cx.set(0, ty, PartialShape::new([regions, cx.dim(0, 1), Dim::known(pooled_h), Dim::known(pooled_w)]));
    Ok(())
}

/// Pools an upright region into `out`, which has `channels * bins` elements.
pub(super) fn pool_upright(f: &Features<'_>, r: Region, bins: Bins, mode: PoolMode, out: &mut [f32]) -> Result<()> {
    let (bin_w, bin_h) = (r.width / bins.width as f32, r.height / bins.height as f32);
    let (nx, ny) = samples(bin_w, bin_h, bins)?;
    let columns = axis_taps(r.x, bin_w, bins.width, nx, f.width);
    let rows = axis_taps(r.y, bin_h, bins.height, ny, f.height);
    pool(f, bins, nx as f64 * ny as f64, mode, out, |by, bx, points| {
        for &row in &rows[by] {
            points.extend(columns[bx].iter().map(|&column| (row, column)));
        }
    });
    Ok(())
}

/// Averages over a region that starts at `r.x, r.y` before `turn` maps its points to the feature map.
pub(super) fn pool_turned(
    f: &Features<'_>,
    r: Region,
    bins: Bins,
    out: &mut [f32],
    turn: impl Fn(f32, f32) -> (f32, f32),
) -> Result<()> {
    let (bin_w, bin_h) = (r.width / bins.width as f32, r.height / bins.height as f32);
    let (nx, ny) = samples(bin_w, bin_h, bins)?;
    let (step_x, step_y) = (bin_w / nx as f32, bin_h / ny as f32);
    pool(f, bins, nx as f64 * ny as f64, PoolMode::Avg, out, |by, bx, points| {
        for iy in 0..ny {
            let y = r.y + by as f32 * bin_h + step_y * (iy as f32 + 0.5);
            for ix in 0..nx {
                let x = r.x + bx as f32 * bin_w + step_x * (ix as f32 + 0.5);
                let (x, y) = turn(x, y);
                if let (Some(row), Some(column)) = (tap(y, f.height), tap(x, f.width)) {
                    points.push((row, column));
                }
            }
        }
    });
    Ok(())
}

/// Samples of a row and of a column of a bin.
fn samples(bin_w: f32, bin_h: f32, bins: Bins) -> Result<(usize, usize)> {
    // A negative or undefined size casts to 0.
    let along = |bin: f32| if bins.sampling > 0 { bins.sampling } else { bin.ceil() as usize };
    let (nx, ny) = (along(bin_w), along(bin_h));
    if nx.max(1).saturating_mul(ny.max(1)) > MOST_SAMPLES {
        return Err(Error::invalid(format!("a region needs more than {MOST_SAMPLES} samples a bin")));
    }
    Ok((nx, ny))
}

/// For each bin of an axis, the samples that fall on the feature map.
fn axis_taps(start: f32, bin: f32, bins: usize, n: usize, size: usize) -> Vec<Vec<Tap>> {
    let step = bin / n as f32;
    let taps = |b: usize| {
        (0..n).filter_map(|i| tap(start + b as f32 * bin + step * (i as f32 + 0.5), size)).collect::<Vec<Tap>>()
    };
    (0..bins).map(taps).collect()
}

fn tap(at: f32, size: usize) -> Option<Tap> {
    if size == 0 || !(-1.0..=size as f32).contains(&at) {
        return None;
    }
    let at = at.max(0.0);
    let low = at as usize;
    if low >= size - 1 {
        return Some(Tap { low: size - 1, high: size - 1, to_high: 0.0 });
    }
    Some(Tap { low, high: low + 1, to_high: at - low as f32 })
}

fn pool(
    f: &Features<'_>,
    bins: Bins,
    total: f64,
    mode: PoolMode,
    out: &mut [f32],
    mut points_of: impl FnMut(usize, usize, &mut Vec<(Tap, Tap)>),
) {
    let (plane, area) = (f.height * f.width, bins.height * bins.width);
    let mut points = Vec::new();
    for by in 0..bins.height {
        for bx in 0..bins.width {
            points.clear();
            points_of(by, bx, &mut points);
            for c in 0..f.channels {
                let map = &f.data[c * plane..(c + 1) * plane];
                let values = points.iter().map(|(row, column)| bilinear(map, f.width, row, column));
                let pooled = match mode {
                    PoolMode::Max => values.fold(0.0, f32::max),
                    PoolMode::Avg if points.is_empty() => 0.0,
                    PoolMode::Avg => (values.map(f64::from).sum::<f64>() / total) as f32,
                };
                out[c * area + by * bins.width + bx] = pooled;
            }
        }
    }
}

fn bilinear(map: &[f32], width: usize, row: &Tap, column: &Tap) -> f32 {
    let (top, bottom) = (&map[row.low * width..], &map[row.high * width..]);
    let (ly, lx) = (row.to_high, column.to_high);
    let (hy, hx) = (1.0 - ly, 1.0 - lx);
    hy * hx * top[column.low] + hy * lx * top[column.high] + ly * hx * bottom[column.low] + ly * lx * bottom[column.high]
}
