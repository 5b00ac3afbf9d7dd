//! The messages of checkpoints.

use crate::wire::{TensorProto, TensorShapeProto};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BundleHeaderProto {
    #[prost(int32, tag = "1")]
    pub(crate) num_shards: i32,
    #[prost(int32, tag = "2")]
    pub(crate) endianness: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BundleEntryProto {
    #[prost(int32, tag = "1")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "3")]
    pub(crate) shard_id: i32,
    #[prost(int64, tag = "4")]
    pub(crate) offset: i64,
    #[prost(int64, tag = "5")]
    pub(crate) size: i64,
    #[prost(fixed32, tag = "6")]
    pub(crate) crc32c: u32,
    #[prost(message, repeated, tag = "7")]
    pub(crate) slices: Vec<TensorSliceProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorSliceProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) extent: Vec<ExtentProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExtentProto {
    #[prost(int64, tag = "1")]
    pub(crate) start: i64,
    #[prost(int64, optional, tag = "2")]
    pub(crate) length: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedTensorSlices {
    #[prost(message, optional, tag = "1")]
    pub(crate) meta: Option<SavedTensorSliceMeta>,
    #[prost(message, optional, tag = "2")]
    pub(crate) data: Option<SavedSlice>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedTensorSliceMeta {
    #[prost(message, repeated, tag = "1")]
    pub(crate) tensor: Vec<SavedSliceMeta>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedSliceMeta {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "3")]
    pub(crate) r#type: i32,
    #[prost(message, repeated, tag = "4")]
    pub(crate) slice: Vec<TensorSliceProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedSlice {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) data: Option<TensorProto>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackableObjectGraph {
    #[prost(message, repeated, tag = "1")]
    pub(crate) nodes: Vec<TrackableObject>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackableObject {
    #[prost(message, repeated, tag = "2")]
    pub(crate) attributes: Vec<SerializedTensor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SerializedTensor {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) full_name: String,
    #[prost(string, tag = "3")]
    pub(crate) checkpoint_key: String,
}
