"""A transformer with attention in windows, by the published sizes of Swin-T."""

import numpy as np

from .nets import Net

WINDOW = 7


def roll(net, x, size, by):
    """Moves an image [1, size, size, width] round by `by` along both sides, as exporters write it."""
    for axis in (1, 2):
        cut = by if by > 0 else size + by
        head = net.op("Slice", x, net.ints(cut), net.ints(size), net.ints(axis))
        tail = net.op("Slice", x, net.ints(0), net.ints(cut), net.ints(axis))
        x = net.op("Concat", head, tail, axis=axis)
    return x


def hidden(size, shift):
    """What is added to scores of pixels that only the move brought together: [1, windows, 1, pixels, pixels]."""
    place = np.zeros([size, size])
    parts = [slice(0, -WINDOW), slice(-WINDOW, -shift), slice(-shift, None)]
    for i, rows in enumerate(parts):
        for j, columns in enumerate(parts):
            place[rows, columns] = 3 * i + j
    side = size // WINDOW
    place = place.reshape(side, WINDOW, side, WINDOW).transpose(0, 2, 1, 3).reshape(side * side, WINDOW * WINDOW)
    return np.where(place[:, None, :] != place[:, :, None], -100.0, 0.0)[None, :, None]


def attention(net, x, size, width, heads, shift):
    windows, pixels, each = (size // WINDOW) ** 2, WINDOW * WINDOW, width // heads
    if shift:
        x = roll(net, x, size, shift)
    side = size // WINDOW
    x = net.op("Transpose", net.op("Reshape", x, net.ints(1, side, WINDOW, side, WINDOW, width)), perm=[0, 1, 3, 2, 4, 5])
    x = net.linear(net.op("Reshape", x, net.ints(windows, pixels, width)), width, 3 * width)
    x = net.op("Transpose", net.op("Reshape", x, net.ints(windows, pixels, 3, heads, each)), perm=[2, 0, 3, 1, 4])
    q, k, v = (net.op("Gather", x, net.const(i, np.int64), axis=0) for i in range(3))
    q = net.op("Mul", q, net.const(each ** -0.5))
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.op("Add", scores, net.normal([1, heads, pixels, pixels], 0.1))
    if shift:
        scores = net.op("Reshape", scores, net.ints(1, windows, heads, pixels, pixels))
        scores = net.op("Add", scores, net.const(hidden(size, shift)))
        scores = net.op("Reshape", scores, net.ints(windows, heads, pixels, pixels))
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    y = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), net.ints(windows, pixels, width))
    y = net.op("Reshape", net.linear(y, width, width), net.ints(1, side, side, WINDOW, WINDOW, width))
    y = net.op("Reshape", net.op("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), net.ints(1, size, size, width))
    return roll(net, y, size, -shift) if shift else y


def swin_t():
    net, width, size = Net(), 96, 56
    x = net.input("input", net.rng.standard_normal([1, 3, 224, 224]).astype(np.float32))
    x = net.layer_norm(net.op("Transpose", net.conv(x, 3, width, 4, 4, pad=0), perm=[0, 2, 3, 1]), width)
    for stage, (depth, heads) in enumerate([(2, 3), (2, 6), (6, 12), (2, 24)]):
        if stage:
            quarters = [net.op("Slice", x, net.ints(i, j), net.ints(size, size), net.ints(1, 2), net.ints(2, 2))
                        for j in (0, 1) for i in (0, 1)]
            x = net.layer_norm(net.op("Concat", *quarters, axis=-1), 4 * width)
            x = net.op("MatMul", x, net.normal([4 * width, 2 * width], 1 / np.sqrt(4 * width)))
            size, width = size // 2, 2 * width
        for i in range(depth):
            shift = WINDOW // 2 if i % 2 and size > WINDOW else 0
            x = net.op("Add", x, attention(net, net.layer_norm(x, width), size, width, heads, shift))
            y = net.gelu(net.linear(net.layer_norm(x, width), width, 4 * width))
            x = net.op("Add", x, net.linear(y, 4 * width, width))
    x = net.op("ReduceMean", net.layer_norm(x, width), net.ints(1, 2), keepdims=0)
    net.output("output", net.classifier(x, width))
    return net, net.values


NETS = {"swin_t": swin_t}
