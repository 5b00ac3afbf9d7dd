"""Node factories whose inputs or attributes depend on the arguments."""

import warnings

import numpy as np

from ..exceptions import UserInputError
from ..utils.input_validation import check_valid_attributes, is_non_negative_value, is_positive_value
from . import engine
from .control import if_op, loop, tensor_iterator
from .factories import make_node
from .node import Node
from .ops import Constant, Parameter, Result, assign, read_value
from .ports import Output
from .variable import Variable, VariableInfo

FACTORIES = {}


def _of(opset, name=None):
    def keep(function):
        function.__module__ = f"carafe.opset{opset}"
        FACTORIES[opset, name or function.__name__] = function
        return function

    return keep


def _named(node, name):
    if isinstance(name, str):
        node.friendly_name = name
    return node


FACTORIES[1, "tensor_iterator"] = tensor_iterator
FACTORIES[5, "loop"] = loop
FACTORIES[8, "if_op"] = if_op
FACTORIES[6, "assign"] = assign


# Ends.


@_of(1)
def parameter(shape, dtype=np.float32, name=None):
    """An input of a model."""
    from ..utils.types import get_element_type

    kind = dtype if isinstance(dtype, engine.Type) else get_element_type(dtype)
    return _named(Parameter(kind, engine.PartialShape(shape)), name)


def _constant_v1(value, dtype=None, name=None):
    """A constant of an array or a number."""
    from ..utils.types import make_constant_node

    return _named(make_constant_node(value, dtype), name)


_of(1, "constant")(_constant_v1)
_constant_v1.__name__ = "constant"

_NARROW = {"u1", "u2", "u3", "i4", "u4", "u6", "nf4", "f4e2m1", "bf16", "f8e8m0", "f8e4m3", "f8e5m2"}


@_of(13)
def constant(value=None, dtype=None, name=None, *, shared_memory=None, tensor=None):
    """A constant of an array, a number or a tensor; its memory is shared on demand."""
    value = value if tensor is None else tensor
    if isinstance(value, engine.Tensor):
        shared = dtype if isinstance(dtype, bool) else shared_memory
        return _named(Constant(value, True if shared is None else shared), name)
    array = value if isinstance(value, np.ndarray) else np.array(value)
    shared = bool(shared_memory) and isinstance(value, np.ndarray)
    if isinstance(dtype, engine.Type) and dtype.get_type_name() in _NARROW:
        return _named(Constant(dtype, list(array.shape), array.reshape(-1).tolist()), name)
    if dtype is not None:
        wanted = dtype.to_dtype() if isinstance(dtype, engine.Type) else dtype
        wanted = {int: np.int32, float: np.float32, bool: np.bool_}.get(wanted, wanted)
        if array.dtype != np.dtype(wanted):
            array, shared = array.astype(wanted), False
    return _named(Constant(array, shared_memory=shared), name)


def _result(data, name=None):
    from ..utils.types import as_node

    value = as_node(data)
    return _named(Result(value.output(0) if isinstance(value, Node) else value), name)


@_of(1)
def result(data, name=None):
    """An output of a model."""
    return _result(data, name)


@_of(13, "result")
def result_v13(data, name=None):
    """An output of a model."""
    return _result(data, name)


result_v13.__name__ = "result"


# Inputs as a list.


@_of(1)
def concat(nodes, axis, name=None):
    """Joins tensors along an axis."""
    return make_node("Concat", "opset1", list(nodes), {"axis": axis}, name)


@_of(7)
def einsum(inputs, equation, name=None):
    """Sums of products as an equation says."""
    return make_node("Einsum", "opset7", list(inputs), {"equation": equation}, name)


# Inputs that depend on a mode.


@_of(1)
def broadcast(data, target_shape, axes_mapping=None, mode="NUMPY", name=None):
    """Repeats a tensor to a shape."""
    inputs = [data, target_shape, *([axes_mapping] if mode.upper() == "EXPLICIT" else [])]
    return make_node("Broadcast", "opset1", inputs, {"mode": mode}, name)


@_of(3, "broadcast")
def broadcast_v3(data, target_shape, axes_mapping=None, broadcast_spec="NUMPY", name=None):
    """Repeats a tensor to a shape."""
    inputs = [data, target_shape, *([axes_mapping] if broadcast_spec.upper() == "EXPLICIT" else [])]
    return make_node("Broadcast", "opset3", inputs, {"mode": broadcast_spec}, name)


broadcast_v3.__name__ = "broadcast"


@_of(13)
def scaled_dot_product_attention(query, key, value, attention_mask=None, scale=None, causal=False, name=None):
    """Attention of queries to keys and values."""
    from ..utils.types import as_node

    inputs = [as_node(v, name=name) for v in (query, key, value)]
    if attention_mask is not None:
        inputs.append(attention_mask)
    elif scale is not None:
        zero = Constant(np.array(0, np.int32))
        inputs.append(make_node("ConvertLike", "opset1", [zero, inputs[0]], {}))
    if scale is not None:
        inputs.append(scale)
    return make_node("ScaledDotProductAttention", "opset13", inputs, {"causal": causal}, name)


def _planes(kind, planes, count, name):
    given = [p for p in planes if p is not None]
    if len(given) not in (1, count):
        words = {2: "two", 3: "three"}[count]
        text = f"Operation {kind} must have one (single plane) or {words} (separate planes) inputs provided."
        raise UserInputError(text)
    return make_node(kind, "opset8", given, {}, name)


@_of(8)
def i420_to_bgr(arg, arg_u=None, arg_v=None, name=None):
    """A picture from I420 to BGR."""
    return _planes("I420toBGR", (arg, arg_u, arg_v), 3, name)


@_of(8)
def i420_to_rgb(arg, arg_u=None, arg_v=None, name=None):
    """A picture from I420 to RGB."""
    return _planes("I420toRGB", (arg, arg_u, arg_v), 3, name)


# Attributes that follow from others.


def _deconvolution(kind, data, filters, strides, output_shape, attributes, name):
    axes = len(strides)
    defaults = {"pads_begin": [0] * axes, "pads_end": [0] * axes, "dilations": [1] * axes, "output_padding": [0] * axes}
    defaults["auto_pad"] = "explicit"
    chosen = {key: defaults[key] if value is None else value for key, value in attributes.items()}
    inputs = [data, filters, *([] if output_shape is None else [output_shape])]
    return make_node(kind, "opset1", inputs, {"strides": strides, **chosen}, name)


@_of(1)
def convolution_backprop_data(
    data,
    filters,
    strides,
    output_shape=None,
    pads_begin=None,
    pads_end=None,
    dilations=None,
    auto_pad=None,
    output_padding=None,
    name=None,
):
    """The gradient of a convolution with respect to its data."""
    attributes = {"pads_begin": pads_begin, "pads_end": pads_end, "dilations": dilations, "auto_pad": auto_pad}
    attributes["output_padding"] = output_padding
    return _deconvolution("ConvolutionBackpropData", data, filters, strides, output_shape, attributes, name)


@_of(1)
def group_convolution_backprop_data(
    data,
    filters,
    strides,
    output_shape=None,
    pads_begin=None,
    pads_end=None,
    dilations=None,
    auto_pad="EXPLICIT",
    output_padding=None,
    name=None,
):
    """The gradient of a convolution in groups with respect to its data."""
    attributes = {"pads_begin": pads_begin, "pads_end": pads_end, "dilations": dilations, "auto_pad": auto_pad}
    attributes["output_padding"] = output_padding
    return _deconvolution("GroupConvolutionBackpropData", data, filters, strides, output_shape, attributes, name)


@_of(1)
def lstm_cell(
    X,  # noqa: N803
    initial_hidden_state,
    initial_cell_state,
    W,  # noqa: N803
    R,  # noqa: N803
    B,  # noqa: N803
    hidden_size,
    activations=None,
    activations_alpha=None,
    activations_beta=None,
    clip=0.0,
    name=None,
):
    """One step of an LSTM."""
    from ..utils.types import as_node

    first = as_node(X, name=name)
    kind = first.get_output_element_type(0) if isinstance(first, Node) else first.get_element_type()
    peepholes = Constant(kind, [3 * hidden_size], [0.0] * (3 * hidden_size))
    attributes = {
        "hidden_size": hidden_size,
        "activations": activations or ["sigmoid", "tanh", "tanh"],
        "activations_alpha": activations_alpha or [],
        "activations_beta": activations_beta or [],
        "clip": clip,
        "weights_format": "fico",
        "input_forget": False,
    }
    inputs = [first, initial_hidden_state, initial_cell_state, W, R, B, peepholes]
    return make_node("LSTMCell", "opset1", inputs, attributes, name)


@_of(2)
def roi_pooling(input, coords, output_roi=None, spatial_scale=None, method="max", name=None, *, output_size=None):
    """Pools regions of a feature map."""
    roi = output_size if output_size is not None else output_roi
    if roi is None:
        raise AttributeError("One of the following arguments must be defined: `output_roi`, `output_size`!")
    if spatial_scale is None:
        raise AttributeError("The following arguments must be defined: `spatial_scale`!")
    roi = list(roi)
    attributes = {"spatial_scale": spatial_scale, "method": method, "pooled_h": roi[0], "pooled_w": roi[1]}
    node = make_node("ROIPooling", "opset2", [input, coords], attributes, name)

    def get_roi():
        found = node.get_attributes()
        return [found["pooled_h"], found["pooled_w"]]

    def set_roi(sizes):
        node.set_attribute("pooled_h", sizes[0])
        node.set_attribute("pooled_w", sizes[1])

    node.get_output_roi, node.set_output_roi = get_roi, set_roi
    if output_size is not None:
        text = "`output_size` is deprecated and will be removed in future. Please use only `output_roi`."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        node.get_output_size, node.set_output_size = get_roi, set_roi
    return node


def _seeds(global_seed, op_seed):
    if global_seed < 0:
        raise RuntimeError(f"global_seed should be positive or 0. Got: {global_seed}")
    if op_seed < 0:
        raise RuntimeError(f"op_seed should be positive or 0. Got: {op_seed}")
    return {"global_seed": global_seed, "op_seed": op_seed}


@_of(8)
def random_uniform(
    output_shape, min_val, max_val, output_type, global_seed=0, op_seed=0, alignment="tensorflow", name=None
):
    """Random numbers between two bounds."""
    attributes = {"output_type": output_type, "alignment": alignment, **_seeds(global_seed, op_seed)}
    return make_node("RandomUniform", "opset8", [output_shape, min_val, max_val], attributes, name)


@_of(13)
def multinomial(
    probs, num_samples, convert_type, with_replacement, log_probs, global_seed=0, op_seed=0, name=None
):
    """Samples of classes by their probabilities."""
    attributes = {"convert_type": convert_type, "with_replacement": with_replacement, "log_probs": log_probs}
    attributes.update(_seeds(global_seed, op_seed))
    return make_node("Multinomial", "opset13", [probs, num_samples], attributes, name)


@_of(16)
def segment_max(data, segment_ids, num_segments=None, fill_mode=None, name=None):
    """The greatest element of each segment."""
    if fill_mode is None:
        raise ValueError("fill_mode must be provided and can be either 'ZERO' or 'LOWEST'")
    inputs = [data, segment_ids, *([] if num_segments is None else [num_segments])]
    return make_node("SegmentMax", "opset16", inputs, {"fill_mode": fill_mode}, name)


@_of(15)
def embedding_bag_offsets(
    emb_table, indices, offsets, default_index=None, per_sample_weights=None, reduction="SUM", name=None
):
    """Sums or means of rows of a table, in bags that begin at offsets."""
    from ..utils.types import as_node

    indices = as_node(indices, name=name)
    inputs = [emb_table, indices, offsets]
    if default_index is not None:
        inputs.append(default_index)
    elif per_sample_weights is not None:
        inputs.append(make_node("ConvertLike", "opset1", [Constant(np.array(-1, np.int32)), indices], {}))
    if per_sample_weights is not None:
        inputs.append(per_sample_weights)
    return make_node("EmbeddingBagOffsets", "opset15", inputs, {"reduction": reduction}, name)


# Variables.


def _variable(variable_id, variable_type, variable_shape):
    from ..utils.types import get_element_type

    if variable_type is not None and not isinstance(variable_type, (type, np.dtype, engine.Type, str)):
        raise TypeError("The necessary overload for read_value was not found")
    info = VariableInfo(variable_id)
    if isinstance(variable_type, (engine.Type, str)):
        info.data_type = engine.Type(variable_type)
    elif variable_type is not None:
        info.data_type = get_element_type(variable_type)
    if variable_shape is not None:
        info.data_shape = engine.PartialShape(variable_shape)
    return Variable(info)


def _read_value(*args, name=None, **kwargs):
    """Gives what a variable holds: `(init_value, variable)`, `(variable)`, `(init_value, variable_id, variable_type,
    variable_shape)` or `(variable_id, variable_type, variable_shape)`."""
    args = list(args)
    variable = kwargs.get("ov_variable")
    if variable is None:
        at = next((i for i, a in enumerate(args) if isinstance(a, Variable)), None)
        variable = args.pop(at) if at is not None else None
    initial = kwargs.get("init_value")
    if variable is None:
        if initial is None and args and not isinstance(args[0], str):
            initial = args.pop(0)
        fields = ["variable_id", "variable_type", "variable_shape", "name"]
        given = dict(zip(fields, args), **{k: v for k, v in kwargs.items() if k in fields})
        name = given.pop("name", name)
        variable = _variable(given["variable_id"], given.get("variable_type"), given.get("variable_shape"))
    elif args and initial is None and not isinstance(args[0], str):
        initial = args.pop(0)
    if args and isinstance(args[-1], str) and name is None and "variable_id" not in kwargs and args[-1] != variable.get_id():
        name = args[-1]
    node = read_value(variable) if initial is None else read_value(initial, variable)
    return _named(node, name)


_read_value.__name__ = "read_value"
_of(6, "read_value")(_read_value)


# Attributes as a dictionary, which is checked.


def _checked(kind, opset, inputs, attributes, requirements, name):
    check_valid_attributes(kind, attributes, requirements)
    return make_node(kind, opset, inputs, attributes, name)


@_of(1)
def interpolate(image, output_shape, attrs, name=None):
    """Resizes a picture."""
    requirements = [
        ("axes", True, np.integer, is_non_negative_value),
        ("mode", True, np.str_, None),
        ("align_corners", False, np.bool_, None),
        ("antialias", False, np.bool_, None),
        ("pads_begin", False, np.integer, is_non_negative_value),
        ("pads_end", False, np.integer, is_non_negative_value),
    ]
    return _checked("Interpolate", "opset1", [image, output_shape], attrs, requirements, name)


_PRIOR_BOX = [
    ("offset", True, np.floating, is_non_negative_value),
    ("min_size", False, np.floating, is_positive_value),
    ("max_size", False, np.floating, is_positive_value),
    ("aspect_ratio", False, np.floating, is_positive_value),
    ("flip", False, np.bool_, None),
    ("clip", False, np.bool_, None),
    ("step", False, np.floating, is_non_negative_value),
    ("variance", False, np.floating, is_positive_value),
    ("scale_all_sizes", False, np.bool_, None),
    ("fixed_ratio", False, np.floating, is_positive_value),
    ("fixed_size", False, np.floating, is_positive_value),
    ("density", False, np.floating, is_positive_value),
]


@_of(1)
def prior_box(layer_shape, image_shape, attrs, name=None):
    """Boxes of several sizes around each cell."""
    return _checked("PriorBox", "opset1", [layer_shape, image_shape], attrs, _PRIOR_BOX, name)


@_of(8, "prior_box")
def prior_box_v8(layer_shape, image_shape, attrs, name=None):
    """Boxes of several sizes around each cell."""
    requirements = [*_PRIOR_BOX, ("min_max_aspect_ratios_order", False, np.bool_, None)]
    return _checked("PriorBox", "opset8", [layer_shape, image_shape], attrs, requirements, name)


prior_box_v8.__name__ = "prior_box"


@_of(1)
def prior_box_clustered(output_size, image_size, attrs, name=None):
    """Boxes of given sizes around each cell."""
    requirements = [
        ("width", True, np.floating, is_positive_value),
        ("height", True, np.floating, is_positive_value),
        ("clip", False, np.bool_, None),
        ("step_widths", False, np.floating, is_positive_value),
        ("step_heights", False, np.floating, is_positive_value),
        ("step", False, np.floating, is_positive_value),
        ("offset", True, np.floating, is_positive_value),
        ("variance", False, np.floating, is_positive_value),
    ]
    return _checked("PriorBoxClustered", "opset1", [output_size, image_size], attrs, requirements, name)


_PROPOSAL = [
    ("base_size", True, np.unsignedinteger, is_positive_value),
    ("pre_nms_topn", True, np.unsignedinteger, is_positive_value),
    ("post_nms_topn", True, np.unsignedinteger, is_positive_value),
    ("nms_thresh", True, np.floating, is_positive_value),
    ("feat_stride", True, np.unsignedinteger, is_positive_value),
    ("min_size", True, np.unsignedinteger, is_positive_value),
    ("ratio", True, np.floating, None),
    ("scale", True, np.floating, None),
    ("clip_before_nms", False, np.bool_, None),
    ("clip_after_nms", False, np.bool_, None),
    ("normalize", False, np.bool_, None),
    ("box_size_scale", False, np.floating, is_positive_value),
    ("box_coordinate_scale", False, np.floating, is_positive_value),
    ("framework", False, np.str_, None),
]


@_of(1)
def proposal(class_probs, bbox_deltas, image_shape, attrs, name=None):
    """Regions that may hold an object."""
    return _checked("Proposal", "opset1", [class_probs, bbox_deltas, image_shape], attrs, _PROPOSAL, name)


@_of(4, "proposal")
def proposal_v4(class_probs, bbox_deltas, image_shape, attrs, name=None):
    """Regions that may hold an object, with their probabilities."""
    return _checked("Proposal", "opset4", [class_probs, bbox_deltas, image_shape], attrs, _PROPOSAL, name)


proposal_v4.__name__ = "proposal"

_DETECTION_OUTPUT = [
    ("background_label_id", False, np.integer, None),
    ("top_k", False, np.integer, None),
    ("variance_encoded_in_target", False, np.bool_, None),
    ("keep_top_k", True, np.integer, None),
    ("code_type", False, np.str_, None),
    ("share_location", False, np.bool_, None),
    ("nms_threshold", True, np.floating, is_non_negative_value),
    ("confidence_threshold", False, np.floating, is_non_negative_value),
    ("clip_after_nms", False, np.bool_, None),
    ("clip_before_nms", False, np.bool_, None),
    ("decrease_label_id", False, np.bool_, None),
    ("normalized", False, np.bool_, None),
    ("input_height", False, np.integer, is_positive_value),
    ("input_width", False, np.integer, is_positive_value),
    ("objectness_score", False, np.floating, is_non_negative_value),
]


def _detection_output(opset, inputs, attrs, requirements, name):
    given = [i for i in inputs if i is not None]
    return _checked("DetectionOutput", opset, given, attrs, requirements, name)


@_of(1)
def detection_output(
    box_logits, class_preds, proposals, attrs, aux_class_preds=None, aux_box_preds=None, name=None
):
    """The boxes of objects that were found."""
    requirements = [*_DETECTION_OUTPUT, ("num_classes", True, np.integer, is_positive_value)]
    inputs = (box_logits, class_preds, proposals, aux_class_preds, aux_box_preds)
    return _detection_output("opset1", inputs, attrs, requirements, name)


@_of(8, "detection_output")
def detection_output_v8(
    box_logits, class_preds, proposals, attrs, aux_class_preds=None, aux_box_preds=None, name=None
):
    """The boxes of objects that were found."""
    inputs = (box_logits, class_preds, proposals, aux_class_preds, aux_box_preds)
    return _detection_output("opset8", inputs, attrs, _DETECTION_OUTPUT, name)


detection_output_v8.__name__ = "detection_output"

__all__ = ["FACTORIES", "Output"]
