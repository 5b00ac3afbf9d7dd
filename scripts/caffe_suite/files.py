"""The two files of a Caffe net: .prototxt (text) read into trees, .caffemodel (protobuf) written and read.

A message is a dictionary from field to the list of its values; a value is a str, int, float, bool or such a dictionary.
Words of enumerations are plain strings.
"""

import re

import numpy as np

TOKEN = re.compile(r"""\s+|\#[^\n]*|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<mark>[{}\[\]:,;])|(?P<word>[^\s{}\[\]:,;"'\#]+)""")


def parse_text(text):
    """A .prototxt as a tree."""
    tokens = [(m.lastgroup, m.group()) for m in TOKEN.finditer(text) if m.lastgroup]
    message, rest = _message(tokens, 0, top=True)
    assert rest == len(tokens)
    return message


def _message(tokens, at, top=False):
    fields = {}
    while at < len(tokens):
        kind, text = tokens[at]
        if text == "}" and kind == "mark":
            assert not top
            return fields, at + 1
        if kind == "mark" and text in ",;":
            at += 1
            continue
        name, at = text, at + 1
        if tokens[at] == ("mark", ":"):
            at += 1
        if tokens[at] == ("mark", "["):
            at += 1
            while tokens[at] != ("mark", "]"):
                if tokens[at] == ("mark", ","):
                    at += 1
                    continue
                value, at = _value(tokens, at)
                fields.setdefault(name, []).append(value)
            at += 1
        else:
            value, at = _value(tokens, at)
            fields.setdefault(name, []).append(value)
    return fields, at


def _value(tokens, at):
    kind, text = tokens[at]
    if (kind, text) == ("mark", "{"):
        return _message(tokens, at + 1)
    if kind == "string":
        whole = ""
        while at < len(tokens) and tokens[at][0] == "string":
            whole += tokens[at][1][1:-1].encode().decode("unicode_escape")
            at += 1
        return whole, at
    for read in (int, float):
        try:
            return read(text), at + 1
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text), at + 1


def one(message, name, default=None):
    """The last value of a field."""
    return message[name][-1] if name in message else default


def _varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def _bytes(field, data):
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def encode_blob(array, legacy=False, double=False):
    """A BlobProto, with `shape` or with the four fields that came before it."""
    array = np.asarray(array)
    if legacy:
        dims = [1] * (4 - array.ndim) + list(array.shape)
        shape = b"".join(_varint(i + 1 << 3) + _varint(d) for i, d in enumerate(dims))
    else:
        shape = _bytes(7, _bytes(1, b"".join(map(_varint, array.shape))))
    if double:
        return _bytes(8, array.astype("<f8").tobytes()) + shape
    return _bytes(5, array.astype("<f4").tobytes()) + shape


def encode_weights(name, layers, v1=False, **blob):
    """A .caffemodel of (layer name, type, blobs): the parts that are joined with a .prototxt, no topology."""
    out = bytearray(_bytes(1, name.encode()))
    for layer, kind, blobs in layers:
        if v1:
            body = _bytes(4, layer.encode()) + b"".join(_bytes(6, encode_blob(b, **blob)) for b in blobs)
            out += _bytes(2, body)
        else:
            body = _bytes(1, layer.encode()) + _bytes(2, kind.encode())
            out += _bytes(100, body + b"".join(_bytes(7, encode_blob(b, **blob)) for b in blobs))
    return bytes(out)


def write_weights(path, name, layers):
    """As `encode_weights`, into a file and one layer at a time: for nets that are large."""
    with open(path, "wb") as file:
        file.write(_bytes(1, name.encode()))
        for layer in layers:
            file.write(encode_weights("", [layer])[2:])


def _fields(data):
    at, view = 0, memoryview(data)

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = view[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(view):
        key = number()
        kind = key & 7
        if kind == 0:
            value = number()
        elif kind == 1:
            value, at = view[at:at + 8], at + 8
        elif kind == 2:
            size = number()
            value, at = view[at:at + size], at + size
        elif kind == 5:
            value, at = view[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, kind, value


def decode_blob(data):
    old, dims, values, double, raw, raw_type = [0, 0, 0, 0], None, [], [], b"", 0
    for field, kind, value in _fields(data):
        if field in (1, 2, 3, 4):
            old[field - 1] = value
        elif field == 7:
            dims = []
            for inner, inner_kind, packed in _fields(value):
                if inner == 1 and inner_kind == 2:
                    while len(packed):
                        n = next(i for i, b in enumerate(packed) if b < 0x80)
                        dims.append(sum((b & 0x7F) << 7 * i for i, b in enumerate(packed[:n + 1])))
                        packed = packed[n + 1:]
                elif inner == 1:
                    dims.append(packed)
        elif field == 5:
            values.append(np.frombuffer(value, "<f4"))
        elif field == 8:
            double.append(np.frombuffer(value, "<f8"))
        elif field == 10:
            raw_type = value
        elif field == 12:
            raw = value
    if len(raw):
        values.append(np.frombuffer(raw, ("<f8", "<f4", "<f2")[raw_type]).astype(np.float32))
    flat = np.concatenate(values or double) if values or double else np.zeros(0, np.float32)
    return flat.astype(np.float32).reshape(old if dims is None else dims)


def decode_weights(data):
    """{layer name: blobs} of a .caffemodel, of layers of both generations."""
    found = {}
    for field, kind, layer in _fields(data):
        if field in (2, 100) and kind == 2:
            name, blobs = "", []
            for inner, _, value in _fields(layer):
                if inner == (1 if field == 100 else 4):
                    name = bytes(value).decode()
                elif inner == (7 if field == 100 else 6):
                    blobs.append(decode_blob(value))
            found.setdefault(name, blobs)
    return found


