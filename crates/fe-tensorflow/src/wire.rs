//! The protobuf messages of TensorFlow, as far as a reader needs them. Raw tensor bytes are slices of the mapped file; nothing
//! large is copied. Field numbers are those of TensorFlow's `.proto` files. Maps are lists of entries: the last of a key counts.

use bytes::Bytes;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GraphDef {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node: Vec<NodeDef>,
    #[prost(message, optional, tag = "2")]
    pub(crate) library: Option<FunctionDefLibrary>,
    #[prost(message, optional, tag = "4")]
    pub(crate) versions: Option<VersionDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct VersionDef {
    #[prost(int32, tag = "1")]
    pub(crate) producer: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NodeDef {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) op: String,
    #[prost(string, repeated, tag = "3")]
    pub(crate) input: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attr: Vec<AttrEntry>,
}

impl NodeDef {
    /// An attribute by name.
    pub(crate) fn get(&self, name: &str) -> Option<&AttrValue> {
        entry(&self.attr, name)
    }
}

/// The value of a key; the last one counts.
pub(crate) fn entry<'a>(entries: &'a [AttrEntry], name: &str) -> Option<&'a AttrValue> {
    entries.iter().rev().find(|e| e.key == name)?.value.as_ref()
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttrEntry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AttrValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttrValue {
    #[prost(message, optional, tag = "1")]
    pub(crate) list: Option<ListValue>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) s: Option<Bytes>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) i: Option<i64>,
    #[prost(float, optional, tag = "4")]
    pub(crate) f: Option<f32>,
    #[prost(bool, optional, tag = "5")]
    pub(crate) b: Option<bool>,
    #[prost(int32, optional, tag = "6")]
    pub(crate) r#type: Option<i32>,
    #[prost(message, optional, tag = "7")]
    pub(crate) shape: Option<TensorShapeProto>,
    #[prost(message, optional, tag = "8")]
    pub(crate) tensor: Option<TensorProto>,
    #[prost(string, optional, tag = "9")]
    pub(crate) placeholder: Option<String>,
    #[prost(message, optional, tag = "10")]
    pub(crate) func: Option<NameAttrList>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ListValue {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub(crate) s: Vec<Bytes>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) i: Vec<i64>,
    #[prost(float, repeated, tag = "4")]
    pub(crate) f: Vec<f32>,
    #[prost(bool, repeated, tag = "5")]
    pub(crate) b: Vec<bool>,
    #[prost(int32, repeated, tag = "6")]
    pub(crate) r#type: Vec<i32>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) shape: Vec<TensorShapeProto>,
    #[prost(message, repeated, tag = "8")]
    pub(crate) tensor: Vec<TensorProto>,
    #[prost(message, repeated, tag = "9")]
    pub(crate) func: Vec<NameAttrList>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NameAttrList {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) attr: Vec<AttrEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorShapeProto {
    #[prost(message, repeated, tag = "2")]
    pub(crate) dim: Vec<DimProto>,
    #[prost(bool, tag = "3")]
    pub(crate) unknown_rank: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DimProto {
    #[prost(int64, tag = "1")]
    pub(crate) size: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorProto {
    #[prost(int32, tag = "1")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) tensor_shape: Option<TensorShapeProto>,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) tensor_content: Bytes,
    #[prost(float, repeated, tag = "5")]
    pub(crate) float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub(crate) double_val: Vec<f64>,
    #[prost(int32, repeated, tag = "7")]
    pub(crate) int_val: Vec<i32>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub(crate) string_val: Vec<Bytes>,
    #[prost(float, repeated, tag = "9")]
    pub(crate) scomplex_val: Vec<f32>,
    #[prost(int64, repeated, tag = "10")]
    pub(crate) int64_val: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    pub(crate) bool_val: Vec<bool>,
    #[prost(double, repeated, tag = "12")]
    pub(crate) dcomplex_val: Vec<f64>,
    #[prost(int32, repeated, tag = "13")]
    pub(crate) half_val: Vec<i32>,
    #[prost(uint32, repeated, tag = "16")]
    pub(crate) uint32_val: Vec<u32>,
    #[prost(uint64, repeated, tag = "17")]
    pub(crate) uint64_val: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionDefLibrary {
    #[prost(message, repeated, tag = "1")]
    pub(crate) function: Vec<FunctionDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct FunctionDef {
    #[prost(message, optional, tag = "1")]
    pub(crate) signature: Option<OpDef>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) node_def: Vec<NodeDef>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) ret: Vec<TextEntry>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attr: Vec<AttrEntry>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) arg_attr: Vec<ArgAttrsEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TextEntry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArgAttrsEntry {
    #[prost(uint32, tag = "1")]
    pub(crate) key: u32,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<ArgAttrs>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArgAttrs {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attr: Vec<AttrEntry>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OpDef {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) input_arg: Vec<ArgDef>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) output_arg: Vec<ArgDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ArgDef {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "3")]
    pub(crate) r#type: i32,
    #[prost(string, tag = "4")]
    pub(crate) type_attr: String,
    #[prost(string, tag = "5")]
    pub(crate) number_attr: String,
    #[prost(string, tag = "6")]
    pub(crate) type_list_attr: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SavedModel {
    #[prost(int64, tag = "1")]
    pub(crate) saved_model_schema_version: i64,
    #[prost(message, repeated, tag = "2")]
    pub(crate) meta_graphs: Vec<MetaGraphDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetaGraphDef {
    #[prost(message, optional, tag = "1")]
    pub(crate) meta_info_def: Option<MetaInfoDef>,
    #[prost(message, optional, tag = "2")]
    pub(crate) graph_def: Option<GraphDef>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) collection_def: Vec<CollectionEntry>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) signature_def: Vec<SignatureEntry>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) asset_file_def: Vec<AssetFileDef>,
}

impl MetaGraphDef {
    /// The assets; before version 2 they are a collection.
    pub(crate) fn assets(&self) -> Vec<AssetFileDef> {
        let lists = self.collection_def.iter().filter(|c| c.key == "saved_model_assets");
        let lists = lists.filter_map(|c| c.value.as_ref()?.any_list.as_ref());
        let old = lists.flat_map(|l| &l.value).filter_map(|any| AssetFileDef::decode(any.value.clone()).ok());
        self.asset_file_def.iter().cloned().chain(old).collect()
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CollectionEntry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<CollectionDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CollectionDef {
    #[prost(message, optional, tag = "5")]
    pub(crate) any_list: Option<AnyList>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyList {
    #[prost(message, repeated, tag = "1")]
    pub(crate) value: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Any {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetaInfoDef {
    #[prost(string, repeated, tag = "4")]
    pub(crate) tags: Vec<String>,
    #[prost(string, tag = "5")]
    pub(crate) tensorflow_version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SignatureEntry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<SignatureDef>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SignatureDef {
    #[prost(message, repeated, tag = "1")]
    pub(crate) inputs: Vec<TensorInfoEntry>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) outputs: Vec<TensorInfoEntry>,
    #[prost(string, tag = "3")]
    pub(crate) method_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorInfoEntry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<TensorInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TensorInfo {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int32, tag = "2")]
    pub(crate) dtype: i32,
    #[prost(message, optional, tag = "3")]
    pub(crate) tensor_shape: Option<TensorShapeProto>,
    #[prost(message, optional, tag = "4")]
    pub(crate) coo_sparse: Option<CooSparse>,
    #[prost(message, optional, tag = "5")]
    pub(crate) composite_tensor: Option<CompositeTensor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CooSparse {
    #[prost(string, tag = "1")]
    pub(crate) values_tensor_name: String,
    #[prost(string, tag = "2")]
    pub(crate) indices_tensor_name: String,
    #[prost(string, tag = "3")]
    pub(crate) dense_shape_tensor_name: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CompositeTensor {
    #[prost(message, repeated, tag = "2")]
    pub(crate) components: Vec<TensorInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AssetFileDef {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor_info: Option<TensorInfo>,
    #[prost(string, tag = "2")]
    pub(crate) filename: String,
}
