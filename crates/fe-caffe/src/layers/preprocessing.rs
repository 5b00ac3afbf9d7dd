//! DataAugmentation and PowerFile. At test time the first takes the middle of the image and subtracts a mean: of the channels,
//! of the pixels, or as the net says it. PowerFile adds numbers of a file that is no part of the model.

use super::cx::LayerCx;
use super::numbers::{known_size, list, size};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Slice;
use carafe_ops::reduce::ReduceMean;

pub(crate) const RULES: &[StaticRule] =
    &[rule("DataAugmentation", 0, data_augmentation), rule("PowerFile", 0, power_file)];

/// What matters when training alone.
const TRAINING: &[&str] = &[
    "augment_during_test",
    "bottomheight",
    "bottomwidth",
    "chromatic_eigvec",
    "max_multiplier",
    "mode",
    "num",
    "recompute_mean",
    "write_augmented",
    "write_mean",
];

fn data_augmentation(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.bottom()?;
    n.ignore(TRAINING);
    let mean = list(n, "mean")?;
    let by_pixel: bool = n.attr("mean_per_pixel", true)?;
    let (height, width): (Option<i64>, Option<i64>) = (n.opt_attr("crop_height")?, n.opt_attr("crop_width")?);
    if let Some((h, w)) = height.zip(width).filter(|(h, w)| *h > 0 && *w > 0) {
        if let Some(size) = known_size(n, x).ok().filter(|size| h > size[0] || w > size[1]) {
            return Err(n.fail(format!("a crop of {h} x {w} is larger than the image of {size:?}")));
        }
        let (whole, wanted) = (size(n, x)?, n.i64s(&[h, w])?);
        let (room, two) = (n.minus(whole, wanted)?, n.i64s(&[2])?);
        let start = n.over(room, two)?;
        let stop = n.plus(start, wanted)?;
        let (steps, axes) = (n.i64s(&[1, 1])?, n.i64s(&[2, 3])?);
        x = n.emit(Slice, &[x, start, stop, steps, axes])?;
    }
    let mean = match (n.n_blobs()?, by_pixel) {
        (0..3, _) if mean.is_empty() => return Ok(x.into()),
        (0..3, _) => n.floats(&[1, mean.len(), 1, 1], &mean)?,
        (_, false) => {
            let channels = n.blob_tensor(2)?.len();
            n.blob(2, &[1, channels, 1, 1])?
        }
        (_, true) => pixel_mean(n, x)?,
    };
    Ok(n.minus(x, mean)?.into())
}

// A mean of another size counts as that of its channels.
fn pixel_mean(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let stored = n.blob_tensor(1)?;
    let &[.., channels, h, w] = stored.shape() else {
        return Err(n.fail(format!("the mean must be an image, found {:?}", stored.shape())));
    };
    let mean = n.blob(1, &[1, channels, h, w])?;
    if known_size(n, x)? == [h as i64, w as i64] {
        return Ok(mean);
    }
    let axes = n.i64s(&[2, 3])?;
    n.emit(ReduceMean { keep_dims: true }, &[mean, axes])
}

fn power_file(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    match n.opt_attr::<String>("shift_file")?.filter(|f| !f.is_empty()) {
        None => Ok(x.into()),
        Some(file) => Err(n.unsupported(format!(
            "adds the numbers of `{file}`, a file beside the model that is not read; write them into the net as the blob of a \
             Bias layer"
        ))),
    }
}
