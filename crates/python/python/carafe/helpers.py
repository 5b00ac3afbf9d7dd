"""Arrays of numbers that take less than a byte, packed into bytes and back. The first number has the highest bits."""

import numpy as np

# Bits of the first part of a number; for types that are stored in two parts the rest follows behind, byte by byte.
_PARTS = {"u1": (1, 0), "u2": (2, 0), "u3": (2, 1), "u4": (4, 0), "i4": (4, 0), "nf4": (4, 0), "f4e2m1": (4, 0), "u6": (4, 2)}


def _parts(element_type):
    found = _PARTS.get(element_type.get_type_name())
    assert found is not None, "only types of 1, 2, 3, 4 or 6 bits are packed"
    return found


def _bits(numbers, width):
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint8)
    return ((numbers[..., None] >> shifts) & 1).reshape(*numbers.shape[:-1], -1)


def _numbers(bits, width):
    grouped = bits.reshape(*bits.shape[:-1], -1, width)
    return (grouped << np.arange(width - 1, -1, -1, dtype=np.uint8)).sum(axis=-1).astype(np.uint8)


def pack_data(array, type):  # noqa: A002
    """The numbers of an array as bytes."""
    low, high = _parts(type)
    signed = type.get_type_name() == "i4"
    small = np.asarray(array).astype(np.int8 if signed else np.uint8)
    if not np.array_equal(small, array):
        raise RuntimeError(f'The conversion of array "{array}" to dtype "{small.dtype}" results in rounding')
    flat = small.reshape(-1).astype(np.uint8)
    group = 8 // low if high == 0 else (8 if low == 2 else 4)
    flat = np.pad(flat, (0, -len(flat) % group)).reshape(-1, group)
    packed = [np.packbits(_bits(flat & (2**low - 1), low), axis=-1)]
    if high:
        packed.append(np.packbits(_bits(flat >> low, high), axis=-1))
    return np.concatenate(packed, axis=-1).reshape(-1)


def unpack_data(array, type, shape):  # noqa: A002
    """The numbers that bytes hold, as an array of a shape."""
    low, high = _parts(type)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if high:
        group = 8 if low == 2 else 4
        rows = data.reshape(-1, 3)
        first = _numbers(np.unpackbits(rows[:, : group * low // 8], axis=-1), low)
        rest = _numbers(np.unpackbits(rows[:, group * low // 8 :], axis=-1), high)
        numbers = (first | (rest << low)).reshape(-1)
    else:
        numbers = _numbers(np.unpackbits(data), low)
    count = int(np.prod(list(shape), dtype=np.int64))
    numbers = numbers[:count].reshape(list(shape))
    if type.get_type_name() == "i4":
        return ((numbers.astype(np.int8) ^ 8) - 8).astype(np.int8)
    return numbers
