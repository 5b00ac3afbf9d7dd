//! Convolutions. ONNX keeps the groups inside of the filters' first axis, we have a group axis in front. An odd pad of a
//! transposed convolution of asked size goes to the other end than in our operation.

use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::PadType;
use carafe_ops::convolution::{
    Convolution, ConvolutionBackpropData, DeformableConvolution, GroupConvolution, GroupConvolutionBackpropData,
};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Conv", 1, conv),
    rule("ConvInteger", 10, conv_integer),
    rule("ConvTranspose", 1, conv_transpose),
    rule("DeformConv", 19, deform_conv),
    rule("QLinearConv", 10, q_linear_conv),
];

/// The attributes that sliding windows share, one value for each spatial axis.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    pub pads_begin: Vec<i64>,
    pub pads_end: Vec<i64>,
    pub auto_pad: PadType,
}

impl Windows {
    /// Reads them; the number of axes comes from `kernel_shape`, else it is the one given.
    pub(super) fn read(n: &NodeCx<'_>, n_spatial: Option<usize>) -> Result<Windows> {
        let kernel: Vec<i64> = n.attr("kernel_shape", vec![])?;
        let auto_pad: String = n.attr("auto_pad", "NOTSET".to_string())?;
        let auto_pad = match auto_pad.as_str() {
            "NOTSET" | "" => PadType::Explicit,
            "SAME_UPPER" => PadType::SameUpper,
            "SAME_LOWER" => PadType::SameLower,
            "VALID" => PadType::Valid,
            other => {
                return Err(n.fail(format!(
                    "attribute `auto_pad` is `{other}`; known are NOTSET, SAME_UPPER, SAME_LOWER, VALID"
                )));
            }
        };
        let Some(axes) = (if kernel.is_empty() { n_spatial } else { Some(kernel.len()) }) else {
            return Err(n.unsupported("the number of spatial axes must be known"));
        };
        // Where the count comes from the length of an input, a file can declare any.
        if axes > 64 {
            return Err(n.fail(format!("{axes} spatial axes are too many")));
        }
        // Larger numbers mean nothing, and sums of these cannot overflow.
        let check = |name: &str, given: &[i64]| match given.iter().find(|v| i32::try_from(**v).is_err()) {
            Some(v) => Err(n.fail(format!("attribute `{name}` holds {v}, which no window can have"))),
            None => Ok(()),
        };
        check("kernel_shape", &kernel)?;
        let list = |name: &str, neutral: i64, len: usize| -> Result<Vec<i64>> {
            let given: Vec<i64> = n.attr(name, vec![])?;
            check(name, &given)?;
            match given.len() {
                0 => Ok(vec![neutral; len]),
                l if l == len => Ok(given),
                _ => Err(n.fail(format!("attribute `{name}` must have {len} values, found {given:?}"))),
            }
        };
        let (strides, dilations) = (list("strides", 1, axes)?, list("dilations", 1, axes)?);
        let pads = list("pads", 0, 2 * axes)?;
        let (mut pads_begin, mut pads_end) = (pads[..axes].to_vec(), pads[axes..].to_vec());
        if auto_pad != PadType::Explicit {
            (pads_begin, pads_end) = (vec![0; axes], vec![0; axes]);
        }
        Ok(Windows { kernel, strides, dilations, pads_begin, pads_end, auto_pad })
    }

    /// As `read`, for filters, which the kernel must fit.
    pub(super) fn of_filters(n: &NodeCx<'_>, filters: Value, x: Value) -> Result<Windows> {
        let windows = Windows::read(n, spatial_rank(n, filters, x))?;
        if let Some(dims) = n.shape(filters).dims().filter(|_| !windows.kernel.is_empty()) {
            let sizes = dims.get(2..).unwrap_or(&[]);
            let fits = sizes.len() == windows.kernel.len()
                && sizes.iter().zip(&windows.kernel).all(|(size, &k)| size.contains(k));
            if !fits {
                let (kernel, shape) = (&windows.kernel, n.shape(filters));
                return Err(n.fail(format!("attribute `kernel_shape` is {kernel:?}, the weights are [{shape}]")));
            }
        }
        Ok(windows)
    }

    pub(super) fn n_spatial(&self) -> usize {
        self.strides.len()
    }

    pub(super) fn convolve(self, n: &mut NodeCx<'_>, x: Value, filters: Value, groups: i64) -> Result<Value> {
        let Windows { strides, dilations, pads_begin, pads_end, auto_pad, .. } = self;
        if groups == 1 {
            return n.emit(Convolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters]);
        }
        let filters = grouped(n, filters, groups)?;
        n.emit(GroupConvolution { strides, pads_begin, pads_end, dilations, auto_pad }, &[x, filters])
    }
}

// The number of spatial axes as filters or data tell it.
fn spatial_rank(n: &NodeCx<'_>, filters: Value, x: Value) -> Option<usize> {
    n.rank(filters).or(n.rank(x)).and_then(|r| r.checked_sub(2))
}

/// The attribute `group`.
pub(super) fn groups(n: &NodeCx<'_>) -> Result<i64> {
    let groups: i64 = n.attr("group", 1)?;
    if groups < 1 {
        return Err(n.fail(format!("attribute `group` must be at least 1, found {groups}")));
    }
    Ok(groups)
}

// [groups * A, B, ...] to [groups, A, B, ...].
fn grouped(n: &mut NodeCx<'_>, filters: Value, groups: i64) -> Result<Value> {
    if let Some(shape) = n.shape(filters).to_static() {
        let mut pattern = vec![groups, -1];
        pattern.extend(shape.iter().skip(1).map(|&d| d as i64));
        if !pattern.contains(&0) {
            return n.reshape(filters, &pattern);
        }
    }
    let shape = n.shape_of(filters)?;
    let rest = n.part(shape, 1, i64::MAX, 0)?;
    let front = n.i64s(&[groups, -1])?;
    let shape = n.concat(&[front, rest], 0)?;
    n.reshaped(filters, shape, false)
}

/// A vector over channels so that it meets the channels of `[N, C, ...]`.
fn per_channel(n: &mut NodeCx<'_>, v: Value, n_spatial: usize) -> Result<Value> {
    let mut pattern = vec![1, -1];
    pattern.extend(vec![1; n_spatial]);
    n.reshape(v, &pattern)
}

/// A vector over output channels so that it meets filters; a single number stays as it is.
fn per_filter(n: &mut NodeCx<'_>, v: Value, n_spatial: usize) -> Result<Value> {
    if n.rank(v) == Some(0) {
        return Ok(v);
    }
    let mut pattern = vec![-1];
    pattern.extend(vec![1; n_spatial + 1]);
    n.reshape(v, &pattern)
}

/// A bias for each channel added to `[N, C, ...]`, where there is one.
pub(super) fn with_bias(n: &mut NodeCx<'_>, y: Value, bias: Option<Value>, n_spatial: usize) -> Result<Value> {
    let Some(bias) = bias else { return Ok(y) };
    let bias = per_channel(n, bias, n_spatial)?;
    n.plus(y, bias)
}

fn conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, w, bias) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let windows = Windows::of_filters(n, w, x)?;
    let (groups, n_spatial) = (groups(n)?, windows.n_spatial());
    let y = windows.convolve(n, x, w, groups)?;
    Ok(with_bias(n, y, bias, n_spatial)?.into())
}

fn conv_transpose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, w, bias) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let windows = Windows::of_filters(n, w, x)?;
    let (groups, axes) = (groups(n)?, windows.n_spatial());
    let mut output_padding: Vec<i64> = n.attr("output_padding", vec![])?;
    if output_padding.is_empty() {
        output_padding = vec![0; axes];
    }
    let asked: Vec<i64> = n.attr("output_shape", vec![])?;
    let same = matches!(windows.auto_pad, PadType::SameUpper | PadType::SameLower);
    // Some files give batch and channels as well.
    let asked = match asked.len().checked_sub(axes) {
        Some(extra) if !asked.is_empty() => Some(n.i64s(&asked[extra..])?),
        None if !asked.is_empty() => {
            return Err(n.fail(format!("attribute `output_shape` must have {axes} values, found {asked:?}")));
        }
        _ if same => {
            let shape = n.shape_of(x)?;
            let shape = n.part(shape, 2, i64::MAX, 0)?;
            let strides = n.i64s(&windows.strides)?;
            Some(n.times(shape, strides)?)
        }
        _ => None,
    };
    let auto_pad = match (&asked, windows.auto_pad) {
        (None, pad) => pad,
        (Some(_), PadType::SameUpper) => PadType::SameLower,
        (Some(_), _) => PadType::SameUpper,
    };
    let Windows { strides, dilations, pads_begin, pads_end, .. } = windows;
    let filters = if groups == 1 { w } else { grouped(n, w, groups)? };
    let mut inputs = vec![x, filters];
    inputs.extend(asked);
    let y = if groups == 1 {
        let op = ConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
        n.emit(op, &inputs)?
    } else {
        let op = GroupConvolutionBackpropData { strides, pads_begin, pads_end, dilations, auto_pad, output_padding };
        n.emit(op, &inputs)?
    };
    Ok(with_bias(n, y, bias, axes)?.into())
}

fn deform_conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, w, offsets) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (bias, mask) = (n.opt(3)?, n.opt(4)?);
    let windows = Windows::of_filters(n, w, x)?;
    let axes = windows.n_spatial();
    let Windows { strides, dilations, pads_begin, pads_end, auto_pad, .. } = windows;
    let op = DeformableConvolution {
        strides,
        pads_begin,
        pads_end,
        dilations,
        auto_pad,
        group: groups(n)?,
        deformable_group: n.attr("offset_group", 1)?,
        bilinear_interpolation_pad: true,
    };
    let mut inputs = vec![x, offsets, w];
    inputs.extend(mask);
    let y = n.emit(op, &inputs)?;
    Ok(with_bias(n, y, bias, axes)?.into())
}

/// `v - zero_point` in another type, where every difference is exact.
pub(super) fn centred(n: &mut NodeCx<'_>, v: Value, zero_point: Option<Value>, ty: ElementType) -> Result<Value> {
    let v = n.convert(v, ty)?;
    let Some(zero_point) = zero_point else { return Ok(v) };
    let zero_point = n.convert(zero_point, ty)?;
    n.minus(v, zero_point)
}

fn conv_integer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, w, x_zero, w_zero) = (n.input(0)?, n.input(1)?, n.opt(2)?, n.opt(3)?);
    let windows = Windows::of_filters(n, w, x)?;
    let w_zero = w_zero.map(|z| per_filter(n, z, windows.n_spatial())).transpose()?;
    let x = centred(n, x, x_zero, ElementType::I32)?;
    let w = centred(n, w, w_zero, ElementType::I32)?;
    let groups = groups(n)?;
    Ok(windows.convolve(n, x, w, groups)?.into())
}

fn q_linear_conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, x_scale, x_zero) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (w, w_scale, w_zero) = (n.input(3)?, n.input(4)?, n.input(5)?);
    let (y_scale, y_zero, bias) = (n.input(6)?, n.input(7)?, n.opt(8)?);
    for (scale, divides) in [(1, false), (4, false), (6, true)] {
        super::quantized::check_scale(n, scale, divides)?;
    }
    let windows = Windows::of_filters(n, w, x)?;
    let (groups, axes) = (groups(n)?, windows.n_spatial());
    for (what, v) in [("scales", w_scale), ("zero points", w_zero)] {
        let filters = n.shape(w).dims().and_then(|dims| dims.first()?.size());
        if let (Some(count), Some(filters)) = (n.shape(v).elements(), filters)
            && count != 1
            && count != filters
        {
            let about = format!("{count} {what} of the weights for {filters} filters");
            return Err(n.fail(format!("{about}; expected one for each, or one for all")));
        }
    }
    let w_zero = per_filter(n, w_zero, axes)?;
    // The scales come last, so that sums of products stay whole numbers.
    let x = centred(n, x, Some(x_zero), ElementType::F32)?;
    let w = centred(n, w, Some(w_zero), ElementType::F32)?;
    let y = windows.convolve(n, x, w, groups)?;
    let bias = bias.map(|b| n.convert(b, ElementType::F32)).transpose()?;
    let y = with_bias(n, y, bias, axes)?;
    let mut scale = n.times(x_scale, w_scale)?;
    scale = n.over(scale, y_scale)?;
    if n.rank(scale) != Some(0) {
        scale = per_channel(n, scale, axes)?;
    }
    let y = n.times(y, scale)?;
    Ok(super::quantized::to_integer(n, y, y_zero)?.into())
}
