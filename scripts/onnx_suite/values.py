"""Values of a test: a tensor, a sequence of values, or nothing (an optional without content).

On disk a tensor is a .npy file and the name of its element type. Types that numpy lacks travel as f32, the integers
below 8 bits as int8 or uint8, strings as a unicode array. In memory a tensor is `Tensor`, a sequence is a list.
"""

from collections import namedtuple
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

Tensor = namedtuple("Tensor", "element_type array")

# Name of ours for a numpy type, where the names are not the same up to spelling.
SPECIAL = {
    "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2", "float8_e8m0fnu": "f8e8m0",
    "float4_e2m1fn": "f4e2m1", "int4": "i4", "uint4": "u4", "uint2": "u2", "int2": "i2",
    "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz",
}
PLAIN = {"bool": "boolean", "float16": "f16", "float32": "f32", "float64": "f64", "complex64": "c64", "complex128": "c128",
         **{f"{w}int{n}": f"{'u' if w else 'i'}{n}" for w in ("", "u") for n in (8, 16, 32, 64)}}
NUMPY = {ours: np.dtype(getattr(ml_dtypes, theirs)) for theirs, ours in SPECIAL.items()}
BITS = {"i4": 4, "u4": 4, "f4e2m1": 4, "i2": 2, "u2": 2}
# Types of ONNX that no tensor of Carafe can have.
FOREIGN = {"c64", "c128"}


def tensor(array):
    """A numpy array (with the types of ml_dtypes) or a TensorProto as a `Tensor` in its travelling form."""
    if isinstance(array, onnx.TensorProto):
        array = numpy_helper.to_array(array)
    array = np.asarray(array)
    if array.dtype == object or array.dtype.kind in "SU":
        text = [x.decode() if isinstance(x, bytes) else str(x) for x in array.ravel()]
        return Tensor("string", np.array(text, np.str_).reshape(array.shape))
    name = array.dtype.name
    if name in SPECIAL:
        as_integer = "int" in name
        return Tensor(SPECIAL[name], array.astype((np.uint8 if name[0] == "u" else np.int8) if as_integer else np.float32))
    return Tensor(PLAIN[name], array)


def value(data):
    """Whatever a test holds."""
    if data is None:
        return None
    if isinstance(data, (list, tuple)):
        return [value(d) for d in data]
    return tensor(data)


def read_proto(path, info):
    """A .pb file of a test folder; what it holds, the declaration `info` decides."""
    raw = Path(path).read_bytes()
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return value(numpy_helper.to_list(onnx.SequenceProto.FromString(raw)))
    if kind == "optional_type":
        return value(numpy_helper.to_optional(onnx.OptionalProto.FromString(raw)))
    return tensor(onnx.TensorProto.FromString(raw))


def save(folder, stem, data):
    """Writes a value; returns its entry for case.json."""
    if data is None:
        return None
    if isinstance(data, list):
        return [save(folder, f"{stem}_{i}", d) for i, d in enumerate(data)]
    np.save(Path(folder) / f"{stem}.npy", data.array, allow_pickle=False)
    return {"file": f"{stem}.npy", "element_type": data.element_type}


def load(folder, entry):
    if entry is None:
        return None
    if isinstance(entry, list):
        return [load(folder, e) for e in entry]
    return Tensor(entry["element_type"], np.load(Path(folder) / entry["file"], allow_pickle=False))


def flat(name, data):
    """[(name, element type, array)]: the elements of a sequence are `name/0`, `name/1`, ..."""
    if data is None:
        return []
    if isinstance(data, list):
        return [t for i, d in enumerate(data) for t in flat(f"{name}/{i}", d)]
    return [(name, data.element_type, data.array)]


def packed(data):
    """The bytes of a tensor of a type that numpy lacks, the first element of a byte in its low bits."""
    raw = data.array.astype(NUMPY[data.element_type]).reshape(-1).view(np.uint8)
    bits = BITS.get(data.element_type)
    if not bits:
        return raw
    per_byte = 8 // bits
    raw = np.append(raw & ((1 << bits) - 1), np.zeros(-raw.size % per_byte, np.uint8)).reshape(-1, per_byte)
    return np.bitwise_or.reduce(raw << (np.arange(per_byte, dtype=np.uint8) * bits), axis=1).astype(np.uint8)


def unpacked(element_type, raw, shape):
    """The inverse of `packed`."""
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.frombuffer(bytes(raw), np.uint8)
    bits = BITS.get(element_type)
    if bits:
        raw = (raw[:, None] >> (np.arange(8 // bits, dtype=np.uint8) * bits) & ((1 << bits) - 1)).ravel().astype(np.uint8)
        if element_type[0] == "i":  # ml_dtypes keeps signed integers with their sign spread over the byte
            raw = np.where(raw >> (bits - 1) & 1, raw | (0xFF << bits & 0xFF), raw).astype(np.uint8)
    kind = NUMPY[element_type]
    return tensor(raw[:count * kind.itemsize].view(kind).reshape(shape))
