//! Pools: the largest number or the mean of windows, in either layout.

use super::{Built, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::source;
use carafe_graph::{Result, normalize_axis};
use carafe_ops::convolution::window::PadType;
use carafe_ops::pooling as ops;
use carafe_plan::{Form, Layout};
use carafe_tensor::ElementType;

/// What all pools have.
struct Window<'a> {
    kernel: &'a [i64],
    strides: &'a [i64],
    dilations: &'a [i64],
    begin: &'a [i64],
    end: &'a [i64],
    auto_pad: PadType,
}

/// The last sizes of a shape as depth, height, width.
fn three(sizes: &[usize]) -> Option<[usize; 3]> {
    let ahead = 3usize.checked_sub(sizes.len())?;
    Some(std::array::from_fn(|i| if i < ahead { 1 } else { sizes[i - ahead] }))
}

// The same of an attribute, whose missing values are neutral.
fn attribute(list: &[i64], n: usize, neutral: i64) -> Option<[usize; 3]> {
    let values = (0..n).map(|i| usize::try_from(list.get(i).copied().unwrap_or(neutral)).ok());
    let values: Vec<usize> = values.collect::<Option<_>>()?;
    let ahead = 3 - n;
    Some(std::array::from_fn(|i| if i < ahead { neutral as usize } else { values[i - ahead] }))
}

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
    macro_rules! window {
        ($p:expr) => {
            Window {
                kernel: &$p.kernel,
                strides: &$p.strides,
                dilations: &$p.dilations,
                begin: &$p.pads_begin,
                end: &$p.pads_end,
                auto_pad: $p.auto_pad,
            }
        };
    }
    if let Some(p) = site.op.get::<ops::MaxPool>() {
        return pooled(site, &window!(p), None, Some(p.axis));
    }
    match site.op.get::<ops::AvgPool>() {
        Some(p) => pooled(site, &window!(p), Some(p.exclude_pad), None),
        None => Ok(None),
    }
}

fn pooled(site: &Site<'_>, window: &Window<'_>, exclude: Option<bool>, axis: Option<i64>) -> Result<Option<Built>> {
    let cx = site.cx;
    let (data, out) = (&site.inputs[0], &site.outputs[0]);
    let places = site.wanted.iter().skip(1).any(|w| *w);
    let layout = if places { Layout::PLAIN } else { data.layout };
    let Some((numbers, padded)) = numbers(&data.shape, &out.shape, window, layout) else { return Ok(None) };
    let mut macros = vec![
        ("MAX", usize::from(exclude.is_none()).to_string()),
        ("ALL", usize::from(exclude == Some(false) && padded).to_string()),
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
        let Some(axis) = axis.and_then(|a| normalize_axis(a, data.rank()).ok()) else { return Ok(None) };
        let counted: usize = data.shape[axis..].iter().product();
        macros.push(("INDEX", index.into()));
        args.extend([Arg::Write(1), counted.into()]);
        outputs.push(Layout::PLAIN.into());
    }
    let kernel = cx.kernel(&source!("pool.cl"), "pool", &macros)?;
    // Next to each other are channels, or points of a line; the latter are what the second axis counts.
    let launch = Launch::plane(&kernel, args, [out.shape[1], rows, 1], cx.group());
    let name = if exclude.is_none() { "pool_max" } else { "pool_mean" };
    Ok(Some(Launches::new(name, vec![launch]).built([(0, cx.form(data, layout))], outputs)))
}

// The numbers of the kernel's arguments, and whether there is padding.
fn numbers(data: &[usize], out: &[usize], window: &Window<'_>, layout: Layout) -> Option<(Vec<usize>, bool)> {
    if data.contains(&0) || out.contains(&0) {
        return None;
    }
    let n = data.len() - 2;
    let (kernel, stride) = (attribute(window.kernel, n, 1)?, attribute(window.strides, n, 1)?);
    let dilation = attribute(window.dilations, n, 1)?;
    let (from, to) = (three(&data[2..])?, three(&out[2..])?);
    let (mut begin, mut padded) = ([0; 3], false);
    for i in 0..3 {
        let reach = (to[i] - 1) * stride[i] + (kernel[i].checked_sub(1)?) * dilation[i] + 1;
        let same = reach.saturating_sub(from[i]);
        let (first, last) = match window.auto_pad {
            PadType::Valid => (0, 0),
            PadType::SameUpper => (same / 2, same - same / 2),
            PadType::SameLower => (same - same / 2, same / 2),
            PadType::Explicit => (attribute(window.begin, n, 0)?[i], attribute(window.end, n, 0)?[i]),
        };
        begin[i] = first;
        padded |= first + last > 0;
    }
    let (far, channel) = steps(data, layout)?;
    let (far_out, channel_out) = steps(out, layout)?;
    let mut all: Vec<usize> = [from, to, stride, begin].concat();
    all.extend(far);
    all.extend([kernel, dilation].concat());
    all.extend([channel, channel_out]);
    all.extend(far_out);
    Some((all, padded))
}
