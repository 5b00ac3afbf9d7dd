# Written by scripts/python-opset-stubs.
from collections.abc import Sequence
from typing import Any

from . import Node, _NodeInput as NodeInput
from .opset7 import abs as abs
from .opset7 import absolute as absolute
from .opset7 import acos as acos
from .opset7 import acosh as acosh
from .opset7 import add as add
from .opset7 import asin as asin
from .opset7 import asinh as asinh
from .opset7 import assign as assign
from .opset7 import atan as atan
from .opset7 import atanh as atanh
from .opset7 import avg_pool as avg_pool
from .opset7 import batch_norm_inference as batch_norm_inference
from .opset7 import batch_to_space as batch_to_space
from .opset7 import binary_convolution as binary_convolution
from .opset7 import broadcast as broadcast
from .opset7 import bucketize as bucketize
from .opset7 import ceil as ceil
from .opset7 import ceiling as ceiling
from .opset7 import clamp as clamp
from .opset7 import concat as concat
from .opset7 import constant as constant
from .opset7 import convert as convert
from .opset7 import convert_like as convert_like
from .opset7 import convolution as convolution
from .opset7 import convolution_backprop_data as convolution_backprop_data
from .opset7 import cos as cos
from .opset7 import cosh as cosh
from .opset7 import ctc_greedy_decoder as ctc_greedy_decoder
from .opset7 import ctc_greedy_decoder_seq_len as ctc_greedy_decoder_seq_len
from .opset7 import ctc_loss as ctc_loss
from .opset7 import cum_sum as cum_sum
from .opset7 import cumsum as cumsum
from .opset7 import deformable_psroi_pooling as deformable_psroi_pooling
from .opset7 import depth_to_space as depth_to_space
from .opset7 import dft as dft
from .opset7 import divide as divide
from .opset7 import einsum as einsum
from .opset7 import elu as elu
from .opset7 import embedding_bag_offsets_sum as embedding_bag_offsets_sum
from .opset7 import embedding_bag_packed_sum as embedding_bag_packed_sum
from .opset7 import embedding_segments_sum as embedding_segments_sum
from .opset7 import equal as equal
from .opset7 import erf as erf
from .opset7 import exp as exp
from .opset7 import extract_image_patches as extract_image_patches
from .opset7 import fake_quantize as fake_quantize
from .opset7 import floor as floor
from .opset7 import floor_mod as floor_mod
from .opset7 import gather_elements as gather_elements
from .opset7 import gather_tree as gather_tree
from .opset7 import gelu as gelu
from .opset7 import greater as greater
from .opset7 import greater_equal as greater_equal
from .opset7 import grn as grn
from .opset7 import group_convolution as group_convolution
from .opset7 import group_convolution_backprop_data as group_convolution_backprop_data
from .opset7 import gru_cell as gru_cell
from .opset7 import gru_sequence as gru_sequence
from .opset7 import hard_sigmoid as hard_sigmoid
from .opset7 import hsigmoid as hsigmoid
from .opset7 import hswish as hswish
from .opset7 import idft as idft
from .opset7 import interpolate as interpolate
from .opset7 import less as less
from .opset7 import less_equal as less_equal
from .opset7 import log as log
from .opset7 import log_softmax as log_softmax
from .opset7 import logical_and as logical_and
from .opset7 import logical_not as logical_not
from .opset7 import logical_or as logical_or
from .opset7 import logical_xor as logical_xor
from .opset7 import loop as loop
from .opset7 import lrn as lrn
from .opset7 import lstm_cell as lstm_cell
from .opset7 import lstm_sequence as lstm_sequence
from .opset7 import matmul as matmul
from .opset7 import maximum as maximum
from .opset7 import minimum as minimum
from .opset7 import mish as mish
from .opset7 import mod as mod
from .opset7 import multiply as multiply
from .opset7 import mvn as mvn
from .opset7 import negative as negative
from .opset7 import non_max_suppression as non_max_suppression
from .opset7 import non_zero as non_zero
from .opset7 import normalize_l2 as normalize_l2
from .opset7 import not_equal as not_equal
from .opset7 import one_hot as one_hot
from .opset7 import pad as pad
from .opset7 import parameter as parameter
from .opset7 import power as power
from .opset7 import prelu as prelu
from .opset7 import prior_box_clustered as prior_box_clustered
from .opset7 import proposal as proposal
from .opset7 import psroi_pooling as psroi_pooling
from .opset7 import range as range
from .opset7 import read_value as read_value
from .opset7 import reduce_l1 as reduce_l1
from .opset7 import reduce_l2 as reduce_l2
from .opset7 import reduce_logical_and as reduce_logical_and
from .opset7 import reduce_logical_or as reduce_logical_or
from .opset7 import reduce_max as reduce_max
from .opset7 import reduce_mean as reduce_mean
from .opset7 import reduce_min as reduce_min
from .opset7 import reduce_prod as reduce_prod
from .opset7 import reduce_sum as reduce_sum
from .opset7 import region_yolo as region_yolo
from .opset7 import relu as relu
from .opset7 import reorg_yolo as reorg_yolo
from .opset7 import reshape as reshape
from .opset7 import result as result
from .opset7 import reverse_sequence as reverse_sequence
from .opset7 import rnn_cell as rnn_cell
from .opset7 import rnn_sequence as rnn_sequence
from .opset7 import roi_align as roi_align
from .opset7 import roi_pooling as roi_pooling
from .opset7 import roll as roll
from .opset7 import round as round
from .opset7 import scatter_elements_update as scatter_elements_update
from .opset7 import scatter_nd_update as scatter_nd_update
from .opset7 import scatter_update as scatter_update
from .opset7 import select as select
from .opset7 import selu as selu
from .opset7 import shape_of as shape_of
from .opset7 import shuffle_channels as shuffle_channels
from .opset7 import sigmoid as sigmoid
from .opset7 import sign as sign
from .opset7 import sin as sin
from .opset7 import sinh as sinh
from .opset7 import softplus as softplus
from .opset7 import space_to_batch as space_to_batch
from .opset7 import space_to_depth as space_to_depth
from .opset7 import split as split
from .opset7 import sqrt as sqrt
from .opset7 import squared_difference as squared_difference
from .opset7 import squeeze as squeeze
from .opset7 import strided_slice as strided_slice
from .opset7 import subtract as subtract
from .opset7 import swish as swish
from .opset7 import tan as tan
from .opset7 import tanh as tanh
from .opset7 import tensor_iterator as tensor_iterator
from .opset7 import tile as tile
from .opset7 import topk as topk
from .opset7 import transpose as transpose
from .opset7 import unsqueeze as unsqueeze
from .opset7 import variadic_split as variadic_split

def adaptive_avg_pool(data: NodeInput, output_shape: NodeInput, name: str | None = ...) -> Node: ...
def adaptive_max_pool(data: NodeInput, output_shape: NodeInput, index_element_type: str = ..., name: str | None = ...) -> Node: ...
def deformable_convolution(data: NodeInput, offsets: NodeInput, filters: NodeInput, strides: Sequence[int], pads_begin: Sequence[int], pads_end: Sequence[int], dilations: Sequence[int], mask: NodeInput | None = ..., auto_pad: str = ..., group: int = ..., deformable_group: int = ..., bilinear_interpolation_pad: bool = ..., name: str | None = ...) -> Node: ...
def detection_output(box_logits: Any, class_preds: Any, proposals: Any, attrs: Any, aux_class_preds: Any = ..., aux_box_preds: Any = ..., name: str | None = ...) -> Node: ...
def gather(data: NodeInput, indices: NodeInput, axis: NodeInput, batch_dims: int = ..., name: str | None = ...) -> Node: ...
def gather_nd(data: NodeInput, indices: NodeInput, batch_dims: int = ..., name: str | None = ...) -> Node: ...
def i420_to_bgr(arg: NodeInput, arg_u: Any = ..., arg_v: Any = ..., name: str | None = ...) -> Node: ...
def i420_to_rgb(arg: NodeInput, arg_u: Any = ..., arg_v: Any = ..., name: str | None = ...) -> Node: ...
from .op import if_op as if_op
def matrix_nms(boxes: NodeInput, scores: NodeInput, sort_result_type: str = ..., sort_result_across_batch: bool = ..., output_type: str = ..., score_threshold: float = ..., nms_top_k: int = ..., keep_top_k: int = ..., background_class: int = ..., decay_function: str = ..., gaussian_sigma: float = ..., post_threshold: float = ..., normalized: bool = ..., name: str | None = ...) -> Node: ...
def max_pool(data: NodeInput, strides: Sequence[int], dilations: Sequence[int], pads_begin: Sequence[int], pads_end: Sequence[int], kernel_shape: Sequence[int], rounding_type: str = ..., auto_pad: Any = ..., index_element_type: str = ..., axis: int = ..., name: str | None = ...) -> Node: ...
def multiclass_nms(boxes: NodeInput, scores: NodeInput, sort_result_type: str = ..., sort_result_across_batch: bool = ..., output_type: str = ..., iou_threshold: float = ..., score_threshold: float = ..., nms_top_k: int = ..., keep_top_k: int = ..., background_class: int = ..., nms_eta: float = ..., normalized: bool = ..., name: str | None = ...) -> Node: ...
def nv12_to_bgr(arg: NodeInput, arg_uv: NodeInput | None = ..., name: str | None = ...) -> Node: ...
def nv12_to_rgb(arg: NodeInput, arg_uv: NodeInput | None = ..., name: str | None = ...) -> Node: ...
def prior_box(layer_shape: Any, image_shape: Any, attrs: Any, name: str | None = ...) -> Node: ...
def random_uniform(output_shape: NodeInput, min_val: Any, max_val: Any, output_type: Any, global_seed: int = ..., op_seed: int = ..., alignment: str = ..., name: str | None = ...) -> Node: ...
def slice(data: NodeInput, start: NodeInput, stop: NodeInput, step: NodeInput, axes: NodeInput | None = ..., name: str | None = ...) -> Node: ...
def softmax(data: NodeInput, axis: Any, name: str | None = ...) -> Node: ...
