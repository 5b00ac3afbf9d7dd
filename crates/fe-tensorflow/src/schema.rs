//! The fields of TensorFlow's messages by name, for graphs written as protobuf text. Fields the reader has no use for are
//! listed too: they are no mistake of the writer.

use carafe_textproto::{FieldInfo, Kind, Schema};

macro_rules! schema {
    ($($const:ident = $name:literal { $($field:literal $number:literal $kind:expr),* $(,)? })*) => {
        $(pub(crate) static $const: Schema = Schema {
            name: $name,
            fields: &[$(FieldInfo::new($field, $number, $kind)),*],
        };)*
    };
}

use Kind::{Bool, Bytes, Double, Enum, Float, Int, Message, Skip, Str};

const DATA_TYPES: &[(&str, i32)] = &[
    ("DT_INVALID", 0),
    ("DT_FLOAT", 1),
    ("DT_DOUBLE", 2),
    ("DT_INT32", 3),
    ("DT_UINT8", 4),
    ("DT_INT16", 5),
    ("DT_INT8", 6),
    ("DT_STRING", 7),
    ("DT_COMPLEX64", 8),
    ("DT_INT64", 9),
    ("DT_BOOL", 10),
    ("DT_QINT8", 11),
    ("DT_QUINT8", 12),
    ("DT_QINT32", 13),
    ("DT_BFLOAT16", 14),
    ("DT_QINT16", 15),
    ("DT_QUINT16", 16),
    ("DT_UINT16", 17),
    ("DT_COMPLEX128", 18),
    ("DT_HALF", 19),
    ("DT_RESOURCE", 20),
    ("DT_VARIANT", 21),
    ("DT_UINT32", 22),
    ("DT_UINT64", 23),
    ("DT_FLOAT8_E5M2", 24),
    ("DT_FLOAT8_E4M3FN", 25),
    ("DT_FLOAT8_E4M3FNUZ", 26),
    ("DT_FLOAT8_E4M3B11FNUZ", 27),
    ("DT_FLOAT8_E5M2FNUZ", 28),
    ("DT_INT4", 29),
    ("DT_UINT4", 30),
    ("DT_FLOAT_REF", 101),
    ("DT_DOUBLE_REF", 102),
    ("DT_INT32_REF", 103),
    ("DT_UINT8_REF", 104),
    ("DT_INT16_REF", 105),
    ("DT_INT8_REF", 106),
    ("DT_STRING_REF", 107),
    ("DT_COMPLEX64_REF", 108),
    ("DT_INT64_REF", 109),
    ("DT_BOOL_REF", 110),
    ("DT_BFLOAT16_REF", 114),
    ("DT_UINT16_REF", 117),
    ("DT_COMPLEX128_REF", 118),
    ("DT_HALF_REF", 119),
    ("DT_RESOURCE_REF", 120),
    ("DT_VARIANT_REF", 121),
    ("DT_UINT32_REF", 122),
    ("DT_UINT64_REF", 123),
];

const SAVER_VERSIONS: &[(&str, i32)] = &[("LEGACY", 0), ("V1", 1), ("V2", 2)];

schema! {
    GRAPH = "GraphDef" {
        "node" 1 Message(&NODE),
        "library" 2 Message(&LIBRARY),
        "version" 3 Int,
        "versions" 4 Message(&VERSION),
        "debug_info" 5 Skip,
    }
    VERSION = "VersionDef" { "producer" 1 Int, "min_consumer" 2 Int, "bad_consumers" 3 Int }
    NODE = "NodeDef" {
        "name" 1 Str,
        "op" 2 Str,
        "input" 3 Str,
        "device" 4 Str,
        "attr" 5 Message(&ATTR_ENTRY),
        "experimental_debug_info" 6 Message(&DEBUG_INFO),
        "experimental_type" 7 Skip,
    }
    DEBUG_INFO = "ExperimentalDebugInfo" { "original_node_names" 1 Str, "original_func_names" 2 Str }
    ATTR_ENTRY = "AttrEntry" { "key" 1 Str, "value" 2 Message(&ATTR) }
    ATTR = "AttrValue" {
        "list" 1 Message(&LIST),
        "s" 2 Bytes,
        "i" 3 Int,
        "f" 4 Float,
        "b" 5 Bool,
        "type" 6 Enum(DATA_TYPES),
        "shape" 7 Message(&SHAPE),
        "tensor" 8 Message(&TENSOR),
        "placeholder" 9 Str,
        "func" 10 Message(&FUNC),
    }
    LIST = "ListValue" {
        "s" 2 Bytes,
        "i" 3 Int,
        "f" 4 Float,
        "b" 5 Bool,
        "type" 6 Enum(DATA_TYPES),
        "shape" 7 Message(&SHAPE),
        "tensor" 8 Message(&TENSOR),
        "func" 9 Message(&FUNC),
    }
    FUNC = "NameAttrList" { "name" 1 Str, "attr" 2 Message(&ATTR_ENTRY) }
    SHAPE = "TensorShapeProto" { "dim" 2 Message(&DIM), "unknown_rank" 3 Bool }
    DIM = "Dim" { "size" 1 Int, "name" 2 Str }
    TENSOR = "TensorProto" {
        "dtype" 1 Enum(DATA_TYPES),
        "tensor_shape" 2 Message(&SHAPE),
        "version_number" 3 Int,
        "tensor_content" 4 Bytes,
        "float_val" 5 Float,
        "double_val" 6 Double,
        "int_val" 7 Int,
        "string_val" 8 Bytes,
        "scomplex_val" 9 Float,
        "int64_val" 10 Int,
        "bool_val" 11 Bool,
        "dcomplex_val" 12 Double,
        "half_val" 13 Int,
        "resource_handle_val" 14 Skip,
        "variant_val" 15 Skip,
        "uint32_val" 16 Int,
        "uint64_val" 17 Int,
        "float8_val" 18 Bytes,
    }
    LIBRARY = "FunctionDefLibrary" { "function" 1 Message(&FUNCTION), "gradient" 2 Message(&GRADIENT) }
    GRADIENT = "GradientDef" { "function_name" 1 Str, "gradient_func" 2 Str }
    FUNCTION = "FunctionDef" {
        "signature" 1 Message(&OP),
        "node_def" 3 Message(&NODE),
        "ret" 4 Message(&TEXT_ENTRY),
        "attr" 5 Message(&ATTR_ENTRY),
        "control_ret" 6 Message(&TEXT_ENTRY),
        "arg_attr" 7 Message(&ARG_ENTRY),
        "resource_arg_unique_id" 8 Skip,
    }
    TEXT_ENTRY = "Entry" { "key" 1 Str, "value" 2 Str }
    ARG_ENTRY = "ArgAttrEntry" { "key" 1 Int, "value" 2 Message(&ARG_ATTRS) }
    ARG_ATTRS = "ArgAttrs" { "attr" 1 Message(&ATTR_ENTRY) }
    OP = "OpDef" {
        "name" 1 Str,
        "input_arg" 2 Message(&ARG),
        "output_arg" 3 Message(&ARG),
        "attr" 4 Message(&OP_ATTR),
        "summary" 5 Str,
        "description" 6 Str,
        "deprecation" 8 Message(&DEPRECATION),
        "is_aggregate" 16 Bool,
        "is_stateful" 17 Bool,
        "is_commutative" 18 Bool,
        "allows_uninitialized_input" 19 Bool,
        "control_output" 20 Str,
        "is_distributed_communication" 21 Bool,
    }
    DEPRECATION = "OpDeprecation" { "version" 1 Int, "explanation" 2 Str }
    ARG = "ArgDef" {
        "name" 1 Str,
        "description" 2 Str,
        "type" 3 Enum(DATA_TYPES),
        "type_attr" 4 Str,
        "number_attr" 5 Str,
        "type_list_attr" 6 Str,
        "handle_data" 7 Skip,
        "is_ref" 16 Bool,
        "experimental_full_type" 17 Skip,
    }
    OP_ATTR = "AttrDef" {
        "name" 1 Str,
        "type" 2 Str,
        "default_value" 3 Message(&ATTR),
        "description" 4 Str,
        "has_minimum" 5 Bool,
        "minimum" 6 Int,
        "allowed_values" 7 Message(&ATTR),
    }
    SAVED_MODEL = "SavedModel" { "saved_model_schema_version" 1 Int, "meta_graphs" 2 Message(&META_GRAPH) }
    META_GRAPH = "MetaGraphDef" {
        "meta_info_def" 1 Message(&META_INFO),
        "graph_def" 2 Message(&GRAPH),
        "saver_def" 3 Message(&SAVER),
        "collection_def" 4 Message(&COLLECTION_ENTRY),
        "signature_def" 5 Message(&SIGNATURE_ENTRY),
        "asset_file_def" 6 Message(&ASSET),
        "object_graph_def" 7 Skip,
    }
    META_INFO = "MetaInfoDef" {
        "meta_graph_version" 1 Str,
        "stripped_op_list" 2 Message(&OP_LIST),
        "any_info" 3 Skip,
        "tags" 4 Str,
        "tensorflow_version" 5 Str,
        "tensorflow_git_version" 6 Str,
        "stripped_default_attrs" 7 Bool,
        "function_aliases" 8 Message(&TEXT_ENTRY),
    }
    OP_LIST = "OpList" { "op" 1 Message(&OP) }
    SAVER = "SaverDef" {
        "filename_tensor_name" 1 Str,
        "save_tensor_name" 2 Str,
        "restore_op_name" 3 Str,
        "max_to_keep" 4 Int,
        "sharded" 5 Bool,
        "keep_checkpoint_every_n_hours" 6 Float,
        "version" 7 Enum(SAVER_VERSIONS),
    }
    COLLECTION_ENTRY = "CollectionDefEntry" { "key" 1 Str, "value" 2 Message(&COLLECTION) }
    COLLECTION = "CollectionDef" {
        "node_list" 1 Message(&TEXTS),
        "bytes_list" 2 Message(&BYTES_LIST),
        "int64_list" 3 Message(&INTS),
        "float_list" 4 Message(&FLOATS),
        "any_list" 5 Message(&ANY_LIST),
    }
    ANY_LIST = "AnyList" { "value" 1 Message(&ANY) }
    // Assets are the only ones that are looked at: what a type names is the content of `value`.
    ANY = "Any" { "type_url" 1 Str, "value" 2 Bytes, "[type.googleapis.com/tensorflow.AssetFileDef]" 2 Message(&ASSET) }
    TEXTS = "NodeList" { "value" 1 Str }
    BYTES_LIST = "BytesList" { "value" 1 Bytes }
    INTS = "Int64List" { "value" 1 Int }
    FLOATS = "FloatList" { "value" 1 Float }
    SIGNATURE_ENTRY = "SignatureDefEntry" { "key" 1 Str, "value" 2 Message(&SIGNATURE) }
    SIGNATURE = "SignatureDef" {
        "inputs" 1 Message(&INFO_ENTRY),
        "outputs" 2 Message(&INFO_ENTRY),
        "method_name" 3 Str,
        "defaults" 4 Skip,
    }
    INFO_ENTRY = "TensorInfoEntry" { "key" 1 Str, "value" 2 Message(&INFO) }
    INFO = "TensorInfo" {
        "name" 1 Str,
        "dtype" 2 Enum(DATA_TYPES),
        "tensor_shape" 3 Message(&SHAPE),
        "coo_sparse" 4 Message(&SPARSE),
        "composite_tensor" 5 Message(&COMPOSITE),
    }
    SPARSE = "CooSparse" { "values_tensor_name" 1 Str, "indices_tensor_name" 2 Str, "dense_shape_tensor_name" 3 Str }
    COMPOSITE = "CompositeTensor" { "type_spec" 1 Skip, "components" 2 Message(&INFO) }
    ASSET = "AssetFileDef" { "tensor_info" 1 Message(&INFO), "filename" 2 Str }
}
