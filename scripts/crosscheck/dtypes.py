"""Element types: names, numpy forms, and the decoding of types that numpy lacks.

A tensor travels in a .npy file in the numpy type of the same name. Types without one (bf16, the
8-bit and 4-bit floats, the integers below 8 bits) travel as f32, and the element type is told
beside the file. Strings travel as a unicode array.
"""

import numpy as np

NUMPY = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8,
    "boolean": np.bool_, "string": np.str_,
}
FLOATS = {"f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4"}

# The sixteen values of normal-float 4, a quantile table of the normal distribution.
NF4 = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0], np.float32)
F4E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def name_of(dtype):
    """The element type of a numpy type."""
    if dtype.kind == "U":
        return "string"
    return next(name for name, kind in NUMPY.items() if np.dtype(kind) == dtype)


def travels_as_f32(name):
    """True when tensors of this type are written to .npy as f32."""
    return name not in NUMPY


def bf16_bits(values):
    """f32 values to bfloat16 bit patterns, rounding to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def small_float(bits, exponent_bits, mantissa_bits, finite_only):
    """Decodes sign/exponent/mantissa bytes; `finite_only` means no infinities and one NaN pattern."""
    bits = bits.astype(np.int32)
    bias = (1 << (exponent_bits - 1)) - 1
    sign = np.where(bits >> (exponent_bits + mantissa_bits) & 1, -1.0, 1.0)
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    step = 2.0 ** -mantissa_bits
    value = np.where(exponent == 0, mantissa * step * 2.0 ** (1 - bias),
                     (1 + mantissa * step) * 2.0 ** (exponent - bias))
    top = exponent == (1 << exponent_bits) - 1
    if finite_only:
        value = np.where(top & (mantissa == (1 << mantissa_bits) - 1), np.nan, value)
    else:
        value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
    return (sign * value).astype(np.float32)


def nibbles(raw, count):
    """Unpacks 4-bit elements, the first of each byte in the low half."""
    return np.stack([raw & 15, raw >> 4], axis=1).reshape(-1)[:count]


def decode(name, raw, shape):
    """Packed bytes of a type that numpy lacks to an f32 array of `shape`."""
    raw = np.frombuffer(bytes(raw), np.uint8)
    count = int(np.prod(shape, dtype=np.int64))
    if name == "bf16":
        flat = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif name == "f8e4m3":
        flat = small_float(raw, 4, 3, True)
    elif name == "f8e5m2":
        flat = small_float(raw, 5, 2, False)
    elif name == "f8e8m0":
        flat = np.where(raw == 255, np.nan, 2.0 ** (raw.astype(np.float64) - 127)).astype(np.float32)
    elif name == "f4e2m1":
        flat = F4E2M1[nibbles(raw, count)]
    elif name == "nf4":
        flat = NF4[nibbles(raw, count)]
    elif name == "u4":
        flat = nibbles(raw, count)
    elif name == "i4":
        flat = nibbles(raw, count).astype(np.int8)
        flat = np.where(flat > 7, flat - 16, flat)
    elif name == "u2":
        flat = np.stack([raw >> s & 3 for s in (0, 2, 4, 6)], axis=1).reshape(-1)
    elif name == "u1":
        flat = np.unpackbits(raw)
    elif name == "u3":
        flat = unpack_split(raw, low_bits=2, high_bits=1)
    elif name == "u6":
        flat = unpack_split(raw, low_bits=4, high_bits=2)
    else:
        raise ValueError(f"no decoder for element type {name}")
    return np.asarray(flat[:count], np.float32).reshape(shape)


def unpack_split(raw, low_bits, high_bits):
    """u3 and u6: three bytes hold the low parts in the first two and the high parts in the third."""
    triples = raw.reshape(-1, 3)
    low = np.unpackbits(triples[:, :2], axis=1).reshape(len(triples), -1, low_bits)
    high = np.unpackbits(triples[:, 2:], axis=1).reshape(len(triples), -1, high_bits)

    def number(bits):
        return bits @ (1 << np.arange(bits.shape[-1])[::-1])

    return (number(low) + (number(high) << low_bits)).reshape(-1)
