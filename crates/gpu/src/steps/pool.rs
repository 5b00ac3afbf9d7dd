//! Pools: the largest number or the mean of windows, in either layout.

use super::{Built, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::{Result, normalize_axis};
use carafe_ops::pooling::MaxPool;
use carafe_plan::windows::three;
use carafe_plan::{Form, Layout, Windows};
use carafe_tensor::ElementType;

/// Strides of images, planes, lines and points, and of channels, of a value that lies in a layout.
pub(super) fn steps(shape: &[usize], layout: Layout) -> Option<([usize; 4], usize)> {
    let (channels, [d, h, w]) = (shape[1], three(&shape[2..])?);
    let (point, channel) = if layout == Layout::CHANNELS_LAST { (channels, 1) } else { (1, d * h * w) };
    Some(([d * h * w * channels, h * w * point, w * point, point], channel))
}

pub(super) fn ints(numbers: &[usize]) -> Arg {
    Arg::Value(numbers.iter().flat_map(|&n| (n as i32).to_ne_bytes()).collect())
}

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let fits = !site.group && site.epilogue.is_empty() && (3..=5).contains(&site.inputs[0].rank());
    if !fits || !site.inputs[0].is_f32() {
        return Ok(None);
    }
    let (data, out) = (&site.inputs[0].shape, &site.outputs[0].shape);
    if data.contains(&0) || out.contains(&0) {
        return Ok(None);
    }
    match Windows::of_pool(site.op, data, out) {
        Some((windows, exclude)) => pooled(site, &windows, exclude),
        None => Ok(None),
    }
}

fn pooled(site: &Site<'_>, windows: &Windows, exclude: Option<bool>) -> Result<Option<Built>> {
    let cx = site.cx;
    let (data, out) = (&site.inputs[0], &site.outputs[0]);
    let places = site.wanted.iter().skip(1).any(|w| *w);
    let layout = if places { Layout::PLAIN } else { data.layout };
    let Some(numbers) = numbers(&data.shape, &out.shape, windows, layout) else { return Ok(None) };
    let mut macros = vec![
        ("MAX", usize::from(exclude.is_none()).to_string()),
        ("ALL", usize::from(exclude == Some(false) && windows.padded).to_string()),
        ("PLACES", usize::from(places).to_string()),
    ];
    let rows = out.len() / out.shape[1];
    let mut args = vec![Arg::Read(0), Arg::Write(0), rows.into(), out.shape[1].into()];
    args.extend([ints(&numbers[..16]), ints(&numbers[16..24]), ints(&numbers[24..])]);
    let mut outputs: Vec<Form> = vec![cx.form(out, layout)];
    if places {
        let index = match site.outputs[1].ty {
            ElementType::I32 => "int",
            ElementType::I64 => "long",
            _ => return Ok(None),
        };
        let axis = site.op.get::<MaxPool>().and_then(|p| normalize_axis(p.axis, data.rank()).ok());
        let Some(axis) = axis else { return Ok(None) };
        let counted: usize = data.shape[axis..].iter().product();
        macros.push(("INDEX", index.into()));
        args.extend([Arg::Write(1), counted.into()]);
        outputs.push(Layout::PLAIN.into());
    }
    let kernel = cx.kernel(&Source("pool.cl"), "pool", &macros)?;
    // Next to each other are channels, or points of a line; the latter are what the second axis counts.
    let launch = Launch::plane(&kernel, args, [out.shape[1], rows, 1], cx.group());
    let name = if exclude.is_none() { "pool_max" } else { "pool_mean" };
    Ok(Some(Launches::new(name, vec![launch]).built([(0, cx.form(data, layout))], outputs)))
}

// The numbers of the kernel's arguments.
fn numbers(data: &[usize], out: &[usize], windows: &Windows, layout: Layout) -> Option<Vec<usize>> {
    let (far, channel) = steps(data, layout)?;
    let (far_out, channel_out) = steps(out, layout)?;
    let mut all: Vec<usize> = [windows.input, windows.output, windows.stride, windows.pad_begin].concat();
    all.extend(far);
    all.extend([windows.kernel, windows.dilation].concat());
    all.extend([channel, channel_out]);
    all.extend(far_out);
    Some(all)
}
