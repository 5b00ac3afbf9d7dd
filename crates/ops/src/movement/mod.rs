//! Operations that move elements and never compute with them; Col2Im alone adds what meets in one place.

pub(crate) mod axes;
mod slicing;
pub(crate) mod view;

opset! {
    batch_to_space::{BatchToSpace}, broadcast::{Broadcast, BroadcastV1}, col2im::{Col2Im}, concat::{Concat},
    depth_to_space::{DepthToSpace}, extract_image_patches::{ExtractImagePatches}, identity::{Identity},
    pad::{Pad, PadV1}, reshape::{Reshape}, reverse::{Reverse}, reverse_sequence::{ReverseSequence}, roll::{Roll},
    shuffle_channels::{ShuffleChannels}, slice::{Slice}, slice_scatter::{SliceScatter},
    space_to_batch::{SpaceToBatch}, space_to_depth::{SpaceToDepth}, split::{Split}, squeeze::{Squeeze, SqueezeV1},
    strided_slice::{StridedSlice}, tile::{Tile}, transpose::{Transpose}, unsqueeze::{Unsqueeze},
    variadic_split::{VariadicSplit},
}
