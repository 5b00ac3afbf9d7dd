# Written by scripts/python-opset-stubs.
from collections.abc import Sequence
from typing import Any

from . import Node, _NodeInput as NodeInput
from .opset1 import abs as abs
from .opset1 import absolute as absolute
from .opset1 import acos as acos
from .opset1 import add as add
from .opset1 import asin as asin
from .opset1 import atan as atan
from .opset1 import avg_pool as avg_pool
from .opset1 import batch_norm_inference as batch_norm_inference
from .opset1 import binary_convolution as binary_convolution
from .opset1 import broadcast as broadcast
from .opset1 import ceil as ceil
from .opset1 import ceiling as ceiling
from .opset1 import clamp as clamp
from .opset1 import concat as concat
from .opset1 import constant as constant
from .opset1 import convert as convert
from .opset1 import convert_like as convert_like
from .opset1 import convolution as convolution
from .opset1 import convolution_backprop_data as convolution_backprop_data
from .opset1 import cos as cos
from .opset1 import cosh as cosh
from .opset1 import ctc_greedy_decoder as ctc_greedy_decoder
from .opset1 import deformable_convolution as deformable_convolution
from .opset1 import deformable_psroi_pooling as deformable_psroi_pooling
from .opset1 import depth_to_space as depth_to_space
from .opset1 import detection_output as detection_output
from .opset1 import divide as divide
from .opset1 import elu as elu
from .opset1 import equal as equal
from .opset1 import erf as erf
from .opset1 import exp as exp
from .opset1 import fake_quantize as fake_quantize
from .opset1 import floor as floor
from .opset1 import floor_mod as floor_mod
from .opset1 import gather as gather
from .opset1 import gather_tree as gather_tree
from .opset1 import greater as greater
from .opset1 import greater_equal as greater_equal
from .opset1 import grn as grn
from .opset1 import group_convolution as group_convolution
from .opset1 import group_convolution_backprop_data as group_convolution_backprop_data
from .opset1 import hard_sigmoid as hard_sigmoid
from .opset1 import interpolate as interpolate
from .opset1 import less as less
from .opset1 import less_equal as less_equal
from .opset1 import log as log
from .opset1 import logical_and as logical_and
from .opset1 import logical_not as logical_not
from .opset1 import logical_or as logical_or
from .opset1 import logical_xor as logical_xor
from .opset1 import lrn as lrn
from .opset1 import lstm_cell as lstm_cell
from .opset1 import matmul as matmul
from .opset1 import max_pool as max_pool
from .opset1 import maximum as maximum
from .opset1 import minimum as minimum
from .opset1 import mod as mod
from .opset1 import multiply as multiply
from .opset1 import negative as negative
from .opset1 import non_max_suppression as non_max_suppression
from .opset1 import normalize_l2 as normalize_l2
from .opset1 import not_equal as not_equal
from .opset1 import one_hot as one_hot
from .opset1 import pad as pad
from .opset1 import parameter as parameter
from .opset1 import power as power
from .opset1 import prelu as prelu
from .opset1 import prior_box as prior_box
from .opset1 import prior_box_clustered as prior_box_clustered
from .opset1 import proposal as proposal
from .opset1 import psroi_pooling as psroi_pooling
from .opset1 import range as range
from .opset1 import reduce_logical_and as reduce_logical_and
from .opset1 import reduce_logical_or as reduce_logical_or
from .opset1 import reduce_max as reduce_max
from .opset1 import reduce_mean as reduce_mean
from .opset1 import reduce_min as reduce_min
from .opset1 import reduce_prod as reduce_prod
from .opset1 import reduce_sum as reduce_sum
from .opset1 import region_yolo as region_yolo
from .opset1 import relu as relu
from .opset1 import reshape as reshape
from .opset1 import result as result
from .opset1 import reverse_sequence as reverse_sequence
from .opset1 import select as select
from .opset1 import selu as selu
from .opset1 import shape_of as shape_of
from .opset1 import sigmoid as sigmoid
from .opset1 import sign as sign
from .opset1 import sin as sin
from .opset1 import sinh as sinh
from .opset1 import softmax as softmax
from .opset1 import space_to_depth as space_to_depth
from .opset1 import split as split
from .opset1 import sqrt as sqrt
from .opset1 import squared_difference as squared_difference
from .opset1 import squeeze as squeeze
from .opset1 import strided_slice as strided_slice
from .opset1 import subtract as subtract
from .opset1 import tan as tan
from .opset1 import tanh as tanh
from .opset1 import tensor_iterator as tensor_iterator
from .opset1 import tile as tile
from .opset1 import topk as topk
from .opset1 import transpose as transpose
from .opset1 import unsqueeze as unsqueeze
from .opset1 import variadic_split as variadic_split

def batch_to_space(data: NodeInput, block_shape: NodeInput, crops_begin: NodeInput, crops_end: NodeInput, name: str | None = ...) -> Node: ...
def gelu(node: NodeInput, name: str | None = ...) -> Node: ...
def mvn(data: NodeInput, across_channels: bool = ..., normalize_variance: bool = ..., eps: float = ..., name: str | None = ...) -> Node: ...
def reorg_yolo(input: NodeInput, stride: Any, name: str | None = ...) -> Node: ...
def roi_pooling(input: NodeInput, coords: Any, output_roi: Any = ..., spatial_scale: Any = ..., method: str = ..., name: str | None = ..., *, output_size: NodeInput | None = ...) -> Node: ...
def space_to_batch(data: NodeInput, block_shape: NodeInput, pads_begin: NodeInput, pads_end: NodeInput, name: str | None = ...) -> Node: ...
