//! PriorBox: SSD anchors around the cells of a feature map, with their variances in the second row. Inputs are sizes, so
//! the output shape is known as soon as the layer size is. Boxes of `fixed_size` are always clipped, the others only
//! with `clip`.

use super::expect::{dim_is, put_f32, zeros};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Anchors `[2, 4 * H * W * boxes a cell]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "output_size, image_size", shape_inputs = "0, 1")]
pub struct PriorBox {
    /// Sides of square boxes, in pixels.
    #[attr(default = vec![])]
    pub min_size: Vec<f32>,
    /// Each adds a square of the geometric mean with its `min_size`.
    #[attr(default = vec![])]
    pub max_size: Vec<f32>,
    /// Width to height; 1 is always there.
    #[attr(default = vec![])]
    pub aspect_ratio: Vec<f32>,
    /// Add the inverse of each ratio.
    #[attr(default = false)]
    pub flip: bool,
    /// Clip all boxes to 0..1.
    #[attr(default = false)]
    pub clip: bool,
    /// Distance of cells in pixels; 0 takes image by layer size.
    #[attr(default = 0.0)]
    pub step: f32,
    /// Centre within a cell.
    pub offset: f32,
    /// None for 0.1, one, or one for each coordinate.
    #[attr(default = vec![])]
    pub variance: Vec<f32>,
    /// Ratios apply to every `min_size`; otherwise sizes and step are parts of the image height and ratios apply once.
    #[attr(default = true)]
    pub scale_all_sizes: bool,
    /// Ratios for `fixed_size` in place of `aspect_ratio`.
    #[attr(default = vec![])]
    pub fixed_ratio: Vec<f32>,
    /// Sides of boxes that are placed densely.
    #[attr(default = vec![])]
    pub fixed_size: Vec<f32>,
    /// Boxes a side for each `fixed_size`.
    #[attr(default = vec![])]
    pub density: Vec<f32>,
    /// The box of `max_size` comes before those of the ratios.
    #[attr(default = true)]
    pub min_max_aspect_ratios_order: bool,
}

/// Anchors `[2, 4 * H * W * boxes a cell]`, the box of `max_size` before those of the ratios.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "PriorBox", since = 1, until = 7, inputs = "output_size, image_size", shape_inputs = "0, 1")]
pub struct PriorBoxV1 {
    /// Sides of square boxes, in pixels.
    #[attr(default = vec![])]
    pub min_size: Vec<f32>,
    /// Each adds a square of the geometric mean with its `min_size`.
    #[attr(default = vec![])]
    pub max_size: Vec<f32>,
    /// Width to height; 1 is always there.
    #[attr(default = vec![])]
    pub aspect_ratio: Vec<f32>,
    /// Add the inverse of each ratio.
    #[attr(default = false)]
    pub flip: bool,
    /// Clip all boxes to 0..1.
    #[attr(default = false)]
    pub clip: bool,
    /// Distance of cells in pixels; 0 takes image by layer size.
    #[attr(default = 0.0)]
    pub step: f32,
    /// Centre within a cell.
    pub offset: f32,
    /// None for 0.1, one, or one for each coordinate.
    #[attr(default = vec![])]
    pub variance: Vec<f32>,
    /// Ratios apply to every `min_size`; otherwise sizes and step are parts of the image height and ratios apply once.
    #[attr(default = true)]
    pub scale_all_sizes: bool,
    /// Ratios for `fixed_size` in place of `aspect_ratio`.
    #[attr(default = vec![])]
    pub fixed_ratio: Vec<f32>,
    /// Sides of boxes that are placed densely.
    #[attr(default = vec![])]
    pub fixed_size: Vec<f32>,
    /// Boxes a side for each `fixed_size`.
    #[attr(default = vec![])]
    pub density: Vec<f32>,
}

impl PriorBoxV1 {
    fn newest(&self) -> PriorBox {
        PriorBox {
            min_size: self.min_size.clone(),
            max_size: self.max_size.clone(),
            aspect_ratio: self.aspect_ratio.clone(),
            flip: self.flip,
            clip: self.clip,
            step: self.step,
            offset: self.offset,
            variance: self.variance.clone(),
            scale_all_sizes: self.scale_all_sizes,
            fixed_ratio: self.fixed_ratio.clone(),
            fixed_size: self.fixed_size.clone(),
            density: self.density.clone(),
            min_max_aspect_ratios_order: true,
        }
    }
}

impl Op for PriorBox {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let cell = self.checked_cell(cx)?;
        infer_grid(cx, &self.variance, cell)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.position(cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.min_max_aspect_ratios_order { Version::of::<PriorBoxV1>(self, cx) } else { None }
    }
}

impl Op for PriorBoxV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.newest().infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.newest().position(cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<PriorBox>(self, cx)
    }
}

/// A box of a cell: how its centre is moved from that of the cell, half its size, and whether it is clipped by itself.
struct Shifted {
    move_x: f32,
    move_y: f32,
    half_w: f32,
    half_h: f32,
    clipped: bool,
}

impl PriorBox {
    /// Boxes a cell as the shape rule counts them, after checking that as many are really placed.
    fn checked_cell(&self, cx: &InferCx<'_>) -> Result<usize> {
        let dense = self.density.iter().take(self.fixed_size.len());
        if let Some(bad) = dense.clone().find(|&&d| !(1.0..=100.0).contains(&d)) {
            return Err(cx.fail(format!("attribute `density` must be from 1 to 100, found {bad}")));
        }
        cx.require(self.fixed_size.is_empty() || dense.len() == self.fixed_size.len(), || {
            format!("{} boxes of `fixed_size` need as many of `density`, found {}", self.fixed_size.len(), dense.len())
        })?;
        let (counted, placed) = (self.boxes_per_cell(), self.cell(1.0).len());
        cx.require(counted == Some(placed), || {
            format!("attributes give {placed} boxes a cell where the shape has {}", counted.unwrap_or(0))
        })?;
        Ok(placed)
    }

    fn boxes_per_cell(&self) -> Option<usize> {
        let mut distinct: Vec<i64> = vec![1_000_000];
        for &r in &self.aspect_ratio {
            let both = [r, if self.flip { 1.0 / r } else { r }];
            distinct.extend(both.map(|r| (r * 1e6).round() as i64));
        }
        distinct.sort_unstable();
        distinct.dedup();
        let ratios = distinct.len();
        let mut boxes = match (self.fixed_size.len(), self.scale_all_sizes) {
            (0, true) => ratios * self.min_size.len() + self.max_size.len(),
            (0, false) => (ratios + self.min_size.len()).checked_sub(1)?,
            (n, _) => ratios * n,
        };
        for &d in &self.density {
            let d = d as i64;
            let more = usize::try_from(d.checked_mul(d)?.checked_sub(1)?).ok()?;
            let of_each = if self.fixed_ratio.is_empty() { ratios } else { self.fixed_ratio.len() };
            boxes = boxes.checked_add(more.checked_mul(of_each)?)?;
        }
        Some(boxes)
    }

    fn ratios(&self) -> Vec<f32> {
        let mut ratios = vec![1.0f32];
        for &r in &self.aspect_ratio {
            if ratios.iter().all(|&known| (r - known).abs() >= 1e-6) {
                ratios.push(r);
                if self.flip {
                    ratios.push(1.0 / r);
                }
            }
        }
        ratios
    }

    /// The boxes of a cell, in output order. Sizes of `min_size` are multiplied by `scale`.
    fn cell(&self, scale: f32) -> Vec<Shifted> {
        let ratios = self.ratios();
        let other_ratios = || ratios.iter().filter(|&&r| (r - 1.0).abs() >= 1e-6).map(|r| r.sqrt());
        let mut boxes = Vec::new();
        for (&size, &density) in self.fixed_size.iter().zip(&self.density) {
            let half = size * 0.5;
            if self.fixed_ratio.is_empty() {
                place_densely(&mut boxes, size, density, size.trunc() * 0.5, size.trunc() * 0.5);
                other_ratios().for_each(|r| place_densely(&mut boxes, size, density, half * r, half / r));
            } else {
                for r in self.fixed_ratio.iter().map(|r| r.sqrt()) {
                    place_densely(&mut boxes, size, density, half * r, half / r);
                }
            }
        }
        let centred = |half_w: f32, half_h: f32| Shifted { move_x: 0.0, move_y: 0.0, half_w, half_h, clipped: false };
        let last = self.min_size.len().saturating_sub(1);
        for (i, &size) in self.min_size.iter().enumerate() {
            let size = size * scale;
            boxes.push(centred(size * 0.5, size * 0.5));
            let mean = self.max_size.get(i).map(|max| (size * max).sqrt() * 0.5).map(|half| centred(half, half));
            let half = if self.scale_all_sizes { size } else { self.min_size[0] * scale } * 0.5;
            let stretched = other_ratios().map(|r| centred(half * r, half / r));
            let stretched = stretched.take(if self.scale_all_sizes || i == last { usize::MAX } else { 0 });
            if self.min_max_aspect_ratios_order {
                boxes.extend(mean);
                boxes.extend(stretched);
            } else {
                boxes.extend(stretched);
                boxes.extend(mean);
            }
        }
        boxes
    }

    fn position(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let [height, width, image_h, image_w] = sizes(cx)?;
        let (mut step, mut scale) = (self.step, 1.0);
        if !self.scale_all_sizes {
            step = if step == -1.0 { image_h / height } else { step * image_h };
            scale = image_h;
        }
        let (step_x, step_y) = if step == 0.0 { (image_w / width, image_h / height) } else { (step, step) };
        let offset = if step == 0.0 { 0.5 } else { self.offset };
        let cell = self.cell(scale);
        let per_x = 1.0 / image_w;
        let per_y = 1.0 / image_h;
        place_grid(cx, &self.variance, cell.len(), |column, row, n| {
            let b = &cell[n];
            let x = (column + offset) * step_x + b.move_x;
            let y = (row + offset) * step_y + b.move_y;
            let mut corners = [(x - b.half_w) * per_x, (y - b.half_h) * per_y, (x + b.half_w) * per_x, (y + b.half_h) * per_y];
            if b.clipped {
                corners = [corners[0].max(0.0), corners[1].max(0.0), corners[2].min(1.0), corners[3].min(1.0)];
            }
            if self.clip { corners.map(|v| v.clamp(0.0, 1.0)) } else { corners }
        })
    }
}

/// A square grid of boxes around the centre of the cell, `density` a side.
fn place_densely(boxes: &mut Vec<Shifted>, size: f32, density: f32, half_w: f32, half_h: f32) {
    let n = density as usize;
    let shift = (size / n as f32).trunc();
    let first = shift / 2.0 - (size.trunc() / 2.0).trunc();
    for row in 0..n {
        for column in 0..n {
            let (move_x, move_y) = (first + column as f32 * shift, first + row as f32 * shift);
            boxes.push(Shifted { move_x, move_y, half_w, half_h, clipped: true });
        }
    }
}

/// Checks sizes and variances and sets the shape for so many boxes a cell.
pub(super) fn infer_grid(cx: &mut InferCx<'_>, variance: &[f32], cell: usize) -> Result<()> {
    cx.require(matches!(variance.len(), 0 | 1 | 4), || {
        format!("attribute `variance` must have 0, 1 or 4 numbers, found {}", variance.len())
    })?;
    for input in [0, 1] {
        cx.require_integer(input)?;
        cx.require_rank(input, &[1])?;
        dim_is(cx, input, 0, 2)?;
    }
    let columns = match cx.dims_value(0).as_deref() {
        Some(&[h, w]) => {
            cx.require(h.max() >= Some(0) || h.max().is_none(), || format!("layer height is {h}"))?;
            cx.require(w.max() >= Some(0) || w.max().is_none(), || format!("layer width is {w}"))?;
            h.clamp_shape().mul(w.clamp_shape()).mul(Dim::known(cell as i64)).mul(Dim::known(4))
        }
        _ => Dim::ANY,
    };
    cx.set(0, ElementType::F32, PartialShape::new([Dim::known(2), columns]));
    Ok(())
}

/// Layer height and width, image height and width.
pub(super) fn sizes(cx: &EvalCx<'_>) -> Result<[f32; 4]> {
    let (layer, image) = (cx.ints(0)?, cx.ints(1)?);
    match (layer.as_slice(), image.as_slice()) {
        (&[h, w], &[ih, iw]) => Ok([h as f32, w as f32, ih as f32, iw as f32]),
        _ => Err(cx.fail("sizes must be height and width")),
    }
}

/// Fills the first row with `position(column, row, number in the cell)` and the second with variances.
pub(super) fn place_grid(
    cx: &mut EvalCx<'_>,
    variance: &[f32],
    cell: usize,
    position: impl Fn(f32, f32, usize) -> [f32; 4],
) -> Result<()> {
    let shape = cx.out_shape(0)?;
    let width = cx.ints(0)?.get(1).copied().unwrap_or(0).max(0) as usize;
    let mut out = zeros(&shape)?;
    let (boxes, variances) = out.as_slice_mut::<f32>()?.split_at_mut(shape[1]);
    for (i, b) in boxes.chunks_exact_mut(4).enumerate() {
        let (at, n) = (i / cell, i % cell);
        b.copy_from_slice(&position((at % width) as f32, (at / width) as f32, n));
    }
    let variance = match variance {
        &[] => [0.1; 4],
        &[v] => [v; 4],
        v => std::array::from_fn(|i| v[i]),
    };
    variances.chunks_exact_mut(4).for_each(|v| v.copy_from_slice(&variance));
    put_f32(cx, 0, out)
}
