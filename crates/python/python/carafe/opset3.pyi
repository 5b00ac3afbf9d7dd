# Written by scripts/python-opset-stubs.
from collections.abc import Sequence
from typing import Any

from . import Node, _NodeInput as NodeInput
from .opset2 import abs as abs
from .opset2 import absolute as absolute
from .opset2 import acos as acos
from .opset2 import add as add
from .opset2 import asin as asin
from .opset2 import atan as atan
from .opset2 import avg_pool as avg_pool
from .opset2 import batch_norm_inference as batch_norm_inference
from .opset2 import batch_to_space as batch_to_space
from .opset2 import binary_convolution as binary_convolution
from .opset2 import ceil as ceil
from .opset2 import ceiling as ceiling
from .opset2 import clamp as clamp
from .opset2 import concat as concat
from .opset2 import constant as constant
from .opset2 import convert as convert
from .opset2 import convert_like as convert_like
from .opset2 import convolution as convolution
from .opset2 import convolution_backprop_data as convolution_backprop_data
from .opset2 import cos as cos
from .opset2 import cosh as cosh
from .opset2 import ctc_greedy_decoder as ctc_greedy_decoder
from .opset2 import deformable_convolution as deformable_convolution
from .opset2 import deformable_psroi_pooling as deformable_psroi_pooling
from .opset2 import depth_to_space as depth_to_space
from .opset2 import detection_output as detection_output
from .opset2 import divide as divide
from .opset2 import elu as elu
from .opset2 import equal as equal
from .opset2 import erf as erf
from .opset2 import exp as exp
from .opset2 import fake_quantize as fake_quantize
from .opset2 import floor as floor
from .opset2 import floor_mod as floor_mod
from .opset2 import gather as gather
from .opset2 import gather_tree as gather_tree
from .opset2 import gelu as gelu
from .opset2 import greater as greater
from .opset2 import greater_equal as greater_equal
from .opset2 import grn as grn
from .opset2 import group_convolution as group_convolution
from .opset2 import group_convolution_backprop_data as group_convolution_backprop_data
from .opset2 import hard_sigmoid as hard_sigmoid
from .opset2 import interpolate as interpolate
from .opset2 import less as less
from .opset2 import less_equal as less_equal
from .opset2 import log as log
from .opset2 import logical_and as logical_and
from .opset2 import logical_not as logical_not
from .opset2 import logical_or as logical_or
from .opset2 import logical_xor as logical_xor
from .opset2 import lrn as lrn
from .opset2 import lstm_cell as lstm_cell
from .opset2 import matmul as matmul
from .opset2 import max_pool as max_pool
from .opset2 import maximum as maximum
from .opset2 import minimum as minimum
from .opset2 import mod as mod
from .opset2 import multiply as multiply
from .opset2 import mvn as mvn
from .opset2 import negative as negative
from .opset2 import normalize_l2 as normalize_l2
from .opset2 import not_equal as not_equal
from .opset2 import one_hot as one_hot
from .opset2 import pad as pad
from .opset2 import parameter as parameter
from .opset2 import power as power
from .opset2 import prelu as prelu
from .opset2 import prior_box as prior_box
from .opset2 import prior_box_clustered as prior_box_clustered
from .opset2 import proposal as proposal
from .opset2 import psroi_pooling as psroi_pooling
from .opset2 import range as range
from .opset2 import reduce_logical_and as reduce_logical_and
from .opset2 import reduce_logical_or as reduce_logical_or
from .opset2 import reduce_max as reduce_max
from .opset2 import reduce_mean as reduce_mean
from .opset2 import reduce_min as reduce_min
from .opset2 import reduce_prod as reduce_prod
from .opset2 import reduce_sum as reduce_sum
from .opset2 import region_yolo as region_yolo
from .opset2 import relu as relu
from .opset2 import reorg_yolo as reorg_yolo
from .opset2 import reshape as reshape
from .opset2 import result as result
from .opset2 import reverse_sequence as reverse_sequence
from .opset2 import roi_pooling as roi_pooling
from .opset2 import select as select
from .opset2 import selu as selu
from .opset2 import sigmoid as sigmoid
from .opset2 import sign as sign
from .opset2 import sin as sin
from .opset2 import sinh as sinh
from .opset2 import softmax as softmax
from .opset2 import space_to_batch as space_to_batch
from .opset2 import space_to_depth as space_to_depth
from .opset2 import split as split
from .opset2 import sqrt as sqrt
from .opset2 import squared_difference as squared_difference
from .opset2 import squeeze as squeeze
from .opset2 import strided_slice as strided_slice
from .opset2 import subtract as subtract
from .opset2 import tan as tan
from .opset2 import tanh as tanh
from .opset2 import tensor_iterator as tensor_iterator
from .opset2 import tile as tile
from .opset2 import transpose as transpose
from .opset2 import unsqueeze as unsqueeze
from .opset2 import variadic_split as variadic_split

def assign(new_value: NodeInput, variable_id: Any, name: str | None = ...) -> Node: ...
def broadcast(data: NodeInput, target_shape: Any, axes_mapping: Any = ..., broadcast_spec: str = ..., name: str | None = ...) -> Node: ...
def bucketize(data: NodeInput, buckets: NodeInput, output_type: str = ..., with_right_bound: bool = ..., name: str | None = ...) -> Node: ...
def cum_sum(arg: NodeInput, axis: NodeInput, exclusive: bool = ..., reverse: bool = ..., name: str | None = ...) -> Node: ...
def cumsum(arg: NodeInput, axis: NodeInput, exclusive: bool = ..., reverse: bool = ..., name: str | None = ...) -> Node: ...
def embedding_bag_offsets_sum(emb_table: NodeInput, indices: NodeInput, offsets: NodeInput, default_index: NodeInput | None = ..., per_sample_weights: NodeInput | None = ..., name: str | None = ...) -> Node: ...
def embedding_bag_packed_sum(emb_table: NodeInput, indices: NodeInput, per_sample_weights: NodeInput | None = ..., name: str | None = ...) -> Node: ...
def embedding_segments_sum(emb_table: NodeInput, indices: NodeInput, segment_ids: NodeInput, num_segments: NodeInput | None = ..., default_index: NodeInput | None = ..., per_sample_weights: NodeInput | None = ..., name: str | None = ...) -> Node: ...
def extract_image_patches(image: NodeInput, sizes: Sequence[int], strides: Sequence[int], rates: Sequence[int], auto_pad: Any, name: str | None = ...) -> Node: ...
def gru_cell(X: NodeInput, initial_hidden_state: NodeInput, W: NodeInput, R: NodeInput, B: NodeInput, hidden_size: Any, activations: Any = ..., activations_alpha: Any = ..., activations_beta: Any = ..., clip: float = ..., linear_before_reset: bool = ..., name: str | None = ...) -> Node: ...
def non_max_suppression(boxes: NodeInput, scores: NodeInput, max_output_boxes_per_class: NodeInput | None = ..., iou_threshold: NodeInput | None = ..., score_threshold: NodeInput | None = ..., box_encoding: str = ..., sort_result_descending: bool = ..., output_type: str = ..., name: str | None = ...) -> Node: ...
def non_zero(data: NodeInput, output_type: str = ..., name: str | None = ...) -> Node: ...
def read_value(init_value: NodeInput, variable_id: Any, name: str | None = ...) -> Node: ...
def rnn_cell(X: NodeInput, initial_hidden_state: NodeInput, W: NodeInput, R: NodeInput, B: NodeInput, hidden_size: Any, activations: Any, activations_alpha: Any, activations_beta: Any, clip: float = ..., name: str | None = ...) -> Node: ...
def roi_align(data: NodeInput, rois: NodeInput, batch_indices: NodeInput, pooled_h: Any, pooled_w: Any, sampling_ratio: Any, spatial_scale: Any, mode: Any, name: str | None = ...) -> Node: ...
def scatter_elements_update(data: NodeInput, indices: NodeInput, updates: NodeInput, axis: NodeInput, name: str | None = ...) -> Node: ...
def scatter_update(data: NodeInput, indices: NodeInput, updates: NodeInput, axis: NodeInput, name: str | None = ...) -> Node: ...
def shape_of(data: NodeInput, output_type: str = ..., name: str | None = ...) -> Node: ...
def shuffle_channels(data: NodeInput, axis: Any, group: Any, name: str | None = ...) -> Node: ...
def topk(data: NodeInput, k: NodeInput, axis: Any, mode: Any, sort: Any, index_element_type: str = ..., name: str | None = ...) -> Node: ...
