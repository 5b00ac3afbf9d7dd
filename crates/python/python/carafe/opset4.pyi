# Written by scripts/python-opset-stubs.
from collections.abc import Sequence
from typing import Any

from . import Node, _NodeInput as NodeInput
from .opset3 import abs as abs
from .opset3 import absolute as absolute
from .opset3 import acos as acos
from .opset3 import add as add
from .opset3 import asin as asin
from .opset3 import assign as assign
from .opset3 import atan as atan
from .opset3 import avg_pool as avg_pool
from .opset3 import batch_norm_inference as batch_norm_inference
from .opset3 import batch_to_space as batch_to_space
from .opset3 import binary_convolution as binary_convolution
from .opset3 import broadcast as broadcast
from .opset3 import bucketize as bucketize
from .opset3 import ceil as ceil
from .opset3 import ceiling as ceiling
from .opset3 import clamp as clamp
from .opset3 import concat as concat
from .opset3 import constant as constant
from .opset3 import convert as convert
from .opset3 import convert_like as convert_like
from .opset3 import convolution as convolution
from .opset3 import convolution_backprop_data as convolution_backprop_data
from .opset3 import cos as cos
from .opset3 import cosh as cosh
from .opset3 import ctc_greedy_decoder as ctc_greedy_decoder
from .opset3 import cum_sum as cum_sum
from .opset3 import cumsum as cumsum
from .opset3 import deformable_convolution as deformable_convolution
from .opset3 import deformable_psroi_pooling as deformable_psroi_pooling
from .opset3 import depth_to_space as depth_to_space
from .opset3 import detection_output as detection_output
from .opset3 import divide as divide
from .opset3 import elu as elu
from .opset3 import embedding_bag_offsets_sum as embedding_bag_offsets_sum
from .opset3 import embedding_bag_packed_sum as embedding_bag_packed_sum
from .opset3 import embedding_segments_sum as embedding_segments_sum
from .opset3 import equal as equal
from .opset3 import erf as erf
from .opset3 import exp as exp
from .opset3 import extract_image_patches as extract_image_patches
from .opset3 import fake_quantize as fake_quantize
from .opset3 import floor as floor
from .opset3 import floor_mod as floor_mod
from .opset3 import gather as gather
from .opset3 import gather_tree as gather_tree
from .opset3 import gelu as gelu
from .opset3 import greater as greater
from .opset3 import greater_equal as greater_equal
from .opset3 import grn as grn
from .opset3 import group_convolution as group_convolution
from .opset3 import group_convolution_backprop_data as group_convolution_backprop_data
from .opset3 import gru_cell as gru_cell
from .opset3 import hard_sigmoid as hard_sigmoid
from .opset3 import interpolate as interpolate
from .opset3 import less as less
from .opset3 import less_equal as less_equal
from .opset3 import log as log
from .opset3 import logical_and as logical_and
from .opset3 import logical_not as logical_not
from .opset3 import logical_or as logical_or
from .opset3 import logical_xor as logical_xor
from .opset3 import lrn as lrn
from .opset3 import matmul as matmul
from .opset3 import max_pool as max_pool
from .opset3 import maximum as maximum
from .opset3 import minimum as minimum
from .opset3 import mod as mod
from .opset3 import multiply as multiply
from .opset3 import mvn as mvn
from .opset3 import negative as negative
from .opset3 import non_zero as non_zero
from .opset3 import normalize_l2 as normalize_l2
from .opset3 import not_equal as not_equal
from .opset3 import one_hot as one_hot
from .opset3 import pad as pad
from .opset3 import parameter as parameter
from .opset3 import power as power
from .opset3 import prelu as prelu
from .opset3 import prior_box as prior_box
from .opset3 import prior_box_clustered as prior_box_clustered
from .opset3 import psroi_pooling as psroi_pooling
from .opset3 import range as range
from .opset3 import read_value as read_value
from .opset3 import reduce_logical_and as reduce_logical_and
from .opset3 import reduce_logical_or as reduce_logical_or
from .opset3 import reduce_max as reduce_max
from .opset3 import reduce_mean as reduce_mean
from .opset3 import reduce_min as reduce_min
from .opset3 import reduce_prod as reduce_prod
from .opset3 import reduce_sum as reduce_sum
from .opset3 import region_yolo as region_yolo
from .opset3 import relu as relu
from .opset3 import reorg_yolo as reorg_yolo
from .opset3 import reshape as reshape
from .opset3 import result as result
from .opset3 import reverse_sequence as reverse_sequence
from .opset3 import rnn_cell as rnn_cell
from .opset3 import roi_align as roi_align
from .opset3 import roi_pooling as roi_pooling
from .opset3 import scatter_elements_update as scatter_elements_update
from .opset3 import scatter_update as scatter_update
from .opset3 import select as select
from .opset3 import selu as selu
from .opset3 import shape_of as shape_of
from .opset3 import shuffle_channels as shuffle_channels
from .opset3 import sigmoid as sigmoid
from .opset3 import sign as sign
from .opset3 import sin as sin
from .opset3 import sinh as sinh
from .opset3 import softmax as softmax
from .opset3 import space_to_batch as space_to_batch
from .opset3 import space_to_depth as space_to_depth
from .opset3 import split as split
from .opset3 import sqrt as sqrt
from .opset3 import squared_difference as squared_difference
from .opset3 import squeeze as squeeze
from .opset3 import strided_slice as strided_slice
from .opset3 import subtract as subtract
from .opset3 import tan as tan
from .opset3 import tanh as tanh
from .opset3 import tensor_iterator as tensor_iterator
from .opset3 import tile as tile
from .opset3 import topk as topk
from .opset3 import transpose as transpose
from .opset3 import unsqueeze as unsqueeze
from .opset3 import variadic_split as variadic_split

def acosh(node: NodeInput, name: str | None = ...) -> Node: ...
def asinh(node: NodeInput, name: str | None = ...) -> Node: ...
def atanh(node: NodeInput, name: str | None = ...) -> Node: ...
def ctc_loss(logits: NodeInput, logit_length: NodeInput, labels: NodeInput, label_length: NodeInput, blank_index: NodeInput | None = ..., preprocess_collapse_repeated: bool = ..., ctc_merge_repeated: bool = ..., unique: bool = ..., name: str | None = ...) -> Node: ...
def hswish(data: NodeInput, name: str | None = ...) -> Node: ...
def lstm_cell(X: NodeInput, initial_hidden_state: NodeInput, initial_cell_state: NodeInput, W: NodeInput, R: NodeInput, B: NodeInput, hidden_size: Any, activations: Any = ..., activations_alpha: Any = ..., activations_beta: Any = ..., clip: float = ..., name: str | None = ...) -> Node: ...
def mish(data: NodeInput, name: str | None = ...) -> Node: ...
def non_max_suppression(boxes: NodeInput, scores: NodeInput, max_output_boxes_per_class: NodeInput | None = ..., iou_threshold: NodeInput | None = ..., score_threshold: NodeInput | None = ..., box_encoding: str = ..., sort_result_descending: bool = ..., output_type: str = ..., name: str | None = ...) -> Node: ...
def proposal(class_probs: Any, bbox_deltas: Any, image_shape: Any, attrs: Any, name: str | None = ...) -> Node: ...
def reduce_l1(node: NodeInput, reduction_axes: NodeInput, keep_dims: bool = ..., name: str | None = ...) -> Node: ...
def reduce_l2(node: NodeInput, reduction_axes: NodeInput, keep_dims: bool = ..., name: str | None = ...) -> Node: ...
def scatter_nd_update(data: NodeInput, indices: NodeInput, updates: NodeInput, name: str | None = ...) -> Node: ...
def softplus(data: NodeInput, name: str | None = ...) -> Node: ...
def swish(data: NodeInput, beta: NodeInput | None = ..., name: str | None = ...) -> Node: ...
