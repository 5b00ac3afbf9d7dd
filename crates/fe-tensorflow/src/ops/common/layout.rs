//! Where the channels of images stand. Layout-sensitive operations work on channels first; data that has them last is
//! transposed before and after. A later pass moves these transposes together and drops pairs of them.

use carafe_frontend::NodeCx;
use carafe_graph::{Error, Result, Value};

/// Where the channels stand, behind the batch or at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `[N, spatial..., C]`.
    ChannelsLast,
    /// `[N, C, spatial...]`.
    ChannelsFirst,
}

impl Layout {
    /// The layout that TensorFlow's `data_format` names.
    pub fn of_format(format: &str) -> Result<Layout> {
        match format {
            "NHWC" | "NDHWC" | "NWC" => Ok(Layout::ChannelsLast),
            "NCHW" | "NCDHW" | "NCW" => Ok(Layout::ChannelsFirst),
            other => Err(Error::unsupported(format!(
                "attribute `data_format` is `{other}`; known are NHWC, NCHW, NDHWC, NCDHW"
            ))),
        }
    }

    /// The axis of the channels in data of this rank.
    pub fn channels(self, rank: usize) -> usize {
        match self {
            Layout::ChannelsLast => rank.saturating_sub(1),
            Layout::ChannelsFirst => 1.min(rank.saturating_sub(1)),
        }
    }

    /// The axis of the spatial dimension with this number.
    pub fn spatial_axis(self, i: usize) -> usize {
        match self {
            Layout::ChannelsLast => i + 1,
            Layout::ChannelsFirst => i + 2,
        }
    }

    /// The spatial entries of a list with one entry for each axis.
    pub fn spatial(self, list: &[i64]) -> Vec<i64> {
        match self {
            Layout::ChannelsLast => list.get(1..list.len().saturating_sub(1)).unwrap_or(&[]).to_vec(),
            Layout::ChannelsFirst => list.get(2..).unwrap_or(&[]).to_vec(),
        }
    }

    /// Data of this layout with its channels first.
    pub fn to_first(self, n: &mut NodeCx<'_>, v: Value, n_spatial: usize) -> Result<Value> {
        match self {
            Layout::ChannelsFirst => Ok(v),
            Layout::ChannelsLast => {
                let spatial = n_spatial as i64;
                let order: Vec<i64> = [0, spatial + 1].into_iter().chain(1..=spatial).collect();
                n.transpose(v, &order)
            }
        }
    }

    /// Data with its channels first in this layout.
    pub fn from_first(self, n: &mut NodeCx<'_>, v: Value, n_spatial: usize) -> Result<Value> {
        match self {
            Layout::ChannelsFirst => Ok(v),
            Layout::ChannelsLast => {
                let spatial = n_spatial as i64;
                let order: Vec<i64> = [0].into_iter().chain(2..spatial + 2).chain([1]).collect();
                n.transpose(v, &order)
            }
        }
    }
}
