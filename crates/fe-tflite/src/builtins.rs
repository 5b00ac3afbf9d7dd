//! The builtin operators and the fields of their option tables, in the order of the schema. Written by
//! `scripts/fixtures/tflite_schema.py`.

use crate::options::Kind::{Bool, Float, Floats, Graph, Graphs, Int, Ints, Str, Type, Word};
use crate::options::Width::{I8, I32, I64, U8, U32};
use crate::options::{Field, field};

/// Names of the builtin operators by code.
#[rustfmt::skip]
pub(crate) const NAMES: &[&str] = &[
    "ADD", "AVERAGE_POOL_2D", "CONCATENATION", "CONV_2D", "DEPTHWISE_CONV_2D", "DEPTH_TO_SPACE", "DEQUANTIZE",
    "EMBEDDING_LOOKUP", "FLOOR", "FULLY_CONNECTED", "HASHTABLE_LOOKUP", "L2_NORMALIZATION", "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION", "LOGISTIC", "LSH_PROJECTION", "LSTM", "MAX_POOL_2D", "MUL", "RELU", "RELU_N1_TO_1",
    "RELU6", "RESHAPE", "RESIZE_BILINEAR", "RNN", "SOFTMAX", "SPACE_TO_DEPTH", "SVDF", "TANH", "CONCAT_EMBEDDINGS",
    "SKIP_GRAM", "CALL", "CUSTOM", "EMBEDDING_LOOKUP_SPARSE", "PAD", "UNIDIRECTIONAL_SEQUENCE_RNN", "GATHER",
    "BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "TRANSPOSE", "MEAN", "SUB", "DIV", "SQUEEZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM", "STRIDED_SLICE", "BIDIRECTIONAL_SEQUENCE_RNN", "EXP", "TOPK_V2", "SPLIT",
    "LOG_SOFTMAX", "DELEGATE", "BIDIRECTIONAL_SEQUENCE_LSTM", "CAST", "PRELU", "MAXIMUM", "ARG_MAX", "MINIMUM", "LESS",
    "NEG", "PADV2", "GREATER", "GREATER_EQUAL", "LESS_EQUAL", "SELECT", "SLICE", "SIN", "TRANSPOSE_CONV",
    "SPARSE_TO_DENSE", "TILE", "EXPAND_DIMS", "EQUAL", "NOT_EQUAL", "LOG", "SUM", "SQRT", "RSQRT", "SHAPE", "POW",
    "ARG_MIN", "FAKE_QUANT", "REDUCE_PROD", "REDUCE_MAX", "PACK", "LOGICAL_OR", "ONE_HOT", "LOGICAL_AND",
    "LOGICAL_NOT", "UNPACK", "REDUCE_MIN", "FLOOR_DIV", "REDUCE_ANY", "SQUARE", "ZEROS_LIKE", "FILL", "FLOOR_MOD",
    "RANGE", "RESIZE_NEAREST_NEIGHBOR", "LEAKY_RELU", "SQUARED_DIFFERENCE", "MIRROR_PAD", "ABS", "SPLIT_V", "UNIQUE",
    "CEIL", "REVERSE_V2", "ADD_N", "GATHER_ND", "COS", "WHERE", "RANK", "ELU", "REVERSE_SEQUENCE", "MATRIX_DIAG",
    "QUANTIZE", "MATRIX_SET_DIAG", "ROUND", "HARD_SWISH", "IF", "WHILE", "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5", "SCATTER_ND", "SELECT_V2", "DENSIFY", "SEGMENT_SUM", "BATCH_MATMUL",
    "PLACEHOLDER_FOR_GREATER_OP_CODES", "CUMSUM", "CALL_ONCE", "BROADCAST_TO", "RFFT2D", "CONV_3D", "IMAG", "REAL",
    "COMPLEX_ABS", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "REDUCE_ALL",
    "CONV_3D_TRANSPOSE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "BROADCAST_ARGS", "RANDOM_STANDARD_NORMAL",
    "BUCKETIZE", "RANDOM_UNIFORM", "MULTINOMIAL", "GELU", "DYNAMIC_UPDATE_SLICE", "RELU_0_TO_1",
    "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_SUM", "ATAN2", "UNSORTED_SEGMENT_MIN", "SIGN",
    "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_LOGISTIC", "STABLEHLO_ADD", "STABLEHLO_DIVIDE",
    "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_RESHAPE", "STABLEHLO_CLAMP", "STABLEHLO_CONCATENATE",
    "STABLEHLO_BROADCAST_IN_DIM", "STABLEHLO_CONVOLUTION", "STABLEHLO_SLICE", "STABLEHLO_CUSTOM_CALL",
    "STABLEHLO_REDUCE", "STABLEHLO_ABS", "STABLEHLO_AND", "STABLEHLO_COSINE", "STABLEHLO_EXPONENTIAL",
    "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_MINIMUM", "STABLEHLO_NEGATE", "STABLEHLO_OR", "STABLEHLO_POWER",
    "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT", "STABLEHLO_SUBTRACT", "STABLEHLO_TANH",
    "STABLEHLO_SCATTER", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT", "STABLEHLO_DYNAMIC_SLICE",
    "STABLEHLO_DYNAMIC_UPDATE_SLICE", "STABLEHLO_PAD", "STABLEHLO_IOTA", "STABLEHLO_DOT_GENERAL",
    "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SORT", "STABLEHLO_WHILE", "STABLEHLO_GATHER", "STABLEHLO_TRANSPOSE",
    "DILATE", "STABLEHLO_RNG_BIT_GENERATOR", "REDUCE_WINDOW", "STABLEHLO_COMPOSITE", "STABLEHLO_SHIFT_LEFT",
    "STABLEHLO_CBRT", "STABLEHLO_CASE",
];

const ACTIVATION_FUNCTION_TYPE: &[&str] = &["NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT"];
const COMBINER_TYPE: &[&str] = &["SUM", "MEAN", "SQRTN"];
const FULLY_CONNECTED_OPTIONS_WEIGHTS_FORMAT: &[&str] = &["DEFAULT", "SHUFFLED4x16INT8"];
const LSH_PROJECTION_TYPE: &[&str] = &["UNKNOWN", "SPARSE", "DENSE"];
const LSTM_KERNEL_TYPE: &[&str] = &["FULL", "BASIC"];
const MIRROR_PAD_MODE: &[&str] = &["REFLECT", "SYMMETRIC"];
const PADDING: &[&str] = &["SAME", "VALID"];
const REDUCE_WINDOW_FUNCTION: &[&str] = &["UNSUPPORTED", "ADD", "MUL", "MINIMUM", "MAXIMUM", "ALL", "ANY"];
const RNG_ALGORITHM: &[&str] = &["DEFAULT", "PHILOX", "THREEFRY"];
const STABLEHLO_COMPARISON_DIRECTION: &[&str] = &["EQ", "NE", "GE", "GT", "LE", "LT"];
const STABLEHLO_COMPARISON_TYPE: &[&str] = &["NOTYPE", "FLOAT", "FLOAT_TOTAL_ORDER", "SIGNED", "UNSIGNED"];

/// Option tables by their number in `BuiltinOptions`.
#[rustfmt::skip]
pub(crate) const OPTIONS: &[&[Field]] = &[
    &[], // 0 NONE
    &[ // 1 Conv2DOptions
        field(0, "padding", Word(PADDING), 0.0),
        field(1, "stride_w", Int(I32), 0.0),
        field(2, "stride_h", Int(I32), 0.0),
        field(3, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(4, "dilation_w_factor", Int(I32), 1.0),
        field(5, "dilation_h_factor", Int(I32), 1.0),
        field(6, "quantized_bias_type", Type, 0.0),
    ],
    &[ // 2 DepthwiseConv2DOptions
        field(0, "padding", Word(PADDING), 0.0),
        field(1, "stride_w", Int(I32), 0.0),
        field(2, "stride_h", Int(I32), 0.0),
        field(3, "depth_multiplier", Int(I32), 0.0),
        field(4, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(5, "dilation_w_factor", Int(I32), 1.0),
        field(6, "dilation_h_factor", Int(I32), 1.0),
    ],
    &[ // 3 ConcatEmbeddingsOptions
        field(0, "num_channels", Int(I32), 0.0),
        field(1, "num_columns_per_channel", Ints(I32), 0.0),
        field(2, "embedding_dim_per_channel", Ints(I32), 0.0),
    ],
    &[field(0, "type", Word(LSH_PROJECTION_TYPE), 0.0)], // 4 LSHProjectionOptions
    &[ // 5 Pool2DOptions
        field(0, "padding", Word(PADDING), 0.0),
        field(1, "stride_w", Int(I32), 0.0),
        field(2, "stride_h", Int(I32), 0.0),
        field(3, "filter_width", Int(I32), 0.0),
        field(4, "filter_height", Int(I32), 0.0),
        field(5, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
    ],
    &[ // 6 SVDFOptions
        field(0, "rank", Int(I32), 0.0),
        field(1, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(2, "asymmetric_quantize_inputs", Bool, 0.0),
    ],
    &[ // 7 RNNOptions
        field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(1, "asymmetric_quantize_inputs", Bool, 0.0),
    ],
    &[ // 8 FullyConnectedOptions
        field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(1, "weights_format", Word(FULLY_CONNECTED_OPTIONS_WEIGHTS_FORMAT), 0.0),
        field(2, "keep_num_dims", Bool, 0.0),
        field(3, "asymmetric_quantize_inputs", Bool, 0.0),
        field(4, "quantized_bias_type", Type, 0.0),
        field(5, "quant_spec", Ints(U8), 0.0),
    ],
    &[field(0, "beta", Float, 0.0)], // 9 SoftmaxOptions
    &[ // 10 ConcatenationOptions
        field(0, "axis", Int(I32), 0.0),
        field(1, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
    ],
    &[ // 11 AddOptions
        field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(1, "pot_scale_int16", Bool, 1.0),
    ],
    &[field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0)], // 12 L2NormOptions
    &[ // 13 LocalResponseNormalizationOptions
        field(0, "radius", Int(I32), 0.0),
        field(1, "bias", Float, 0.0),
        field(2, "alpha", Float, 0.0),
        field(3, "beta", Float, 0.0),
    ],
    &[ // 14 LSTMOptions
        field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(1, "cell_clip", Float, 0.0),
        field(2, "proj_clip", Float, 0.0),
        field(3, "kernel_type", Word(LSTM_KERNEL_TYPE), 0.0),
        field(4, "asymmetric_quantize_inputs", Bool, 0.0),
    ],
    &[ // 15 ResizeBilinearOptions
        field(2, "align_corners", Bool, 0.0),
        field(3, "half_pixel_centers", Bool, 0.0),
    ],
    &[field(0, "subgraph", Graph, 0.0)], // 16 CallOptions
    &[field(0, "new_shape", Ints(I32), 0.0)], // 17 ReshapeOptions
    &[ // 18 SkipGramOptions
        field(0, "ngram_size", Int(I32), 0.0),
        field(1, "max_skip_size", Int(I32), 0.0),
        field(2, "include_all_ngrams", Bool, 0.0),
    ],
    &[field(0, "block_size", Int(I32), 0.0)], // 19 SpaceToDepthOptions
    &[field(0, "combiner", Word(COMBINER_TYPE), 0.0)], // 20 EmbeddingLookupSparseOptions
    &[field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0)], // 21 MulOptions
    &[], // 22 PadOptions
    &[ // 23 GatherOptions
        field(0, "axis", Int(I32), 0.0),
        field(1, "batch_dims", Int(I32), 0.0),
    ],
    &[], // 24 BatchToSpaceNDOptions
    &[], // 25 SpaceToBatchNDOptions
    &[], // 26 TransposeOptions
    &[field(0, "keep_dims", Bool, 0.0)], // 27 ReducerOptions
    &[ // 28 SubOptions
        field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(1, "pot_scale_int16", Bool, 1.0),
    ],
    &[field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0)], // 29 DivOptions
    &[field(0, "squeeze_dims", Ints(I32), 0.0)], // 30 SqueezeOptions
    &[ // 31 SequenceRNNOptions
        field(0, "time_major", Bool, 0.0),
        field(1, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(2, "asymmetric_quantize_inputs", Bool, 0.0),
    ],
    &[ // 32 StridedSliceOptions
        field(0, "begin_mask", Int(I32), 0.0),
        field(1, "end_mask", Int(I32), 0.0),
        field(2, "ellipsis_mask", Int(I32), 0.0),
        field(3, "new_axis_mask", Int(I32), 0.0),
        field(4, "shrink_axis_mask", Int(I32), 0.0),
        field(5, "offset", Bool, 0.0),
    ],
    &[], // 33 ExpOptions
    &[], // 34 TopKV2Options
    &[field(0, "num_splits", Int(I32), 0.0)], // 35 SplitOptions
    &[], // 36 LogSoftmaxOptions
    &[ // 37 CastOptions
        field(0, "in_data_type", Type, 0.0),
        field(1, "out_data_type", Type, 0.0),
    ],
    &[], // 38 DequantizeOptions
    &[], // 39 MaximumMinimumOptions
    &[field(0, "output_type", Type, 0.0)], // 40 ArgMaxOptions
    &[], // 41 LessOptions
    &[], // 42 NegOptions
    &[], // 43 PadV2Options
    &[], // 44 GreaterOptions
    &[], // 45 GreaterEqualOptions
    &[], // 46 LessEqualOptions
    &[], // 47 SelectOptions
    &[], // 48 SliceOptions
    &[ // 49 TransposeConvOptions
        field(0, "padding", Word(PADDING), 0.0),
        field(1, "stride_w", Int(I32), 0.0),
        field(2, "stride_h", Int(I32), 0.0),
        field(3, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(4, "quantized_bias_type", Type, 0.0),
    ],
    &[field(0, "validate_indices", Bool, 0.0)], // 50 SparseToDenseOptions
    &[], // 51 TileOptions
    &[], // 52 ExpandDimsOptions
    &[], // 53 EqualOptions
    &[], // 54 NotEqualOptions
    &[field(0, "out_type", Type, 0.0)], // 55 ShapeOptions
    &[], // 56 PowOptions
    &[field(0, "output_type", Type, 0.0)], // 57 ArgMinOptions
    &[ // 58 FakeQuantOptions
        field(0, "min", Float, 0.0),
        field(1, "max", Float, 0.0),
        field(2, "num_bits", Int(I32), 0.0),
        field(3, "narrow_range", Bool, 0.0),
    ],
    &[ // 59 PackOptions
        field(0, "values_count", Int(I32), 0.0),
        field(1, "axis", Int(I32), 0.0),
    ],
    &[], // 60 LogicalOrOptions
    &[field(0, "axis", Int(I32), 0.0)], // 61 OneHotOptions
    &[], // 62 LogicalAndOptions
    &[], // 63 LogicalNotOptions
    &[ // 64 UnpackOptions
        field(0, "num", Int(I32), 0.0),
        field(1, "axis", Int(I32), 0.0),
    ],
    &[], // 65 FloorDivOptions
    &[], // 66 SquareOptions
    &[], // 67 ZerosLikeOptions
    &[], // 68 FillOptions
    &[ // 69 BidirectionalSequenceLSTMOptions
        field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(1, "cell_clip", Float, 0.0),
        field(2, "proj_clip", Float, 0.0),
        field(3, "merge_outputs", Bool, 0.0),
        field(4, "time_major", Bool, 1.0),
        field(5, "asymmetric_quantize_inputs", Bool, 0.0),
    ],
    &[ // 70 BidirectionalSequenceRNNOptions
        field(0, "time_major", Bool, 0.0),
        field(1, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(2, "merge_outputs", Bool, 0.0),
        field(3, "asymmetric_quantize_inputs", Bool, 0.0),
    ],
    &[ // 71 UnidirectionalSequenceLSTMOptions
        field(0, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(1, "cell_clip", Float, 0.0),
        field(2, "proj_clip", Float, 0.0),
        field(3, "time_major", Bool, 0.0),
        field(4, "asymmetric_quantize_inputs", Bool, 0.0),
        field(5, "diagonal_recurrent_tensors", Bool, 0.0),
    ],
    &[], // 72 FloorModOptions
    &[], // 73 RangeOptions
    &[ // 74 ResizeNearestNeighborOptions
        field(0, "align_corners", Bool, 0.0),
        field(1, "half_pixel_centers", Bool, 0.0),
    ],
    &[field(0, "alpha", Float, 0.0)], // 75 LeakyReluOptions
    &[], // 76 SquaredDifferenceOptions
    &[field(0, "mode", Word(MIRROR_PAD_MODE), 0.0)], // 77 MirrorPadOptions
    &[], // 78 AbsOptions
    &[field(0, "num_splits", Int(I32), 0.0)], // 79 SplitVOptions
    &[field(0, "idx_out_type", Type, 2.0)], // 80 UniqueOptions
    &[], // 81 ReverseV2Options
    &[], // 82 AddNOptions
    &[], // 83 GatherNdOptions
    &[], // 84 CosOptions
    &[], // 85 WhereOptions
    &[], // 86 RankOptions
    &[ // 87 ReverseSequenceOptions
        field(0, "seq_dim", Int(I32), 0.0),
        field(1, "batch_dim", Int(I32), 0.0),
    ],
    &[], // 88 MatrixDiagOptions
    &[], // 89 QuantizeOptions
    &[], // 90 MatrixSetDiagOptions
    &[], // 91 HardSwishOptions
    &[ // 92 IfOptions
        field(0, "then_subgraph", Graph, 0.0),
        field(1, "else_subgraph", Graph, 0.0),
    ],
    &[ // 93 WhileOptions
        field(0, "cond_subgraph", Graph, 0.0),
        field(1, "body_subgraph", Graph, 0.0),
    ],
    &[field(0, "block_size", Int(I32), 0.0)], // 94 DepthToSpaceOptions
    &[], // 95 NonMaxSuppressionV4Options
    &[], // 96 NonMaxSuppressionV5Options
    &[], // 97 ScatterNdOptions
    &[], // 98 SelectV2Options
    &[], // 99 DensifyOptions
    &[], // 100 SegmentSumOptions
    &[ // 101 BatchMatMulOptions
        field(0, "adj_x", Bool, 0.0),
        field(1, "adj_y", Bool, 0.0),
        field(2, "asymmetric_quantize_inputs", Bool, 0.0),
    ],
    &[ // 102 CumsumOptions
        field(0, "exclusive", Bool, 0.0),
        field(1, "reverse", Bool, 0.0),
    ],
    &[field(0, "init_subgraph", Graph, 0.0)], // 103 CallOnceOptions
    &[], // 104 BroadcastToOptions
    &[], // 105 Rfft2dOptions
    &[ // 106 Conv3DOptions
        field(0, "padding", Word(PADDING), 0.0),
        field(1, "stride_d", Int(I32), 0.0),
        field(2, "stride_w", Int(I32), 0.0),
        field(3, "stride_h", Int(I32), 0.0),
        field(4, "fused_activation_function", Word(ACTIVATION_FUNCTION_TYPE), 0.0),
        field(5, "dilation_d_factor", Int(I32), 1.0),
        field(6, "dilation_w_factor", Int(I32), 1.0),
        field(7, "dilation_h_factor", Int(I32), 1.0),
    ],
    &[ // 107 HashtableOptions
        field(0, "table_id", Int(I32), 0.0),
        field(1, "key_dtype", Type, 0.0),
        field(2, "value_dtype", Type, 0.0),
    ],
    &[], // 108 HashtableFindOptions
    &[], // 109 HashtableImportOptions
    &[], // 110 HashtableSizeOptions
    &[ // 111 VarHandleOptions
        field(0, "container", Str, 0.0),
        field(1, "shared_name", Str, 0.0),
    ],
    &[], // 112 ReadVariableOptions
    &[], // 113 AssignVariableOptions
    &[ // 114 RandomOptions
        field(0, "seed", Int(I64), 0.0),
        field(1, "seed2", Int(I64), 0.0),
    ],
    &[field(0, "boundaries", Floats, 0.0)], // 115 BucketizeOptions
    &[field(0, "approximate", Bool, 0.0)], // 116 GeluOptions
    &[], // 117 DynamicUpdateSliceOptions
    &[], // 118 UnsortedSegmentProdOptions
    &[], // 119 UnsortedSegmentMaxOptions
    &[], // 120 UnsortedSegmentMinOptions
    &[], // 121 UnsortedSegmentSumOptions
    &[], // 122 ATan2Options
    &[], // 123 SignOptions
    &[], // 124 BitcastOptions
    &[], // 125 BitwiseXorOptions
    &[], // 126 RightShiftOptions
];

/// Option tables by their number in `BuiltinOptions2`.
#[rustfmt::skip]
pub(crate) const OPTIONS_2: &[&[Field]] = &[
    &[], // 0 NONE
    &[field(0, "dimension", Int(I64), 0.0)], // 1 StablehloConcatenateOptions
    &[field(0, "broadcast_dimensions", Ints(I64), 0.0)], // 2 StablehloBroadcastInDimOptions
    &[ // 3 StablehloSliceOptions
        field(0, "start_indices", Ints(I64), 0.0),
        field(1, "limit_indices", Ints(I64), 0.0),
        field(2, "strides", Ints(I64), 0.0),
    ],
    &[ // 4 StablehloConvolutionOptions
        field(0, "window_strides", Ints(I64), 0.0),
        field(1, "padding", Ints(I64), 0.0),
        field(2, "lhs_dilation", Ints(I64), 0.0),
        field(3, "rhs_dilation", Ints(I64), 0.0),
        field(4, "window_reversal", Ints(U8), 0.0),
        field(5, "input_batch_dimension", Int(I64), 0.0),
        field(6, "input_feature_dimension", Int(I64), 0.0),
        field(7, "input_spatial_dimensions", Ints(I64), 0.0),
        field(8, "kernel_input_feature_dimension", Int(I64), 0.0),
        field(9, "kernel_output_feature_dimension", Int(I64), 0.0),
        field(10, "kernel_spatial_dimensions", Ints(I64), 0.0),
        field(11, "output_batch_dimension", Int(I64), 0.0),
        field(12, "output_feature_dimension", Int(I64), 0.0),
        field(13, "output_spatial_dimensions", Ints(I64), 0.0),
        field(14, "feature_group_count", Int(I64), 0.0),
        field(15, "batch_group_count", Int(I64), 0.0),
        field(16, "precision_config", Ints(U32), 0.0),
    ],
    &[ // 5 StablehloCustomCallOptions
        field(0, "call_target_name", Str, 0.0),
        field(1, "has_side_effect", Bool, 0.0),
        field(2, "backend_config", Str, 0.0),
        field(3, "api_version", Int(I32), 0.0),
        field(4, "called_computations", Ints(I32), 0.0),
        field(5, "custom_attributes", Ints(U8), 0.0),
    ],
    &[ // 6 StablehloReduceOptions
        field(0, "dimensions", Ints(I64), 0.0),
        field(1, "body_subgraph", Graph, 0.0),
    ],
    &[ // 7 StablehloScatterOptions
        field(0, "indices_are_sorted", Bool, 0.0),
        field(1, "update_window_dims", Ints(I64), 0.0),
        field(2, "inserted_window_dims", Ints(I64), 0.0),
        field(3, "scatter_dims_to_operand_dims", Ints(I64), 0.0),
        field(4, "index_vector_dim", Int(I64), 0.0),
        field(5, "unique_indices", Bool, 0.0),
        field(6, "update_computation_subgraph", Graph, 0.0),
    ],
    &[ // 8 StablehloCompareOptions
        field(0, "comparison_direction", Word(STABLEHLO_COMPARISON_DIRECTION), 0.0),
        field(1, "compare_type", Word(STABLEHLO_COMPARISON_TYPE), 0.0),
    ],
    &[field(0, "slice_sizes", Ints(I64), 0.0)], // 9 StablehloDynamicSliceOptions
    &[ // 10 StablehloPadOptions
        field(0, "edge_padding_low", Ints(I64), 0.0),
        field(1, "edge_padding_high", Ints(I64), 0.0),
        field(2, "interior_padding", Ints(I64), 0.0),
    ],
    &[field(0, "iota_dimension", Int(I64), 0.0)], // 11 StablehloIotaOptions
    &[ // 12 StablehloDotGeneralOptions
        field(0, "lhs_batching_dimensions", Ints(I64), 0.0),
        field(1, "rhs_batching_dimensions", Ints(I64), 0.0),
        field(2, "lhs_contracting_dimensions", Ints(I64), 0.0),
        field(3, "rhs_contracting_dimensions", Ints(I64), 0.0),
        field(4, "precision_config", Ints(U32), 0.0),
    ],
    &[ // 13 StablehloReduceWindowOptions
        field(0, "window_dimensions", Ints(I64), 0.0),
        field(1, "window_strides", Ints(I64), 0.0),
        field(2, "base_dilations", Ints(I64), 0.0),
        field(3, "window_dilations", Ints(I64), 0.0),
        field(4, "padding", Ints(I64), 0.0),
        field(5, "body_subgraph", Graph, 0.0),
    ],
    &[ // 14 StablehloSortOptions
        field(0, "dimension", Int(I64), 0.0),
        field(1, "is_stable", Bool, 0.0),
        field(2, "comparator_subgraph", Graph, 0.0),
    ],
    &[ // 15 StablehloWhileOptions
        field(0, "cond_subgraph", Graph, 0.0),
        field(1, "body_subgraph", Graph, 0.0),
    ],
    &[ // 16 StablehloGatherOptions
        field(0, "offset_dims", Ints(I64), 0.0),
        field(1, "collapsed_slice_dims", Ints(I64), 0.0),
        field(2, "start_index_map", Ints(I64), 0.0),
        field(3, "index_vector_dim", Int(I64), 0.0),
        field(4, "slice_sizes", Ints(I64), 0.0),
        field(5, "indices_are_sorted", Bool, 0.0),
    ],
    &[field(0, "permutation", Ints(I64), 0.0)], // 17 StablehloTransposeOptions
    &[], // 18 DilateOptions
    &[field(0, "algorithm", Word(RNG_ALGORITHM), 0.0)], // 19 StablehloRngBitGeneratorOptions
    &[field(0, "reduce_function", Word(REDUCE_WINDOW_FUNCTION), 0.0)], // 20 ReduceWindowOptions
    &[ // 21 StableHLOCompositeOptions
        field(0, "name", Str, 0.0),
        field(1, "decomposition_subgraph", Graph, 0.0),
        field(2, "composite_attributes", Ints(U8), 0.0),
        field(3, "composite_attributes_format", Int(I8), 0.0),
        field(4, "version", Int(I32), 0.0),
    ],
    &[], // 22 StablehloShiftLeftOptions
    &[field(0, "branch_subgraphs", Graphs, 0.0)], // 23 StablehloCaseOptions
];
