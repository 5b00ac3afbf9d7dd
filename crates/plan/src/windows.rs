//! Sizes of the windows that pools and convolutions go over data with: depth, height and width, whatever number of axes the model has.

use carafe_graph::Op;
use carafe_ops::convolution::window::PadType;
use carafe_ops::pooling::{AvgPool, MaxPool};

/// The attributes that say where windows lie.
#[derive(Clone, Copy, Debug)]
pub struct WindowAttrs<'a> {
    /// Steps between windows.
    pub strides: &'a [i64],
    /// Steps between the elements of a window.
    pub dilations: &'a [i64],
    /// Padding before each axis.
    pub begin: &'a [i64],
    /// Padding after each axis.
    pub end: &'a [i64],
    /// Where the padding comes from.
    pub auto_pad: PadType,
}

/// Windows over data of known size. Axes that the model does not have are 1 long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Size of the data.
    pub input: [usize; 3],
    /// Number of windows.
    pub output: [usize; 3],
    /// Elements of a window.
    pub kernel: [usize; 3],
    /// Steps between windows.
    pub stride: [usize; 3],
    /// Steps between the elements of a window.
    pub dilation: [usize; 3],
    /// Padding before each axis.
    pub pad_begin: [usize; 3],
    /// Whether there is padding at all.
    pub padded: bool,
}

/// The last sizes of a shape as depth, height, width.
pub fn three(sizes: &[usize]) -> Option<[usize; 3]> {
    let ahead = 3usize.checked_sub(sizes.len())?;
    Some(std::array::from_fn(|i| if i < ahead { 1 } else { sizes[i - ahead] }))
}

/// The same of an attribute of `n` axes, whose missing values are neutral.
pub fn attribute(list: &[i64], n: usize, neutral: i64) -> Option<[usize; 3]> {
    let values = (0..n).map(|i| usize::try_from(list.get(i).copied().unwrap_or(neutral)).ok());
    let values: Vec<usize> = values.collect::<Option<_>>()?;
    let ahead = 3usize.checked_sub(n)?;
    Some(std::array::from_fn(|i| if i < ahead { neutral as usize } else { values[i - ahead] }))
}

impl Windows {
    /// Windows of so many elements over data of the shape `data` that give the shape `out`, both with batch and channels in front.
    /// `None` where there is nothing, or where padding is negative.
    pub fn of(attrs: &WindowAttrs<'_>, kernel: &[usize], data: &[usize], out: &[usize]) -> Option<Windows> {
        let n = data.len().checked_sub(2)?;
        let (input, output, kernel) = (three(&data[2..])?, three(out.get(2..)?)?, three(kernel)?);
        let (stride, dilation) = (attribute(attrs.strides, n, 1)?, attribute(attrs.dilations, n, 1)?);
        let (mut pad_begin, mut padded) = ([0; 3], false);
        for i in 0..3 {
            let reach = output[i].checked_sub(1)? * stride[i] + kernel[i].checked_sub(1)? * dilation[i] + 1;
            let same = reach.saturating_sub(input[i]);
            let (begin, end) = match attrs.auto_pad {
                PadType::Valid => (0, 0),
                PadType::SameUpper => (same / 2, same - same / 2),
                PadType::SameLower => (same - same / 2, same / 2),
                PadType::Explicit => (attribute(attrs.begin, n, 0)?[i], attribute(attrs.end, n, 0)?[i]),
            };
            pad_begin[i] = begin;
            padded |= begin + end > 0;
        }
        Some(Windows { input, output, kernel, stride, dilation, pad_begin, padded })
    }

    /// Those of a MaxPool or AvgPool, and of the latter whether padding is left out of the means.
    pub fn of_pool(op: &dyn Op, data: &[usize], out: &[usize]) -> Option<(Windows, Option<bool>)> {
        macro_rules! windows {
            ($p:expr) => {{
                let kernel: Vec<usize> = $p.kernel.iter().map(|&n| usize::try_from(n).ok()).collect::<Option<_>>()?;
                let attrs = WindowAttrs {
                    strides: &$p.strides,
                    dilations: &$p.dilations,
                    begin: &$p.pads_begin,
                    end: &$p.pads_end,
                    auto_pad: $p.auto_pad,
                };
                Windows::of(&attrs, &kernel, data, out)?
            }};
        }
        if let Some(p) = op.get::<MaxPool>() {
            return Some((windows!(p), None));
        }
        let p = op.get::<AvgPool>()?;
        Some((windows!(p), Some(p.exclude_pad)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attrs(auto_pad: PadType) -> WindowAttrs<'static> {
        WindowAttrs { strides: &[2, 2], dilations: &[], begin: &[0, 1], end: &[1, 0], auto_pad }
    }

    #[test]
    fn an_odd_padding_is_larger_where_the_model_says() {
        let of = |pad| Windows::of(&attrs(pad), &[3, 2], &[1, 4, 6, 5], &[1, 4, 3, 3]).unwrap();
        assert_eq!(of(PadType::SameUpper).pad_begin, [0, 0, 0]);
        assert_eq!(of(PadType::SameLower).pad_begin, [0, 1, 1]);
        assert_eq!(of(PadType::Explicit).pad_begin, [0, 0, 1]);
        assert!(of(PadType::SameUpper).padded && !of(PadType::Valid).padded);
    }

    #[test]
    fn axes_that_are_not_there_are_one_long() {
        let line = Windows::of(&attrs(PadType::Valid), &[3], &[1, 4, 7], &[1, 4, 3]).unwrap();
        assert_eq!((line.input, line.kernel, line.stride), ([1, 1, 7], [1, 1, 3], [1, 1, 2]));
    }

    #[test]
    fn negative_padding_and_no_windows_are_none() {
        let negative = WindowAttrs { begin: &[-1, 0], ..attrs(PadType::Explicit) };
        assert_eq!(Windows::of(&negative, &[1, 1], &[1, 1, 4, 4], &[1, 1, 2, 2]), None);
        assert_eq!(Windows::of(&attrs(PadType::Valid), &[1, 1], &[1, 1, 0, 4], &[1, 1, 0, 2]), None);
    }
}
