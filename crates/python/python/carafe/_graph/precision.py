"""Lets a model compute in another float type."""

import numpy as np

from . import engine
from .ops import Constant, Parameter


def convert(model, source, target):
    """Changes parameters, constants and types in attributes from one type to the other; whether there were any."""
    changed = False
    for node in model.get_ordered_ops():
        for body in node._bodies():
            changed |= convert(body, source, target)
        if isinstance(node, Parameter) and node.get_element_type() == source:
            node.set_element_type(target)
            changed = True
        elif isinstance(node, Constant) and node.get_element_type() == source:
            limits = np.finfo(target.to_dtype())
            values = np.clip(node.get_data(), limits.min, limits.max).astype(target.to_dtype())
            constant = Constant(values)
            constant._copy_marks(node)
            node.output(0).replace(constant.output(0))
            changed = True
        elif node._op is not None:
            for name, value in node.get_attributes().items():
                if value == source.get_type_name() and name.endswith("type"):
                    node.set_attribute(name, target)
                    changed = True
    for variable in model._variables:
        if variable.info.data_type == source:
            info = variable.info
            info.data_type = target
            variable.update(info)
    if changed:
        model.validate_nodes_and_infer_types()
    return changed


def quantized_weights(model):
    """Stores constants behind a FakeQuantize as small integers, with what turns them into floats again."""
    from .factories import make_node

    changed = False
    for node in model.get_ordered_ops():
        for body in node._bodies():
            changed |= quantized_weights(body)
        sources = [source for source, _ in node._inputs]
        if node.get_type_name() != "FakeQuantize" or not all(isinstance(s, Constant) for s in sources):
            continue
        levels = node.get_attributes()["levels"]
        kind = {256: "i8", 255: "i8", 16: "i4", 15: "i4"}.get(levels)
        data, low, high, out_low, out_high = (s.get_data() for s in sources)
        if kind is None or data.dtype not in (np.float32, np.float16):
            continue
        least = -(levels // 2) if levels % 2 == 0 else -(levels - 1) // 2
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.round((data.astype(np.float64) - low) / (high - low) * (levels - 1))
        stored = np.clip(np.nan_to_num(steps), 0, levels - 1) + least
        scale = ((out_high.astype(np.float64) - out_low) / (levels - 1)).astype(data.dtype)
        safe = np.where(scale == 0, 1, scale)
        zero = (least - out_low / safe).astype(data.dtype)
        weights = Constant(engine.Type(kind), list(data.shape), stored.astype(np.int64))
        weights.friendly_name = f"{sources[0].friendly_name}/quantized"
        value = make_node("Convert", "opset1", [weights], {"destination_type": node.get_output_element_type(0)})
        value.friendly_name = f"{node.friendly_name}/convert"
        if np.any(np.abs(zero) > 1e-4):
            value = make_node("Subtract", "opset1", [value, Constant(np.array(zero, order="C"))], {})
            value.friendly_name = f"{node.friendly_name}/zero_point"
        value = make_node("Multiply", "opset1", [value, Constant(np.array(scale, order="C"))], {})
        value.friendly_name = f"{node.friendly_name}/fq_weights_scale"
        node.output(0).replace(value.output(0))
        changed = True
    return changed


def flush_subnormals(model):
    """Numbers of f32 constants that are too small for a full mantissa become 0; processors are slow with them."""
    for node in model.get_ordered_ops():
        for body in node._bodies():
            flush_subnormals(body)
        if not isinstance(node, Constant) or node.get_element_type() != engine.Type("f32"):
            continue
        data = node.get_data()
        small = (data != 0) & (np.abs(data) < np.finfo(np.float32).tiny)
        if np.any(small):
            constant = Constant(np.where(small, np.float32(0), data).astype(np.float32))
            constant._copy_marks(node)
            node.output(0).replace(constant.output(0))
