"""Elements smaller than a byte, packed and unpacked."""


def _bits(element_type):
    bits = element_type.get_bitwidth()
    if bits not in (1, 2, 4, 8):
        raise RuntimeError(f"elements of {bits} bits are not packed here; expected 1, 2, 4 or 8")
    return bits


def pack_data(array, type):  # noqa: A002
    """The bytes of elements that share bytes: the first element is in the lowest bits, but for u1, where it is in the highest."""
    import numpy as np

    bits = _bits(type)
    flat = np.asarray(array).reshape(-1).astype(np.uint8)
    if bits == 8:
        return flat
    each = 8 // bits
    flat = np.concatenate([flat, np.zeros(-len(flat) % each, np.uint8)]).reshape(-1, each) & ((1 << bits) - 1)
    places = np.arange(each, dtype=np.uint8) * bits
    if bits == 1:
        places = places[::-1]
    return np.bitwise_or.reduce(flat << places, axis=1).astype(np.uint8)


def unpack_data(array, type, shape):  # noqa: A002
    """The elements of bytes that `pack_data` made; signed types get their sign back."""
    import numpy as np

    bits = _bits(type)
    count = int(np.prod(list(shape), dtype=np.int64))
    flat = np.asarray(array).reshape(-1).view(np.uint8)
    if bits != 8:
        places = np.arange(8 // bits, dtype=np.uint8) * bits
        if bits == 1:
            places = places[::-1]
        flat = ((flat[:, None] >> places) & ((1 << bits) - 1)).reshape(-1)
    flat = flat[:count]
    if type.is_signed() and not type.is_real():
        half = 1 << (bits - 1)
        flat = (flat.astype(np.int16) ^ half) - half
        flat = flat.astype(np.int8)
    return flat.reshape(list(shape))
