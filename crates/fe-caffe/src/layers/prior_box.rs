//! PriorBox and PriorBoxClustered: anchors of SSD. A grid whose steps differ by axis has no attribute in PriorBox; its boxes
//! are listed and become those of PriorBoxClustered, which has both steps. Sizes of the image given by the layer take the
//! position of those of the second bottom in PriorBox alone.

use super::cx::LayerCx;
use super::numbers::{list, size};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::detection::{PriorBox, PriorBoxClustered};

pub(crate) const RULES: &[StaticRule] =
    &[rule("PriorBox", 0, prior_box), rule("PriorBoxClustered", 0, prior_box_clustered)];

/// What both kinds have.
struct Grid {
    sizes: [Value; 2],
    /// Vertical and horizontal; 0 where the layer says nothing.
    steps: [f32; 2],
    offset: f32,
    clip: bool,
    variance: Vec<f32>,
}

impl Grid {
    fn read(n: &mut NodeCx<'_>, given: Option<[i64; 2]>) -> Result<Grid> {
        let [layer, image] = n.bottoms_of()?;
        let variance = list(n, "variance")?;
        if !matches!(variance.len(), 0 | 1 | 4) || variance.iter().any(|v| v.is_nan() || *v <= 0.0) {
            return Err(n.fail(format!("`variance` must be one or four positive numbers, found {variance:?}")));
        }
        let image = match given {
            Some([h, w]) if h < 1 || w < 1 => return Err(n.fail(format!("an image of {h} x {w} cannot be"))),
            Some(given) => n.i64s(&given)?,
            None => size(n, image)?,
        };
        let step: f32 = n.attr("step", 0.0)?;
        let or_step = |v: f32| if v == 0.0 { step } else { v };
        let (step_h, step_w) = (n.attr("step_h", 0.0)?, n.attr("step_w", 0.0)?);
        Ok(Grid {
            sizes: [size(n, layer)?, image],
            steps: [or_step(step_h), or_step(step_w)],
            offset: n.attr("offset", 0.5)?,
            clip: n.attr("clip", false)?,
            variance: if variance.is_empty() { vec![0.1] } else { variance },
        })
    }

    fn clustered(&self, n: &mut NodeCx<'_>, width: Vec<f32>, height: Vec<f32>) -> Result<Outputs> {
        let op = PriorBoxClustered {
            width,
            height,
            clip: self.clip,
            step: 0.0,
            step_w: self.steps[1],
            step_h: self.steps[0],
            offset: self.offset,
            variance: self.variance.clone(),
        };
        let boxes = n.emit(op, &self.sizes)?;
        Ok(n.unsqueeze(boxes, &[0])?.into())
    }
}

// The size that an image has for the layer, whatever its second bottom has.
fn image_size(n: &NodeCx<'_>) -> Result<Option<[i64; 2]>> {
    let both: Option<i64> = n.opt_attr("img_size")?;
    let (h, w): (Option<i64>, Option<i64>) = (n.opt_attr("img_h")?, n.opt_attr("img_w")?);
    match (both.filter(|s| *s != 0), h.filter(|s| *s != 0), w.filter(|s| *s != 0)) {
        (None, None, None) => Ok(None),
        (Some(s), None, None) => Ok(Some([s, s])),
        (None, Some(h), Some(w)) => Ok(Some([h, w])),
        _ => Err(n.fail("has either `img_size` or both `img_h` and `img_w`")),
    }
}

fn prior_box_clustered(n: &mut NodeCx<'_>) -> Result<Outputs> {
    // Everybody who has this layer takes the size of the second bottom, whatever else is written.
    let grid = Grid::read(n, None)?;
    let (width, height) = (list(n, "width")?, list(n, "height")?);
    n.ignore(&["flip", "img_size", "img_h", "img_w"]);
    if width.is_empty() || width.len() != height.len() {
        let (w, h) = (width.len(), height.len());
        return Err(n.fail(format!("needs as many `width` as `height`, found {w} and {h}")));
    }
    grid.clustered(n, width, height)
}

fn prior_box(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let given = image_size(n)?;
    let grid = Grid::read(n, given)?;
    let (min_size, max_size) = (list(n, "min_size")?, list(n, "max_size")?);
    let aspect_ratio = list(n, "aspect_ratio")?;
    let flip: bool = n.attr("flip", true)?;
    let (fixed_size, fixed_ratio, density) = (list(n, "fixed_size")?, list(n, "fixed_ratio")?, list(n, "density")?);
    if min_size.is_empty() && fixed_size.is_empty() {
        return Err(n.fail("needs `min_size`"));
    }
    if !max_size.is_empty() && max_size.len() != min_size.len() {
        let (least, most) = (min_size.len(), max_size.len());
        return Err(n.fail(format!("needs as many `max_size` as `min_size`, found {most} and {least}")));
    }
    // Boxes are counted by `aspect_ratio` and placed by `fixed_ratio`, in Caffe as in the operation.
    let counted = ratios(&aspect_ratio, flip).len();
    if !fixed_size.is_empty() && !fixed_ratio.is_empty() && fixed_ratio.len() != counted {
        let cells: Vec<f32> = density.iter().map(|d| d * d).collect();
        let placed = cells.iter().sum::<f32>() * fixed_ratio.len() as f32;
        let room = placed + fixed_size.len() as f32 * (counted as f32 - fixed_ratio.len() as f32);
        return Err(n.unsupported(format!(
            "{} of `fixed_ratio` position {placed} boxes a cell, the shape of its top has room for {room}: boxes are counted by \
             `aspect_ratio`, which makes {counted} (1 always, and those that `flip` adds); let it make as many as there are \
             of `fixed_ratio`, the boxes stay the same",
            fixed_ratio.len()
        )));
    }
    if grid.steps[0] != grid.steps[1] {
        if !fixed_size.is_empty() {
            return Err(n.unsupported("`fixed_size` with steps that differ by axis is not supported"));
        }
        let (width, height) = shapes(&min_size, &max_size, &aspect_ratio, flip);
        return grid.clustered(n, width, height);
    }
    let op = PriorBox {
        min_size,
        max_size,
        aspect_ratio,
        flip,
        clip: grid.clip,
        step: grid.steps[0],
        offset: grid.offset,
        variance: grid.variance,
        scale_all_sizes: true,
        fixed_ratio,
        fixed_size,
        density,
        min_max_aspect_ratios_order: true,
    };
    let boxes = n.emit(op, &grid.sizes)?;
    Ok(n.unsqueeze(boxes, &[0])?.into())
}

// Different ratios, 1 the first of them.
fn ratios(aspect_ratio: &[f32], flip: bool) -> Vec<f32> {
    let mut ratios: Vec<f32> = vec![1.0];
    for &ratio in aspect_ratio {
        if ratios.iter().all(|r| (ratio - r).abs() >= 1e-6) {
            ratios.push(ratio);
            if flip {
                ratios.push(1.0 / ratio);
            }
        }
    }
    ratios
}

// Widths and heights of the boxes of a cell: the square, the one between least and most, then the ratios.
fn shapes(min_size: &[f32], max_size: &[f32], aspect_ratio: &[f32], flip: bool) -> (Vec<f32>, Vec<f32>) {
    let ratios = ratios(aspect_ratio, flip);
    let mut sizes = vec![];
    for (i, &least) in min_size.iter().enumerate() {
        sizes.push((least, least));
        sizes.extend(max_size.get(i).map(|most| (least * most).sqrt()).map(|side| (side, side)));
        sizes.extend(ratios.iter().skip(1).map(|r| (least * r.sqrt(), least / r.sqrt())));
    }
    sizes.into_iter().unzip()
}
