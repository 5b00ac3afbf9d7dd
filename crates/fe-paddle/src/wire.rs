//! The protobuf messages of a program, as far as a reader needs them. Field numbers are those of Paddle's `framework.proto`.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProgramDesc {
    #[prost(message, repeated, tag = "1")]
    pub(crate) blocks: Vec<BlockDesc>,
    #[prost(message, optional, tag = "4")]
    pub(crate) version: Option<Version>,
    #[prost(message, optional, tag = "5")]
    pub(crate) op_version_map: Option<OpVersionMap>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Version {
    #[prost(int64, tag = "1")]
    pub(crate) version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpVersionMap {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pair: Vec<OpVersionPair>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpVersionPair {
    #[prost(string, tag = "1")]
    pub(crate) op_name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) op_version: Option<OpVersion>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpVersion {
    #[prost(int32, tag = "1")]
    pub(crate) version: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BlockDesc {
    #[prost(int32, tag = "1")]
    pub(crate) idx: i32,
    #[prost(int32, tag = "2")]
    pub(crate) parent_idx: i32,
    #[prost(message, repeated, tag = "3")]
    pub(crate) vars: Vec<VarDesc>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) ops: Vec<OpDesc>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpDesc {
    #[prost(message, repeated, tag = "1")]
    pub(crate) inputs: Vec<OpVar>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) outputs: Vec<OpVar>,
    #[prost(string, tag = "3")]
    pub(crate) r#type: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) attrs: Vec<OpAttr>,
}

/// A slot of an operator with its variables.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpVar {
    #[prost(string, tag = "1")]
    pub(crate) parameter: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpAttr {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) r#type: i32,
    #[prost(int32, tag = "3")]
    pub(crate) i: i32,
    #[prost(float, tag = "4")]
    pub(crate) f: f32,
    #[prost(bytes = "vec", tag = "5")]
    pub(crate) s: Vec<u8>,
    #[prost(int32, repeated, packed = "false", tag = "6")]
    pub(crate) ints: Vec<i32>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(crate) strings: Vec<Vec<u8>>,
    #[prost(bool, tag = "10")]
    pub(crate) b: bool,
    #[prost(bool, repeated, packed = "false", tag = "11")]
    pub(crate) bools: Vec<bool>,
    #[prost(int32, tag = "12")]
    pub(crate) block_idx: i32,
    #[prost(int64, tag = "13")]
    pub(crate) l: i64,
    #[prost(int32, repeated, packed = "false", tag = "14")]
    pub(crate) blocks_idx: Vec<i32>,
    #[prost(int64, repeated, packed = "false", tag = "15")]
    pub(crate) longs: Vec<i64>,
    #[prost(double, repeated, packed = "false", tag = "16")]
    pub(crate) float64s: Vec<f64>,
    #[prost(string, tag = "17")]
    pub(crate) var_name: String,
    #[prost(string, repeated, tag = "18")]
    pub(crate) vars_name: Vec<String>,
    #[prost(double, tag = "19")]
    pub(crate) float64: f64,
    #[prost(message, optional, tag = "20")]
    pub(crate) scalar: Option<Scalar>,
    #[prost(message, repeated, tag = "21")]
    pub(crate) scalars: Vec<Scalar>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scalar {
    #[prost(int32, tag = "1")]
    pub(crate) r#type: i32,
    #[prost(bool, tag = "2")]
    pub(crate) b: bool,
    #[prost(int64, tag = "3")]
    pub(crate) i: i64,
    #[prost(double, tag = "4")]
    pub(crate) r: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VarDesc {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<VarType>,
    #[prost(bool, tag = "3")]
    pub(crate) persistable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VarType {
    #[prost(int32, tag = "1")]
    pub(crate) r#type: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) lod_tensor: Option<LodTensorDesc>,
    #[prost(message, optional, tag = "4")]
    pub(crate) tensor_array: Option<LodTensorDesc>,
}

/// A tensor, and how many levels of sequences it has.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct LodTensorDesc {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor: Option<TensorDesc>,
    #[prost(int32, tag = "2")]
    pub(crate) lod_level: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorDesc {
    #[prost(int32, tag = "1")]
    pub(crate) data_type: i32,
    #[prost(int64, repeated, packed = "false", tag = "2")]
    pub(crate) dims: Vec<i64>,
}
