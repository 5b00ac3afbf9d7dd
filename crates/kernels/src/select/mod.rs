//! Choosing and counting: the best elements of rows, boxes that do not overlap, positions that are not zero, running sums,
//! marked positions, sequences, different elements.

mod best;
mod cum_sum;
mod fill;
mod nms;
mod nms_boxes;
mod non_zero;
mod number;
mod top_k;
mod unique;

pub use cum_sum::CumSum;
pub use fill::{OneHot, range};
pub use nms::{Nms, NmsLimits, NmsWork, Selected};
pub use nms_boxes::BoxEncoding;
pub use non_zero::{NonZero, NonZeroCounts};
pub use number::Number;
pub use top_k::{Sort, TopK};
pub use unique::Unique;
