"""onnxruntime and OpenVINO: a model and {input name: value} to [(name, element type, array)].

To be called in a worker process: both may end the process they run in.
"""

import ctypes
import os

import numpy as np

from . import values

PEERS = ("openvino", "onnxruntime")
OPENVINO_CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}

_core = None


def versions():
    """{peer: version} of those that are installed."""
    found = {}
    for peer in PEERS:
        try:
            found[peer] = __import__(peer).__version__
        except ImportError:
            pass
    return found


def run(peer, model, inputs):
    return {"openvino": run_openvino, "onnxruntime": run_onnxruntime}[peer](model, inputs)


# ---------------------------------------------------------------------------------------------
# OpenVINO
# ---------------------------------------------------------------------------------------------

def run_openvino(path, inputs):
    global _core
    import openvino as ov
    _core = _core or ov.Core()
    compiled = _core.compile_model(_core.read_model(str(path)), "CPU", OPENVINO_CONFIG)
    request = compiled.create_infer_request()
    for place, (name, value) in enumerate(inputs.items()):
        if not isinstance(value, values.Tensor):
            raise ValueError("a sequence or an empty optional as an input")
        port = next((p for p in compiled.inputs if name in p.get_names()), None)
        if port is None and len(compiled.inputs) == len(inputs):
            port = compiled.inputs[place]  # a pass-through loses the name of its input
        if port is not None:
            request.set_tensor(port, to_openvino(ov, value))
    request.infer()
    found = []
    for i, port in enumerate(compiled.outputs):
        tensor = from_openvino(request.get_output_tensor(i))
        found.append((min(port.get_names(), default=f"output{i}"), tensor.element_type, tensor.array))
    return found


def to_openvino(ov, value):
    if value.element_type in values.NUMPY:
        kind = getattr(ov.Type, value.element_type, None)
        if kind is None:
            raise ValueError(f"no element type {value.element_type}")
        tensor = ov.Tensor(kind, ov.Shape(list(value.array.shape)))
        if tensor.get_byte_size():
            tensor.data.reshape(-1).view(np.uint8)[:] = values.packed(value)
        return tensor
    # Memory of its own: an array of numpy may be aligned too loosely for some kernels.
    tensor = ov.Tensor(ov.Type.string if value.element_type == "string" else value.array.dtype, ov.Shape(list(value.array.shape)))
    if value.element_type == "string":
        tensor.str_data = value.array
    else:
        tensor.data[...] = value.array
    return tensor


def from_openvino(tensor):
    kind = tensor.get_element_type().get_type_name()
    shape = tuple(tensor.get_shape())
    if kind == "string":
        return values.tensor(np.array(tensor.str_data, object).reshape(shape))
    if kind in values.NUMPY:
        raw = np.ascontiguousarray(tensor.data).view(np.uint8).tobytes() if tensor.get_byte_size() else b""
        return values.unpacked(kind, raw, shape)
    return values.tensor(np.array(tensor.data, copy=True).reshape(shape))


# ---------------------------------------------------------------------------------------------
# onnxruntime
# ---------------------------------------------------------------------------------------------

def run_onnxruntime(path, inputs):
    # Lets models in of an opset that is newer than the release.
    os.environ.setdefault("ALLOW_RELEASED_ONNX_OPSET_ONLY", "0")
    import onnx
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    known = {i.name for i in session.get_inputs()}
    inputs = {n: v for n, v in inputs.items() if n in known}
    ports = session.get_outputs()
    declared = onnx.load(str(path), load_external_data=False).graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in [*declared.input, *declared.output] if v.type.HasField("tensor_type")}
    rare = {n: values.tensor(np.zeros(0, onnx.helper.tensor_dtype_to_np_dtype(k))).element_type for n, k in kinds.items() if k}
    rare = {n: k for n, k in rare.items() if k in values.NUMPY}
    if not any(n in rare for n in [*inputs, *(p.name for p in ports)]):
        found = session.run(None, {n: to_numpy(v) for n, v in inputs.items()})
        return [t for p, f in zip(ports, found) for t in values.flat(p.name, values.value(f))]
    # Types that numpy lacks go through raw memory.
    feed = {}
    for name, value in inputs.items():
        if name not in rare:
            feed[name] = ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(to_numpy(value)))
            continue
        feed[name] = ort.OrtValue.ortvalue_from_shape_and_type(list(value.array.shape), kinds[name])
        raw = values.packed(value)
        ctypes.memmove(feed[name].data_ptr(), raw.ctypes.data, raw.size)
    found = []
    for port, result in zip(ports, session.run_with_ort_values([p.name for p in ports], feed)):
        if port.name not in rare:
            found += values.flat(port.name, values.value(result.numpy()))
            continue
        kind, shape = rare[port.name], tuple(result.shape())
        bits = values.BITS.get(kind, 8 * values.NUMPY[kind].itemsize)
        size = (int(np.prod(shape, dtype=np.int64)) * bits + 7) // 8
        found += values.flat(port.name, values.unpacked(kind, ctypes.string_at(result.data_ptr(), size), shape))
    return found


def to_numpy(value):
    if isinstance(value, list):
        return [to_numpy(v) for v in value]
    if value is None:
        return None
    return value.array.astype(object) if value.element_type == "string" else value.array
