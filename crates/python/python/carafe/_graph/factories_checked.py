"""Node factories whose attributes come as a dictionary, which is checked."""

import numpy as np

from ..utils.input_validation import check_valid_attributes, is_non_negative_value, is_positive_value
from .factories import make_node

CHECKED = {}


def _of(opset, name=None):
    def keep(function):
        function.__module__ = f"carafe.opset{opset}"
        CHECKED[opset, name or function.__name__] = function
        return function

    return keep


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
