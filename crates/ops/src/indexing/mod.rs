//! Operations that read or write elements by index.

mod scatter;
pub use scatter::Reduction;

opset! {
    gather::{Gather, GatherV1, GatherV7}, gather_elements::{GatherElements}, gather_nd::{GatherND, GatherNDV5},
    gather_tree::{GatherTree}, non_zero::{NonZero}, one_hot::{OneHot, OneHotV1},
    scatter_elements_update::{ScatterElementsUpdate, ScatterElementsUpdateV3},
    scatter_nd_update::{ScatterNDUpdate, ScatterNDUpdateV4}, scatter_update::{ScatterUpdate},
    segment_max::{SegmentMax}, select::{Select}, sparse_fill_empty_rows::{SparseFillEmptyRows},
}
