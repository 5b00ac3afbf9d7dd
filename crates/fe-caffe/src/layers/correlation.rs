//! Correlation and Correlation1D of FlowNet: patches of one image with those of the other around the same position, one channel
//! for each shift. Composed: a product or a difference for every shift, averaged over channels, then over the patch.

use super::cx::LayerCx;
use super::numbers::{dim, part};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::math::Abs;
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::pooling::AvgPool;
use carafe_ops::reduce::ReduceMean;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Correlation", 0, |n| correlation(n, true)),
    rule("Correlation1D", 0, |n| correlation(n, false)),
];

/// More shifts than any network has.
const MOST_SHIFTS: i64 = 4096;

fn correlation(n: &mut NodeCx<'_>, vertical: bool) -> Result<Outputs> {
    let [a, b] = n.bottoms_of()?;
    let (pad, kernel, most): (i64, i64, i64) =
        (n.attr("pad", 0)?, n.required("kernel_size")?, n.required("max_displacement")?);
    let (step, shift): (i64, i64) = (n.attr("stride_1", 1)?, n.attr("stride_2", 1)?);
    let kind: String = n.attr("correlation_type", "MULTIPLY".to_string())?;
    let subtract = match kind.as_str() {
        "MULTIPLY" => false,
        "SUBTRACT" => true,
        other => return Err(n.fail(format!("`correlation_type` must be MULTIPLY or SUBTRACT, found {other}"))),
    };
    if n.attr("do_abs", false)? || n.attr::<i64>("single_direction", 0)? != 0 {
        return Err(n.unsupported("`do_abs` and `single_direction` are not supported"));
    }
    let small = 0..=1 << 16;
    if ![pad, kernel, most, step, shift].iter().all(|v| small.contains(v)) || kernel % 2 == 0 || step < 1 || shift < 1 {
        return Err(n.fail(format!(
            "`kernel_size` {kernel} must be odd, steps {step} and {shift} positive, pad {pad} and shift {most} sizes"
        )));
    }
    let reach = most / shift;
    let shifts = (2 * reach + 1) * if vertical { 2 * reach + 1 } else { 1 };
    if shifts > MOST_SHIFTS {
        return Err(n.unsupported(format!("{shifts} shifts are more than {MOST_SHIFTS}")));
    }
    let pads = [if vertical { pad } else { 0 }, pad];
    let mosts = [if vertical { most } else { 0 }, most];
    for i in 0..2 {
        if let Some(size) = dim(n, a, i + 2).filter(|size| size + 2 * (pads[i] - mosts[i] - (kernel - 1) / 2) < 1) {
            return Err(n.fail(format!("an axis of {size} leaves no room for shifts of {most}")));
        }
    }
    let padding = n.i64s(&[0, 0, pads[0], pads[1]])?;
    let zero = n.scalar_like(a, 0.0)?;
    let mut padded = vec![];
    for x in [a, b] {
        padded.push(match pad {
            0 => x,
            _ => n.emit(Pad { pad_mode: PadMode::Constant }, &[x, padding, padding, zero])?,
        });
    }
    // Single pixels are picked at once; patches need all pixels between.
    let each = if kernel == 1 { step } else { 1 };
    // What is left behind the patches of a shift, counted from the end, so that it holds for images of any size.
    let stops = |starts: [i64; 2]| {
        [0, 1].map(|i: usize| match 2 * mosts[i] - starts[i] {
            0 => i64::MAX,
            behind => -behind,
        })
    };
    let still = part(n, padded[0], &[2, 3], &mosts, &stops(mosts), &[each; 2])?;
    let axis = n.i64s(&[1])?;
    let mut planes = vec![];
    for dy in if vertical { -reach..=reach } else { 0..=0 } {
        for dx in -reach..=reach {
            let starts = [mosts[0] + dy * shift, mosts[1] + dx * shift];
            let moved = part(n, padded[1], &[2, 3], &starts, &stops(starts), &[each; 2])?;
            let met = match subtract {
                true => {
                    let difference = n.minus(still, moved)?;
                    n.emit(Abs, &[difference])?
                }
                false => n.times(still, moved)?,
            };
            planes.push(n.emit(ReduceMean { keep_dims: true }, &[met, axis])?);
        }
    }
    let all = n.concat(&planes, 1)?;
    if kernel == 1 {
        return Ok(all.into());
    }
    let op = AvgPool {
        dilations: vec![1, 1],
        strides: vec![step; 2],
        pads_begin: vec![0, 0],
        pads_end: vec![0, 0],
        kernel: vec![kernel; 2],
        exclude_pad: true,
        auto_pad: PadType::Explicit,
        rounding_type: Rounding::Floor,
    };
    Ok(n.emit(op, &[all])?.into())
}
