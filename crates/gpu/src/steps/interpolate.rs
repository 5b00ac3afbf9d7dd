//! Resizing of images by tables of places and weights, in either layout.

use super::pool::{ints, steps};
use super::{Built, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::{Result, normalize_axis};
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{AxisPlan, Interpolate, Mode, plan_axis};
use carafe_plan::Layout;

/// The longest axis that is resized by tables.
const LONGEST: usize = 1 << 20;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<Interpolate>().filter(|_| !site.group && site.epilogue.is_empty()) else {
        return Ok(None);
    };
    let (data, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    if !data.is_f32() || !(3..=5).contains(&data.rank()) || out.shape.contains(&0) || data.shape.contains(&0) {
        return Ok(None);
    }
    let Some(tables) = tables(site, op) else { return Ok(None) };
    let layout = data.layout;
    let (Some((far, channel)), Some((to, channel_to))) = (steps(&data.shape, layout), steps(&out.shape, layout)) else {
        return Ok(None);
    };
    let (channels, ahead) = (out.shape[1], 5 - out.rank());
    let mut dims = vec![out.shape[0]];
    dims.extend(std::iter::repeat_n(1, ahead));
    dims.extend(&out.shape[2..]);
    let mut taps = vec![1];
    taps.extend(tables.iter().map(|t| t.taps));
    let places: Vec<i32> = tables.iter().flat_map(|t| &t.places).copied().collect();
    let weights: Vec<i32> = tables.iter().flat_map(|t| &t.weights).map(|w| w.to_bits() as i32).collect();
    let last = usize::from(layout == Layout::CHANNELS_LAST);
    let kernel = cx.kernel(&Source("resize.cl"), "resize", &[("LAST", last.to_string())])?;
    let mut args = vec![Arg::Read(0), Arg::Write(0), out.len().into()];
    args.extend([ints(&dims), ints(&far), ints(&to), ints(&taps)]);
    args.extend([channel, channel_to, channels].map(Arg::from));
    args.push(super::ending::table(cx, "places", &places)?);
    args.push(super::ending::table(cx, "weights", &weights)?);
    let launch = Launch::flat(&kernel, args, out.len(), cx.group());
    let step = Launches::new("resize", vec![launch]);
    Ok(Some(step.built([(0, cx.form(data, layout))], [cx.form(out, layout)])))
}

/// For each point of the result along an axis as many places, and what they weigh.
struct Table {
    taps: usize,
    places: Vec<i32>,
    weights: Vec<f32>,
}

impl Table {
    fn of(points: &[Vec<(usize, f64)>]) -> Table {
        let taps = points.iter().map(Vec::len).max().unwrap_or(1).max(1);
        let mut table = Table { taps, places: vec![], weights: vec![] };
        for point in points {
            // What is missing weighs nothing.
            let spare = point.first().map_or(0, |t| t.0);
            for k in 0..taps {
                let (place, weight) = point.get(k).copied().unwrap_or((spare, 0.0));
                table.places.push(place as i32);
                table.weights.push(weight as f32);
            }
        }
        table
    }
    fn same(n: usize) -> Table {
        Table { taps: 1, places: (0..n as i32).collect(), weights: vec![1.0; n] }
    }
}

// Depth, height, width; `None` for what is not resized along these alone.
fn tables(site: &Site<'_>, op: &Interpolate) -> Option<[Table; 3]> {
    let (data, out) = (&site.inputs[0].shape, &site.outputs[0].shape);
    let unpadded = op.pads_begin.iter().chain(&op.pads_end).all(|p| *p == 0);
    if !unpadded || out.iter().any(|n| *n > LONGEST) {
        return None;
    }
    let rank = data.len();
    let axes: Vec<usize> = match site.inputs.get(2) {
        None => (0..rank).collect(),
        Some(port) => port.ints()?.into_iter().map(|a| normalize_axis(a, rank).ok()).collect::<Option<_>>()?,
    };
    let mut scales: Vec<f32> = data.iter().zip(out).map(|(&f, &t)| t as f32 / f as f32).collect();
    if op.shape_calculation_mode == ShapeCalculation::Scales {
        let given = site.inputs.get(1)?.floats()?;
        axes.iter().zip(given).for_each(|(&a, s)| scales[a] = s);
    }
    if data[..2] != out[..2] || scales[..2].iter().any(|s| *s != 1.0) {
        return None;
    }
    let shrinks = axes.iter().any(|&a| scales[a] < 1.0);
    let widened = op.antialias && shrinks && op.mode == Mode::Linear;
    let mut tables = [Table::same(1), Table::same(1), Table::same(1)];
    for axis in 2..rank {
        let (from, to) = (data[axis], out[axis]);
        let plan = AxisPlan {
            from,
            to,
            scale: scales[axis],
            mode: op.mode,
            coordinates: op.coordinate_transformation_mode,
            nearest: op.nearest_mode,
            widened,
            cube_coeff: op.cube_coeff,
        };
        tables[5 - rank + axis - 2] = match axes.contains(&axis) {
            true => Table::of(&plan_axis(&plan)?),
            false if from == to => Table::same(from),
            false => return None,
        };
    }
    Some(tables)
}
