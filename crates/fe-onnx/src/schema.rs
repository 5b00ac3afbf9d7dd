//! The fields of ONNX's messages by name, for models written as protobuf text or JSON. Fields the reader has no use for
//! are listed too: they are no mistake of the writer.

use carafe_textproto::{FieldInfo, Kind, Schema};

macro_rules! schema {
    ($($const:ident = $name:literal { $($field:literal $number:literal $kind:expr),* $(,)? })*) => {
        $(pub(crate) static $const: Schema = Schema {
            name: $name,
            fields: &[$(FieldInfo::new($field, $number, $kind)),*],
        };)*
    };
}

use Kind::{Bytes, Double, Enum, Float, Int, Message, Str};

const DATA_TYPES: &[(&str, i32)] = &[
    ("UNDEFINED", 0),
    ("FLOAT", 1),
    ("UINT8", 2),
    ("INT8", 3),
    ("UINT16", 4),
    ("INT16", 5),
    ("INT32", 6),
    ("INT64", 7),
    ("STRING", 8),
    ("BOOL", 9),
    ("FLOAT16", 10),
    ("DOUBLE", 11),
    ("UINT32", 12),
    ("UINT64", 13),
    ("COMPLEX64", 14),
    ("COMPLEX128", 15),
    ("BFLOAT16", 16),
    ("FLOAT8E4M3FN", 17),
    ("FLOAT8E4M3FNUZ", 18),
    ("FLOAT8E5M2", 19),
    ("FLOAT8E5M2FNUZ", 20),
    ("UINT4", 21),
    ("INT4", 22),
    ("FLOAT4E2M1", 23),
    ("FLOAT8E8M0", 24),
    ("UINT2", 25),
    ("INT2", 26),
];

const ATTRIBUTE_TYPES: &[(&str, i32)] = &[
    ("UNDEFINED", 0),
    ("FLOAT", 1),
    ("INT", 2),
    ("STRING", 3),
    ("TENSOR", 4),
    ("GRAPH", 5),
    ("FLOATS", 6),
    ("INTS", 7),
    ("STRINGS", 8),
    ("TENSORS", 9),
    ("GRAPHS", 10),
    ("SPARSE_TENSOR", 11),
    ("SPARSE_TENSORS", 12),
    ("TYPE_PROTO", 13),
    ("TYPE_PROTOS", 14),
];

schema! {
    MODEL = "ModelProto" {
        "ir_version" 1 Int, "producer_name" 2 Str, "producer_version" 3 Str, "domain" 4 Str, "model_version" 5 Int,
        "doc_string" 6 Str, "graph" 7 Message(&GRAPH), "opset_import" 8 Message(&OPSET),
        "metadata_props" 14 Message(&ENTRY), "training_info" 20 Message(&TRAINING), "functions" 25 Message(&FUNCTION),
        "configuration" 26 Message(&DEVICE),
    }
    OPSET = "OperatorSetIdProto" { "domain" 1 Str, "version" 2 Int }
    ENTRY = "StringStringEntryProto" { "key" 1 Str, "value" 2 Str }
    INTS_ENTRY = "IntIntListEntryProto" { "key" 1 Int, "value" 2 Int }
    GRAPH = "GraphProto" {
        "node" 1 Message(&NODE), "name" 2 Str, "initializer" 5 Message(&TENSOR), "doc_string" 10 Str,
        "input" 11 Message(&VALUE_INFO), "output" 12 Message(&VALUE_INFO), "value_info" 13 Message(&VALUE_INFO),
        "quantization_annotation" 14 Message(&ANNOTATION), "sparse_initializer" 15 Message(&SPARSE_TENSOR),
        "metadata_props" 16 Message(&ENTRY),
    }
    NODE = "NodeProto" {
        "input" 1 Str, "output" 2 Str, "name" 3 Str, "op_type" 4 Str, "attribute" 5 Message(&ATTRIBUTE), "doc_string" 6 Str,
        "domain" 7 Str, "overload" 8 Str, "metadata_props" 9 Message(&ENTRY),
        "device_configurations" 10 Message(&NODE_DEVICE),
    }
    ATTRIBUTE = "AttributeProto" {
        "name" 1 Str, "f" 2 Float, "i" 3 Int, "s" 4 Bytes, "t" 5 Message(&TENSOR), "g" 6 Message(&GRAPH), "floats" 7 Float,
        "ints" 8 Int, "strings" 9 Bytes, "tensors" 10 Message(&TENSOR), "graphs" 11 Message(&GRAPH), "doc_string" 13 Str,
        "tp" 14 Message(&TYPE), "type_protos" 15 Message(&TYPE), "type" 20 Enum(ATTRIBUTE_TYPES), "ref_attr_name" 21 Str,
        "sparse_tensor" 22 Message(&SPARSE_TENSOR), "sparse_tensors" 23 Message(&SPARSE_TENSOR),
    }
    TENSOR = "TensorProto" {
        "dims" 1 Int, "data_type" 2 Enum(DATA_TYPES), "segment" 3 Message(&SEGMENT), "float_data" 4 Float,
        "int32_data" 5 Int, "string_data" 6 Bytes, "int64_data" 7 Int, "name" 8 Str, "raw_data" 9 Bytes,
        "double_data" 10 Double, "uint64_data" 11 Int, "doc_string" 12 Str, "external_data" 13 Message(&ENTRY),
        "data_location" 14 Enum(&[("DEFAULT", 0), ("EXTERNAL", 1)]), "metadata_props" 16 Message(&ENTRY),
    }
    SEGMENT = "Segment" { "begin" 1 Int, "end" 2 Int }
    SPARSE_TENSOR = "SparseTensorProto" { "values" 1 Message(&TENSOR), "indices" 2 Message(&TENSOR), "dims" 3 Int }
    ANNOTATION = "TensorAnnotation" { "tensor_name" 1 Str, "quant_parameter_tensor_names" 2 Message(&ENTRY) }
    VALUE_INFO = "ValueInfoProto" {
        "name" 1 Str, "type" 2 Message(&TYPE), "doc_string" 3 Str, "metadata_props" 4 Message(&ENTRY),
    }
    TYPE = "TypeProto" {
        "tensor_type" 1 Message(&TENSOR_TYPE), "sequence_type" 4 Message(&ELEMENT), "map_type" 5 Message(&MAP),
        "denotation" 6 Str, "opaque_type" 7 Message(&OPAQUE), "sparse_tensor_type" 8 Message(&TENSOR_TYPE),
        "optional_type" 9 Message(&ELEMENT),
    }
    TENSOR_TYPE = "Tensor" { "elem_type" 1 Enum(DATA_TYPES), "shape" 2 Message(&SHAPE) }
    ELEMENT = "Sequence" { "elem_type" 1 Message(&TYPE) }
    MAP = "Map" { "key_type" 1 Enum(DATA_TYPES), "value_type" 2 Message(&TYPE) }
    OPAQUE = "Opaque" { "domain" 1 Str, "name" 2 Str }
    SHAPE = "TensorShapeProto" { "dim" 1 Message(&DIMENSION) }
    DIMENSION = "Dimension" { "dim_value" 1 Int, "dim_param" 2 Str, "denotation" 3 Str }
    FUNCTION = "FunctionProto" {
        "name" 1 Str, "input" 4 Str, "output" 5 Str, "attribute" 6 Str, "node" 7 Message(&NODE), "doc_string" 8 Str,
        "opset_import" 9 Message(&OPSET), "domain" 10 Str, "attribute_proto" 11 Message(&ATTRIBUTE),
        "value_info" 12 Message(&VALUE_INFO), "overload" 13 Str, "metadata_props" 14 Message(&ENTRY),
    }
    TRAINING = "TrainingInfoProto" {
        "initialization" 1 Message(&GRAPH), "algorithm" 2 Message(&GRAPH), "initialization_binding" 3 Message(&ENTRY),
        "update_binding" 4 Message(&ENTRY),
    }
    DEVICE = "DeviceConfigurationProto" { "name" 1 Str, "num_devices" 2 Int, "device" 3 Str }
    NODE_DEVICE = "NodeDeviceConfigurationProto" {
        "configuration_id" 1 Str, "sharding_spec" 2 Message(&SHARDING), "pipeline_stage" 3 Int,
    }
    SHARDING = "ShardingSpecProto" {
        "tensor_name" 1 Str, "device" 2 Int, "index_to_device_group_map" 3 Message(&INTS_ENTRY),
        "sharded_dim" 4 Message(&SHARDED_DIM),
    }
    SHARDED_DIM = "ShardedDimProto" { "axis" 1 Int, "simple_sharding" 2 Message(&SIMPLE_DIM) }
    SIMPLE_DIM = "SimpleShardedDimProto" { "dim_value" 1 Int, "dim_param" 2 Str, "num_shards" 3 Int }
}
