# Written by scripts/python-opset-stubs.
from collections.abc import Sequence
from typing import Any

from . import Node, _NodeInput as NodeInput
from .opset4 import abs as abs
from .opset4 import absolute as absolute
from .opset4 import acos as acos
from .opset4 import acosh as acosh
from .opset4 import add as add
from .opset4 import asin as asin
from .opset4 import asinh as asinh
from .opset4 import assign as assign
from .opset4 import atan as atan
from .opset4 import atanh as atanh
from .opset4 import avg_pool as avg_pool
from .opset4 import batch_to_space as batch_to_space
from .opset4 import binary_convolution as binary_convolution
from .opset4 import broadcast as broadcast
from .opset4 import bucketize as bucketize
from .opset4 import ceil as ceil
from .opset4 import ceiling as ceiling
from .opset4 import clamp as clamp
from .opset4 import concat as concat
from .opset4 import constant as constant
from .opset4 import convert as convert
from .opset4 import convert_like as convert_like
from .opset4 import convolution as convolution
from .opset4 import convolution_backprop_data as convolution_backprop_data
from .opset4 import cos as cos
from .opset4 import cosh as cosh
from .opset4 import ctc_greedy_decoder as ctc_greedy_decoder
from .opset4 import ctc_loss as ctc_loss
from .opset4 import cum_sum as cum_sum
from .opset4 import cumsum as cumsum
from .opset4 import deformable_convolution as deformable_convolution
from .opset4 import deformable_psroi_pooling as deformable_psroi_pooling
from .opset4 import depth_to_space as depth_to_space
from .opset4 import detection_output as detection_output
from .opset4 import divide as divide
from .opset4 import elu as elu
from .opset4 import embedding_bag_offsets_sum as embedding_bag_offsets_sum
from .opset4 import embedding_bag_packed_sum as embedding_bag_packed_sum
from .opset4 import embedding_segments_sum as embedding_segments_sum
from .opset4 import equal as equal
from .opset4 import erf as erf
from .opset4 import exp as exp
from .opset4 import extract_image_patches as extract_image_patches
from .opset4 import fake_quantize as fake_quantize
from .opset4 import floor as floor
from .opset4 import floor_mod as floor_mod
from .opset4 import gather as gather
from .opset4 import gather_tree as gather_tree
from .opset4 import gelu as gelu
from .opset4 import greater as greater
from .opset4 import greater_equal as greater_equal
from .opset4 import grn as grn
from .opset4 import group_convolution as group_convolution
from .opset4 import group_convolution_backprop_data as group_convolution_backprop_data
from .opset4 import gru_cell as gru_cell
from .opset4 import hard_sigmoid as hard_sigmoid
from .opset4 import hswish as hswish
from .opset4 import interpolate as interpolate
from .opset4 import less as less
from .opset4 import less_equal as less_equal
from .opset4 import log as log
from .opset4 import logical_and as logical_and
from .opset4 import logical_not as logical_not
from .opset4 import logical_or as logical_or
from .opset4 import logical_xor as logical_xor
from .opset4 import lrn as lrn
from .opset4 import lstm_cell as lstm_cell
from .opset4 import matmul as matmul
from .opset4 import max_pool as max_pool
from .opset4 import maximum as maximum
from .opset4 import minimum as minimum
from .opset4 import mish as mish
from .opset4 import mod as mod
from .opset4 import multiply as multiply
from .opset4 import mvn as mvn
from .opset4 import negative as negative
from .opset4 import non_zero as non_zero
from .opset4 import normalize_l2 as normalize_l2
from .opset4 import not_equal as not_equal
from .opset4 import one_hot as one_hot
from .opset4 import pad as pad
from .opset4 import parameter as parameter
from .opset4 import power as power
from .opset4 import prelu as prelu
from .opset4 import prior_box as prior_box
from .opset4 import prior_box_clustered as prior_box_clustered
from .opset4 import proposal as proposal
from .opset4 import psroi_pooling as psroi_pooling
from .opset4 import range as range
from .opset4 import read_value as read_value
from .opset4 import reduce_l1 as reduce_l1
from .opset4 import reduce_l2 as reduce_l2
from .opset4 import reduce_logical_and as reduce_logical_and
from .opset4 import reduce_logical_or as reduce_logical_or
from .opset4 import reduce_max as reduce_max
from .opset4 import reduce_mean as reduce_mean
from .opset4 import reduce_min as reduce_min
from .opset4 import reduce_prod as reduce_prod
from .opset4 import reduce_sum as reduce_sum
from .opset4 import region_yolo as region_yolo
from .opset4 import relu as relu
from .opset4 import reorg_yolo as reorg_yolo
from .opset4 import reshape as reshape
from .opset4 import result as result
from .opset4 import reverse_sequence as reverse_sequence
from .opset4 import rnn_cell as rnn_cell
from .opset4 import roi_align as roi_align
from .opset4 import roi_pooling as roi_pooling
from .opset4 import scatter_elements_update as scatter_elements_update
from .opset4 import scatter_nd_update as scatter_nd_update
from .opset4 import scatter_update as scatter_update
from .opset4 import select as select
from .opset4 import selu as selu
from .opset4 import shape_of as shape_of
from .opset4 import shuffle_channels as shuffle_channels
from .opset4 import sigmoid as sigmoid
from .opset4 import sign as sign
from .opset4 import sin as sin
from .opset4 import sinh as sinh
from .opset4 import softmax as softmax
from .opset4 import softplus as softplus
from .opset4 import space_to_batch as space_to_batch
from .opset4 import space_to_depth as space_to_depth
from .opset4 import split as split
from .opset4 import sqrt as sqrt
from .opset4 import squared_difference as squared_difference
from .opset4 import squeeze as squeeze
from .opset4 import strided_slice as strided_slice
from .opset4 import subtract as subtract
from .opset4 import swish as swish
from .opset4 import tan as tan
from .opset4 import tanh as tanh
from .opset4 import tensor_iterator as tensor_iterator
from .opset4 import tile as tile
from .opset4 import topk as topk
from .opset4 import transpose as transpose
from .opset4 import unsqueeze as unsqueeze
from .opset4 import variadic_split as variadic_split

def batch_norm_inference(data: NodeInput, gamma: NodeInput, beta: NodeInput, mean: NodeInput, variance: NodeInput, epsilon: Any, name: str | None = ...) -> Node: ...
def gather_nd(data: NodeInput, indices: NodeInput, batch_dims: int = ..., name: str | None = ...) -> Node: ...
def gru_sequence(X: NodeInput, initial_hidden_state: NodeInput, sequence_lengths: NodeInput, W: NodeInput, R: NodeInput, B: NodeInput, hidden_size: Any, direction: Any, activations: Any = ..., activations_alpha: Any = ..., activations_beta: Any = ..., clip: float = ..., linear_before_reset: bool = ..., name: str | None = ...) -> Node: ...
def hsigmoid(data: NodeInput, name: str | None = ...) -> Node: ...
def log_softmax(data: NodeInput, axis: Any, name: str | None = ...) -> Node: ...
from .op import loop as loop
def lstm_sequence(X: NodeInput, initial_hidden_state: NodeInput, initial_cell_state: NodeInput, sequence_lengths: NodeInput, W: NodeInput, R: NodeInput, B: NodeInput, hidden_size: Any, direction: Any, activations: Any = ..., activations_alpha: Any = ..., activations_beta: Any = ..., clip: float = ..., name: str | None = ...) -> Node: ...
def non_max_suppression(boxes: NodeInput, scores: NodeInput, max_output_boxes_per_class: NodeInput | None = ..., iou_threshold: NodeInput | None = ..., score_threshold: NodeInput | None = ..., soft_nms_sigma: NodeInput | None = ..., box_encoding: str = ..., sort_result_descending: bool = ..., output_type: str = ..., name: str | None = ...) -> Node: ...
def rnn_sequence(X: NodeInput, initial_hidden_state: NodeInput, sequence_lengths: NodeInput, W: NodeInput, R: NodeInput, B: NodeInput, hidden_size: Any, direction: Any, activations: Any = ..., activations_alpha: Any = ..., activations_beta: Any = ..., clip: float = ..., name: str | None = ...) -> Node: ...
def round(data: NodeInput, mode: str = ..., name: str | None = ...) -> Node: ...
