"""Transformations that tools apply to models before they are saved or compiled."""

from .._graph import engine
from .._graph.precision import flush_subnormals, quantized_weights
from .._graph.stateful import low_latency, make_stateful


def apply_moc_transformations(model, cf, smart_reshape=False):
    """Fewer nodes that compute the same; constants are folded where `cf` says so.

    A model without Reshape needs no `smart_reshape`; one that has some is refused with it.
    """
    if smart_reshape and any(node.get_type_name() == "Reshape" for node in model.get_ordered_ops()):
        raise NotImplementedError(
            "apply_moc_transformations(smart_reshape=True): sizes inside of Reshape are not made to follow the inputs; "
            "reshape the model before it is exported"
        )
    flush_subnormals(model)
    if cf:
        model._take(engine.run_pass(model._engine(), "tidy"))


def apply_moc_legacy_transformations(model, params_with_custom_types=()):
    """As `apply_moc_transformations`, with constants folded."""
    apply_moc_transformations(model, cf=True)


def apply_low_latency_transformation(model, use_const_initializer=True):
    """Keeps what loops carry in variables."""
    low_latency(model, use_const_initializer)


def apply_make_stateful_transformation(model, param_res_names=None, *, pairs_to_replace=None):
    """Makes variables of pairs of inputs and outputs."""
    make_stateful(model, param_res_names if param_res_names is not None else pairs_to_replace)


def apply_pruning_transformation(model):
    """Removes output channels whose weights are all zero. Where there are such, this engine cannot remove them."""
    import numpy as np

    for node in model.get_ordered_ops():
        if node.get_type_name() not in ("Convolution", "GroupConvolution", "ConvolutionBackpropData", "MatMul"):
            continue
        weights = node.input_value(1).get_node()
        if weights.get_type_name() != "Constant" or len(weights.shape) < 2:
            continue
        channels = np.asarray(weights.data).reshape(weights.shape[0], -1)
        if len(channels) and not np.any(channels, axis=1).all():
            raise NotImplementedError(f"apply_pruning_transformation: zero channels of '{node.friendly_name}' cannot be removed")


def apply_fused_names_cleanup(model):
    """Takes the names of fused nodes out of the runtime information."""
    for node in model.get_ordered_ops():
        for key in [k for k in node.get_rt_info() if k.startswith("fused_names")]:
            del node.get_rt_info()[key]


def compress_model_transformation(model):
    """Stores float constants as f16."""
    model._take(engine.run_pass(model._engine(), "compress_to_fp16"))


def compress_quantize_weights_transformation(model):
    """Stores constants behind a FakeQuantize as small integers."""
    if quantized_weights(model):
        model.validate_nodes_and_infer_types()


def convert_sequence_to_tensor_iterator_transformation(model):
    """Sequences of recurrent cells as iterators over their cells."""
    from .._graph.sequences import to_iterators

    to_iterators(model)
