//! Sizes and pads of sliding windows, for convolutions and pooling alike. Attribute lists may be empty, which means the
//! neutral value on every axis; pads in a file count only when `auto_pad` is `explicit`.

use carafe_graph::{Error, Result};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// Where the pads of a window come from.
    pub enum PadType {
        /// The attributes `pads_begin` and `pads_end`.
        Explicit = "explicit" | "notset",
        /// As many as keep `ceil(size / stride)` outputs, an odd one at the end.
        SameUpper = "same_upper",
        /// As `SameUpper`, an odd one at the begin.
        SameLower = "same_lower",
        /// None.
        Valid = "valid",
    }
}

carafe_graph::attr_enum! {
    /// What happens to a last window that does not fit.
    pub enum Rounding {
        /// It is dropped.
        Floor = "floor",
        /// It is kept.
        Ceil = "ceil",
        /// It is kept unless it would begin in the end padding.
        CeilTorch = "ceil_torch",
    }
}

/// Attributes larger than this are refused, so that sums of them cannot overflow.
const LARGEST: i64 = i32::MAX as i64;

/// The window attributes of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window<'a> {
    pub strides: &'a [i64],
    pub dilations: &'a [i64],
    pub pads_begin: &'a [i64],
    pub pads_end: &'a [i64],
    pub auto_pad: PadType,
    pub rounding: Rounding,
}

/// A window on one axis of known size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub kernel: i64,
    pub stride: i64,
    pub dilation: i64,
    /// May be negative, which crops.
    pub pad_begin: i64,
    pub pad_end: i64,
}

impl Axis {
    /// An axis the window does not move on.
    pub(crate) const UNIT: Axis = Axis { kernel: 1, stride: 1, dilation: 1, pad_begin: 0, pad_end: 0 };

    /// Size of the window with its holes.
    pub(crate) fn extent(&self) -> i64 {
        dilated(self.kernel, self.dilation)
    }

    fn windows(&self, n: i64, rounding: Rounding) -> i64 {
        let free = n.saturating_add(self.pad_begin + self.pad_end).saturating_sub(self.extent()).max(0);
        let floor = free / self.stride + 1;
        match rounding {
            Rounding::Floor => floor,
            _ if free % self.stride == 0 => floor,
            Rounding::Ceil => floor + 1,
            // The extra window begins at floor * stride, counted from the begin padding.
            Rounding::CeilTorch if floor.saturating_mul(self.stride) >= n.saturating_add(self.pad_begin) => floor,
            Rounding::CeilTorch => floor + 1,
        }
    }
}

fn dilated(kernel: i64, dilation: i64) -> i64 {
    kernel.saturating_sub(1).saturating_mul(dilation).saturating_add(1)
}

fn at(list: &[i64], i: usize, neutral: i64) -> i64 {
    list.get(i).copied().unwrap_or(neutral)
}

impl Window<'_> {
    /// Number of axes that the attributes speak of, if they do.
    pub(crate) fn rank(&self) -> Option<usize> {
        [self.strides, self.dilations, self.pads_begin, self.pads_end].iter().map(|l| l.len()).find(|&n| n > 0)
    }

    /// Refuses lists of the wrong length and values no window can have.
    pub(crate) fn check(&self, n_spatial: usize) -> Result<()> {
        let lists = [
            ("strides", self.strides, 1),
            ("dilations", self.dilations, 1),
            ("pads_begin", self.pads_begin, -LARGEST),
            ("pads_end", self.pads_end, -LARGEST),
        ];
        for (name, list, least) in lists {
            check_list(name, list, least, n_spatial)?;
        }
        Ok(())
    }

    /// The window on axis `i` of size `n` with the pads it really has.
    pub(crate) fn axis(&self, i: usize, n: i64, kernel: i64) -> Axis {
        let (stride, dilation) = (at(self.strides, i, 1), at(self.dilations, i, 1));
        let axis = Axis { kernel, stride, dilation, ..Axis::UNIT };
        let same = |extra_at_end: bool| {
            let covered = (n.div_ceil_positive(stride) - 1).saturating_mul(stride).saturating_add(axis.extent());
            let total = covered.saturating_sub(n).max(0);
            let (less, more) = (total / 2, total - total / 2);
            if extra_at_end { (less, more) } else { (more, less) }
        };
        let (pad_begin, pad_end) = match self.auto_pad {
            PadType::Explicit => (at(self.pads_begin, i, 0), at(self.pads_end, i, 0)),
            PadType::Valid => (0, 0),
            PadType::SameUpper => same(true),
            PadType::SameLower => same(false),
        };
        Axis { pad_begin, pad_end, ..axis }
    }

    /// Number of windows on axis `i`. Grows with the data and shrinks with the kernel, so the ends of both intervals give
    /// the ends of the result; data that may be too small counts as one window.
    pub(crate) fn windows(&self, i: usize, data: Dim, kernel: Dim) -> Result<Dim> {
        let stride = at(self.strides, i, 1);
        let same = matches!(self.auto_pad, PadType::SameUpper | PadType::SameLower);
        if same && self.rounding == Rounding::Floor {
            return Ok(data.ceil_div(stride));
        }
        if kernel.max().is_some_and(|k| k < 1) {
            return Err(Error::invalid(format!("kernel must be at least 1 on axis {i}, found {kernel}")));
        }
        if let (Some(n), Some(k)) = (data.max(), kernel.get()) {
            let axis = self.axis(i, n, k);
            let padded = n.saturating_add(axis.pad_begin + axis.pad_end);
            if axis.extent() > padded {
                return Err(Error::invalid(format!(
                    "window of {} does not fit into {padded} (data {data} with pads {} and {}) on axis {i}",
                    axis.extent(),
                    axis.pad_begin,
                    axis.pad_end,
                )));
            }
        }
        if same && !data.is_known() {
            // Pads differ from size to size; rounding up adds at most one window to ceil(size / stride).
            let least = data.ceil_div(stride);
            return Ok(Dim::range(least.min(), least.max().map(|m| m.saturating_add(1))));
        }
        let count = |n: i64, k: i64| self.axis(i, n, k).windows(n, self.rounding);
        if stride == 1 && kernel.is_known() {
            let axis = self.axis(i, data.min(), kernel.min());
            // The size stays, so the symbol does too; no data at all would leave no room for a window.
            if axis.pad_begin + axis.pad_end + 1 == axis.extent() {
                return Ok(data.merge(Dim::range(1, None)).unwrap_or(data));
            }
        }
        Ok(match (data.get(), kernel.get()) {
            (Some(n), Some(k)) => Dim::known(count(n, k)),
            _ => {
                let least = kernel.max().map_or(1, |k| count(data.min(), k));
                Dim::range(least, data.max().map(|n| count(n, kernel.min().max(1))))
            }
        })
    }

    /// [`Self::windows`] for all spatial axes, the last ones of both shapes.
    pub(crate) fn all_windows(&self, data: &PartialShape, kernel: &PartialShape, n_spatial: usize) -> Result<Vec<Dim>> {
        (0..n_spatial).map(|i| self.windows(i, spatial(data, i, n_spatial), spatial(kernel, i, n_spatial))).collect()
    }
}

/// Refuses a list that has another length than `n_spatial` (and is not empty) or holds a value out of bounds.
pub(crate) fn check_list(name: &str, list: &[i64], least: i64, n_spatial: usize) -> Result<()> {
    if !list.is_empty() && list.len() != n_spatial {
        return Err(Error::invalid(format!(
            "attribute `{name}` must have {n_spatial} values, one for each spatial axis, found {list:?}"
        )));
    }
    match list.iter().find(|&&v| v < least || v > LARGEST) {
        Some(v) => Err(Error::invalid(format!("attribute `{name}` must be from {least} to {LARGEST}, found {v}"))),
        None => Ok(()),
    }
}

/// Dimension of spatial axis `i`, counted from the end of the shape; any when the rank is unknown.
pub(crate) fn spatial(shape: &PartialShape, i: usize, n_spatial: usize) -> Dim {
    shape.rank().and_then(|r| (r + i).checked_sub(n_spatial)).map_or(Dim::ANY, |axis| shape.dim(axis))
}

trait DivCeil {
    fn div_ceil_positive(self, d: i64) -> i64;
}

impl DivCeil for i64 {
    // Both are positive here, or the number is 0.
    fn div_ceil_positive(self, d: i64) -> i64 {
        self / d + i64::from(self % d != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(pads: [i64; 2], stride: i64, auto_pad: PadType, rounding: Rounding) -> (Vec<[i64; 1]>, PadType, Rounding) {
        (vec![[stride], [pads[0]], [pads[1]]], auto_pad, rounding)
    }

    fn count(w: &(Vec<[i64; 1]>, PadType, Rounding), n: &str, kernel: i64) -> String {
        let w = Window {
            strides: &w.0[0],
            dilations: &[],
            pads_begin: &w.0[1],
            pads_end: &w.0[2],
            auto_pad: w.1,
            rounding: w.2,
        };
        w.windows(0, n.parse().unwrap(), Dim::known(kernel)).map_or_else(|e| e.to_string(), |d| d.to_string())
    }

    #[test]
    fn rounding_decides_about_the_last_window() {
        let with = |r| window([1, 1], 3, PadType::Explicit, r);
        assert_eq!(count(&with(Rounding::Floor), "5", 2), "2");
        assert_eq!(count(&with(Rounding::Ceil), "5", 2), "3");
        assert_eq!(count(&with(Rounding::CeilTorch), "5", 2), "2");
    }

    #[test]
    fn intervals_give_intervals() {
        let w = window([0, 0], 2, PadType::Explicit, Rounding::Floor);
        assert_eq!(count(&w, "?", 3), "1..");
        assert_eq!(count(&w, "2..9", 3), "1..4");
        assert_eq!(count(&window([1, 1], 1, PadType::Explicit, Rounding::Floor), "4..9", 3), "4..9");
        assert_eq!(count(&window([0, 0], 2, PadType::SameUpper, Rounding::Floor), "4..9", 3), "2..5");
        assert_eq!(count(&window([0, 0], 2, PadType::SameUpper, Rounding::Ceil), "4..9", 1), "2..6");
    }

    #[test]
    fn a_window_that_cannot_fit_is_an_error() {
        let w = window([0, 1], 1, PadType::Explicit, Rounding::Floor);
        assert_eq!(count(&w, "2", 4), "window of 4 does not fit into 3 (data 2 with pads 0 and 1) on axis 0");
        assert_eq!(count(&w, "1..2", 4), "window of 4 does not fit into 3 (data 1..2 with pads 0 and 1) on axis 0");
    }

    #[test]
    fn same_pads_put_the_odd_one_where_named() {
        let w = |auto_pad| Window {
            strides: &[2],
            dilations: &[],
            pads_begin: &[9],
            pads_end: &[9],
            auto_pad,
            rounding: Rounding::Floor,
        };
        let pads = |auto_pad| {
            let a = w(auto_pad).axis(0, 6, 3);
            (a.pad_begin, a.pad_end)
        };
        assert_eq!(pads(PadType::SameUpper), (0, 1));
        assert_eq!(pads(PadType::SameLower), (1, 0));
        assert_eq!(pads(PadType::Valid), (0, 0));
    }

    #[test]
    fn bad_lists_are_refused() {
        let w = Window {
            strides: &[0],
            dilations: &[],
            pads_begin: &[],
            pads_end: &[],
            auto_pad: PadType::Explicit,
            rounding: Rounding::Floor,
        };
        assert!(w.check(1).unwrap_err().to_string().contains("attribute `strides` must be from 1"));
        assert!(w.check(2).unwrap_err().to_string().contains("must have 2 values"));
    }
}
