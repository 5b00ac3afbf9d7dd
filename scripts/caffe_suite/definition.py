"""What Caffe defines, layer by layer in NumPy: slow, plain, and the judge where other engines differ.

`run` takes a parsed .prototxt, the blobs of each layer and the inputs, and gives what no layer consumes. Layers of forks
follow the fork they come from. Phase TEST.
"""

import numpy as np

from . import detection
from .files import one

LAYERS = {}


def layer(*names):
    def keep(function):
        for name in names:
            LAYERS[name] = function
        return function
    return keep


class Params:
    """The `*_param` message of a layer, with Caffe's defaults given at the reading place."""

    def __init__(self, tree, name):
        self.tree = one(tree, name, {})

    def __call__(self, field, default=None):
        return one(self.tree, field, default)

    def has(self, field):
        return field in self.tree

    def every(self, field):
        return self.tree.get(field, [])


def run(net, weights, inputs):
    """{name: array} of the tops that nothing consumes, in the order of the file."""
    values, order = {}, []

    def give(name, value):
        values[name] = np.asarray(value, np.float32)
        if name in order:
            order.remove(name)
        order.append(name)

    for name in net.get("input", []):
        give(name, inputs[name])
        order.remove(name)
    consumed = set()
    for at in net.get("layer", []) or [upgraded(old) for old in net.get("layers", [])]:
        kind, name = one(at, "type"), one(at, "name")
        bottoms, tops = at.get("bottom", []), at.get("top", [])
        if kind == "Input":
            for top in tops:
                values[top] = np.asarray(inputs[top], np.float32)
            continue
        if any(one(rule, "phase") == "TRAIN" for rule in at.get("include", [])):
            continue
        if kind == "Python":
            kind = one(one(at, "python_param"), "module") + "." + one(one(at, "python_param"), "layer")
        found = LAYERS[kind](at, [values[b] for b in bottoms], weights.get(name, []), len(tops))
        consumed.update(bottoms)
        for top in tops:
            consumed.discard(top)
        for top, value in zip(tops, found if isinstance(found, (list, tuple)) else [found]):
            give(top, value)
    return {name: values[name] for name in order if name not in consumed}


def upgraded(old):
    """A layer of the second generation, whose types were numbers of an enumeration."""
    flat = {name.lower(): name for name in LAYERS}
    return {**old, "type": [flat[one(old, "type").replace("_", "").lower()]]}


# Convolutions.

def pairs(p, name, default, axes):
    """kernel_size, pad, stride or dilation of each axis; a single number is for all."""
    short = {"kernel_size": "kernel", "pad": "pad", "stride": "stride"}.get(name)
    if short and (p.has(f"{short}_h") or p.has(f"{short}_w")):
        return [p(f"{short}_h", default), p(f"{short}_w", default)]
    given = p.every(name)
    if len(given) > 1:
        return list(given)
    return [given[0] if given else default] * axes


def windows(p, x):
    axes = x.ndim - p("axis", 1) - 1
    return [pairs(p, n, d, axes) for n, d in (("kernel_size", 0), ("pad", 0), ("stride", 1), ("dilation", 1))]


def convolve(x, w, kernel, pad, stride, dilation, group):
    outputs = [(i + 2 * p - ((k - 1) * d + 1)) // s + 1 for i, k, p, s, d in zip(x.shape[2:], kernel, pad, stride, dilation)]
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + [(p, p) for p in pad])
    w = w.reshape(group, w.shape[0] // group, -1, *kernel).astype(np.float64)
    x = x.reshape(x.shape[0], group, x.shape[1] // group, *x.shape[2:])
    total = 0
    for at in np.ndindex(*kernel):
        cut = tuple(slice(a * d, a * d + (o - 1) * s + 1, s) for a, d, s, o in zip(at, dilation, stride, outputs))
        total = total + np.einsum("ngc...,goc->ngo...", x[(slice(None),) * 3 + cut], w[(slice(None),) * 3 + at])
    return total.reshape(total.shape[0], -1, *outputs)


def with_bias(y, blobs, p, at=1, axis=1):
    if p("bias_term", True):
        y = y + blobs[at].reshape([-1] + [1] * (y.ndim - axis - 1))
    return y


@layer("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution")
def convolution(at, bottoms, blobs, n):
    p = Params(at, "convolution_param")
    given = []
    for x in bottoms:
        kernel, pad, stride, dilation = windows(p, x)
        group = p("group", 1) if one(at, "type") == "Convolution" else x.shape[1]
        w = blobs[0].reshape(p("num_output"), x.shape[1] // group, *kernel)
        given.append(with_bias(convolve(x, w, kernel, pad, stride, dilation, group), blobs, p))
    return given


@layer("ConvolutionBinary")
def convolution_binary(at, bottoms, blobs, n):
    """Weights become their signs times the mean of their sizes, a number for each output channel."""
    w = blobs[0].reshape(blobs[0].shape[0], -1)
    size = np.abs(w).mean(1, keepdims=True)
    return convolution({**at, "type": ["Convolution"]}, bottoms, [np.where(w > 0, size, -size).reshape(blobs[0].shape), *blobs[1:]], n)


@layer("Binarization")
def binarization(at, bottoms, blobs, n):
    return np.where(bottoms[0] > 0, 1, -1)


@layer("Deconvolution")
def deconvolution(at, bottoms, blobs, n):
    p = Params(at, "convolution_param")
    given = []
    for x in bottoms:
        kernel, pad, stride, dilation = windows(p, x)
        group, outputs = p("group", 1), p("num_output")
        w = blobs[0].reshape(group, x.shape[1] // group, outputs // group, *kernel).astype(np.float64)
        full = [s * (i - 1) + (k - 1) * d + 1 for i, k, s, d in zip(x.shape[2:], kernel, stride, dilation)]
        y = np.zeros((x.shape[0], group, outputs // group, *full))
        xs = x.reshape(x.shape[0], group, -1, *x.shape[2:]).astype(np.float64)
        for k in np.ndindex(*kernel):
            cut = tuple(slice(a * d, a * d + (i - 1) * s + 1, s) for a, d, s, i in zip(k, dilation, stride, x.shape[2:]))
            y[(slice(None),) * 3 + cut] += np.einsum("ngc...,gco->ngo...", xs, w[(slice(None),) * 3 + k])
        y = y.reshape(x.shape[0], outputs, *full)
        cut = tuple(slice(q, f - q) for q, f in zip(pad, full))
        given.append(with_bias(y[(slice(None),) * 2 + cut], blobs, p))
    return given


@layer("Pooling")
def pooling(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "pooling_param")
    kind = p("pool", "MAX")
    size = x.shape[2:]
    if p("global_pooling", False):
        kernel, pad, stride = list(size), [0, 0], [1, 1]
    else:
        kernel, pad, stride = (pairs(p, n, d, 2) for n, d in (("kernel_size", 0), ("pad", 0), ("stride", 1)))
    floor = p("round_mode", "CEIL") in ("FLOOR", 1) or p("ceil_mode", True) is False
    outputs = []
    for i in range(2):
        steps = (size[i] + 2 * pad[i] - kernel[i]) / stride[i]
        out = int(np.floor(steps) if floor else np.ceil(steps)) + 1
        if any(pad) and (out - 1) * stride[i] >= size[i] + pad[i]:
            out -= 1
        outputs.append(out)
    y = np.zeros(x.shape[:2] + tuple(outputs))
    mask = np.zeros_like(y)
    for h in range(outputs[0]):
        for w in range(outputs[1]):
            start = [h * stride[0] - pad[0], w * stride[1] - pad[1]]
            end = [min(start[i] + kernel[i], size[i] + pad[i]) for i in range(2)]
            area = (end[0] - start[0]) * (end[1] - start[1])
            (top, left), (bottom, right) = [max(s, 0) for s in start], [min(e, s) for e, s in zip(end, size)]
            part = x[:, :, top:bottom, left:right].reshape(*x.shape[:2], -1).astype(np.float64)
            if kind == "AVE":
                y[:, :, h, w] = part.sum(2) / area
            elif kind == "STOCHASTIC":
                y[:, :, h, w] = (part * part).sum(2) / (part.sum(2) + np.finfo(np.float32).tiny)
            else:
                y[:, :, h, w] = part.max(2)
                place = part.argmax(2)
                mask[:, :, h, w] = (top + place // (right - left)) * size[1] + left + place % (right - left)
    return [y, mask][:n]


@layer("InnerProduct")
def inner_product(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "inner_product_param")
    axis = p("axis", 1) % x.ndim
    flat = x.reshape(*x.shape[:axis], -1).astype(np.float64)
    outputs = p("num_output")
    w = blobs[0].reshape(flat.shape[-1], outputs) if p("transpose", False) else blobs[0].reshape(outputs, flat.shape[-1]).T
    y = flat @ w
    return y + blobs[1].reshape(-1) if p("bias_term", True) else y


@layer("Embed")
def embed(at, bottoms, blobs, n):
    p = Params(at, "embed_param")
    y = blobs[0].reshape(p("input_dim"), p("num_output"))[bottoms[0].astype(int)]
    return y + blobs[1].reshape(-1) if p("bias_term", True) else y


# Normalization.

@layer("BatchNorm")
def batch_norm(at, bottoms, blobs, n):
    p = Params(at, "batch_norm_param")
    x = bottoms[0]
    factor = blobs[2].reshape(-1)[0] if len(blobs) > 2 else 1
    factor = 1 / factor if factor else 0
    shape = [1, -1] + [1] * (x.ndim - 2)
    mean, var = (b.reshape(shape) * factor for b in blobs[:2])
    return (x - mean) / np.sqrt(var + p("eps", 1e-5))


@layer("BN")
def bn(at, bottoms, blobs, n):
    slope, bias, mean, var = (b.reshape(1, -1, 1, 1) for b in blobs)
    return (bottoms[0] - mean) / np.sqrt(var + Params(at, "bn_param")("eps", 1e-5)) * slope + bias


def along(x, other, axis):
    """`other` shaped so that it multiplies `x` from this axis on."""
    axis %= x.ndim
    return other.reshape([1] * axis + list(other.shape) + [1] * (x.ndim - axis - other.ndim))


def own_shape(x, p):
    axis = p("axis", 1) % x.ndim
    axes = p("num_axes", 1)
    return x.shape[axis:] if axes == -1 else x.shape[axis:axis + axes]


@layer("Scale")
def scale(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "scale_param")
    blobs = list(blobs)
    factor = bottoms[1] if len(bottoms) > 1 else blobs.pop(0).reshape(own_shape(x, p))
    y = x * along(x, factor, p("axis", 1) if factor.ndim else 0)
    return y + along(x, blobs[0].reshape(factor.shape), p("axis", 1)) if p("bias_term", False) else y


@layer("Bias")
def bias(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "bias_param")
    added = bottoms[1] if len(bottoms) > 1 else blobs[0].reshape(own_shape(x, p))
    return x + along(x, added, p("axis", 1))


@layer("LRN")
def lrn(at, bottoms, blobs, n):
    x, p = bottoms[0].astype(np.float64), Params(at, "lrn_param")
    size, alpha, beta, k = p("local_size", 5), p("alpha", 1.0), p("beta", 0.75), p("k", 1.0)
    half = (size - 1) // 2
    if p("norm_region", "ACROSS_CHANNELS") in ("ACROSS_CHANNELS", 0):
        square = np.pad(x * x, [(0, 0), (half, half), (0, 0), (0, 0)])
        total = sum(square[:, i:i + x.shape[1]] for i in range(size))
        return x * (k + alpha / size * total) ** -beta
    square = np.pad(x * x, [(0, 0), (0, 0), (half, half), (half, half)])
    total = sum(square[:, :, i:i + x.shape[2], j:j + x.shape[3]] for i in range(size) for j in range(size))
    return x * (1 + alpha / size ** 2 * total) ** -beta


@layer("MVN")
def mvn(at, bottoms, blobs, n):
    x, p = bottoms[0].astype(np.float64), Params(at, "mvn_param")
    axes = tuple(range(1 if p("across_channels", False) else 2, x.ndim))
    y = x - x.mean(axes, keepdims=True)
    if p("normalize_variance", True):
        y = y / (np.sqrt((y * y).mean(axes, keepdims=True)) + p("eps", 1e-9))
    return y


@layer("Normalize")
def normalize(at, bottoms, blobs, n):
    x, p = bottoms[0].astype(np.float64), Params(at, "norm_param")
    axes = (1, 2, 3) if p("across_spatial", True) else (1,)
    y = x / np.sqrt((x * x).sum(axes, keepdims=True) + p("eps", 1e-10))
    return y * (blobs[0].reshape(-1)[0] if p("channel_shared", True) else blobs[0].reshape(1, -1, 1, 1))


@layer("GRN")
def grn(at, bottoms, blobs, n):
    x = bottoms[0].astype(np.float64)
    return x / np.sqrt((x * x).sum(1, keepdims=True) + Params(at, "grn_param")("bias", 1.0))


# One number at a time.

def plain(name, function):
    LAYERS[name] = lambda at, bottoms, blobs, n: function(bottoms[0].astype(np.float64))


for _name, _function in {
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "TanH": np.tanh,
    "AbsVal": np.abs,
    "BNLL": lambda x: np.logaddexp(0, x),
    "Dropout": lambda x: x,
    "Swish": lambda x: x / (1 + np.exp(-x)),
}.items():
    plain(_name, _function)


@layer("ReLU")
def relu(at, bottoms, blobs, n):
    x = bottoms[0]
    return np.where(x > 0, x, x * Params(at, "relu_param")("negative_slope", 0))


@layer("ReLU6")
def relu6(at, bottoms, blobs, n):
    return np.clip(bottoms[0], 0, Params(at, "relu6_param")("n", 6))


@layer("PReLU")
def prelu(at, bottoms, blobs, n):
    x = bottoms[0]
    slope = blobs[0].reshape(-1)
    slope = slope[0] if slope.size == 1 else slope.reshape([1, -1] + [1] * (x.ndim - 2))
    return np.where(x > 0, x, x * slope)


@layer("ELU")
def elu(at, bottoms, blobs, n):
    x = bottoms[0]
    return np.where(x > 0, x, Params(at, "elu_param")("alpha", 1.0) * np.expm1(np.minimum(x, 0)))


@layer("Power")
def power(at, bottoms, blobs, n):
    p = Params(at, "power_param")
    return (bottoms[0].astype(np.float64) * p("scale", 1.0) + p("shift", 0.0)) ** p("power", 1.0)


@layer("Exp")
def exp(at, bottoms, blobs, n):
    p = Params(at, "exp_param")
    base = p("base", -1.0)
    return (np.e if base == -1 else base) ** (bottoms[0].astype(np.float64) * p("scale", 1.0) + p("shift", 0.0))


@layer("Log")
def log(at, bottoms, blobs, n):
    p = Params(at, "log_param")
    base = p("base", -1.0)
    y = np.log(bottoms[0].astype(np.float64) * p("scale", 1.0) + p("shift", 0.0))
    return y if base == -1 else y / np.log(base)


@layer("Threshold")
def threshold(at, bottoms, blobs, n):
    return bottoms[0] > Params(at, "threshold_param")("threshold", 0.0)


# Several at a time.

@layer("Eltwise")
def eltwise(at, bottoms, blobs, n):
    p = Params(at, "eltwise_param")
    kind = p("operation", "SUM")
    if kind == "PROD":
        return np.prod(bottoms, 0)
    if kind == "MAX":
        return np.max(bottoms, 0)
    return sum(c * x for c, x in zip(p.every("coeff") or [1.0] * len(bottoms), bottoms))


@layer("Axpy")
def axpy(at, bottoms, blobs, n):
    return bottoms[0].reshape(*bottoms[0].shape[:2], 1, 1) * bottoms[1] + bottoms[2]


@layer("Concat")
def concat(at, bottoms, blobs, n):
    p = Params(at, "concat_param")
    return np.concatenate(bottoms, p("concat_dim", 1) if p.has("concat_dim") else p("axis", 1))


@layer("Slice")
def cut(at, bottoms, blobs, n):
    p = Params(at, "slice_param")
    axis = p("slice_dim", 1) if p.has("slice_dim") else p("axis", 1)
    return np.split(bottoms[0], p.every("slice_point") or n, axis)


@layer("Split")
def split(at, bottoms, blobs, n):
    return [bottoms[0]] * n


@layer("Silence")
def silence(at, bottoms, blobs, n):
    return []


@layer("Softmax")
def softmax(at, bottoms, blobs, n):
    axis = Params(at, "softmax_param")("axis", 1)
    x = bottoms[0].astype(np.float64)
    y = np.exp(x - x.max(axis, keepdims=True))
    return y / y.sum(axis, keepdims=True)


@layer("Reduction")
def reduction(at, bottoms, blobs, n):
    x, p = bottoms[0].astype(np.float64), Params(at, "reduction_param")
    x = x.reshape(*x.shape[:p("axis", 0) % x.ndim], -1)
    kind = p("operation", "SUM")
    y = {"SUM": lambda: x.sum(-1), "ASUM": lambda: np.abs(x).sum(-1), "SUMSQ": lambda: (x * x).sum(-1), "MEAN": lambda: x.mean(-1)}[kind]()
    return y * p("coeff", 1.0)


@layer("ArgMax")
def arg_max(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "argmax_param")
    k = p("top_k", 1)
    if p.has("axis"):
        axis = p("axis")
        order = np.take(np.argsort(-x, axis, kind="stable"), range(k), axis)
        return np.take_along_axis(x, order, axis) if p("out_max_val", False) else order
    flat = x.reshape(x.shape[0], -1)
    order = np.argsort(-flat, 1, kind="stable")[:, :k]
    values = np.take_along_axis(flat, order, 1)
    y = np.stack([order, values], 1) if p("out_max_val", False) else order[:, None]
    return y.reshape(*y.shape[:2], *([k] + [1] * max(0, x.ndim - 3) if x.ndim > 2 else [k]))


# Movement.

@layer("Flatten")
def flatten(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "flatten_param")
    start, end = p("axis", 1) % x.ndim, p("end_axis", -1) % x.ndim
    return x.reshape(*x.shape[:start], -1, *x.shape[end + 1:])


@layer("Reshape")
def reshape(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "reshape_param")
    axis, axes = p("axis", 0), p("num_axes", -1)
    start = axis if axis >= 0 else x.ndim + axis + 1
    end = x.ndim if axes == -1 else start + axes
    inner = [x.shape[start + i] if d == 0 else d for i, d in enumerate(p("shape", {}).get("dim", []))]
    return x.reshape(*x.shape[:start], *inner, *x.shape[end:])


@layer("Permute")
def permute(at, bottoms, blobs, n):
    order = list(Params(at, "permute_param").every("order"))
    return bottoms[0].transpose(order + [i for i in range(bottoms[0].ndim) if i not in order])


@layer("Crop")
def crop(at, bottoms, blobs, n):
    (x, like), p = bottoms, Params(at, "crop_param")
    axis, offsets = p("axis", 2) % x.ndim, p.every("offset") or [0]
    for i in range(axis, x.ndim):
        start = offsets[0] if len(offsets) == 1 else offsets[i - axis]
        x = np.take(x, range(start, start + like.shape[i]), i)
    return x


@layer("Tile")
def tile(at, bottoms, blobs, n):
    p = Params(at, "tile_param")
    times = [1] * bottoms[0].ndim
    times[p("axis", 1)] = p("tiles")
    return np.tile(bottoms[0], times)


@layer("BatchReindex")
def batch_reindex(at, bottoms, blobs, n):
    return bottoms[0][bottoms[1].astype(int).reshape(-1)]


@layer("Im2col")
def im2col(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "convolution_param")
    kernel, pad, stride, dilation = windows(p, x)
    parts = np.eye(int(np.prod(kernel)), dtype=np.float32).reshape(-1, 1, *kernel)
    return convolve(x, np.concatenate([parts] * x.shape[1]), kernel, pad, stride, dilation, x.shape[1])


@layer("SPP")
def spp(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "spp_param")
    parts = []
    for level in range(p("pyramid_height")):
        bins = 2 ** level
        kernel = [-(-s // bins) for s in x.shape[2:]]
        pad = [(k * bins - s + 1) // 2 for k, s in zip(kernel, x.shape[2:])]
        q = {"pool": [p("pool", "MAX")], "kernel_h": [kernel[0]], "kernel_w": [kernel[1]], "stride_h": [kernel[0]],
             "stride_w": [kernel[1]], "pad_h": [pad[0]], "pad_w": [pad[1]]}
        parts.append(pooling({"pooling_param": [q]}, [x], [], 1)[0].reshape(x.shape[0], -1))
    return np.concatenate(parts, 1)


@layer("ShuffleChannel")
def shuffle_channel(at, bottoms, blobs, n):
    x, group = bottoms[0], Params(at, "shuffle_channel_param")("group", 1)
    return x.reshape(x.shape[0], group, -1, *x.shape[2:]).swapaxes(1, 2).reshape(x.shape)


@layer("ReorgYolo")
def reorg_yolo(at, bottoms, blobs, n):
    """Darknet fills the output as if it went the other way."""
    x, s = bottoms[0], Params(at, "reorg_yolo_param")("stride", 1)
    images, c, h, w = x.shape
    inner = c // (s * s)
    flat, y = x.reshape(images, -1), np.zeros((images, c * s * s, h // s, w // s)).reshape(images, c, h, w)
    for k in range(c):
        for j in range(h):
            for i in range(w):
                block = k // inner
                y[:, k, j, i] = flat[:, (k % inner * h * s + j * s + block // s) * w * s + i * s + block % s]
    return y.reshape(images, c * s * s, h // s, w // s)


# Sampling.

def lines(size, outputs, places):
    """Weights of linear interpolation at these places of an axis."""
    m = np.zeros((outputs, size))
    for o, place in enumerate(places):
        place = min(max(place, 0), size - 1)
        low = min(int(np.floor(place)), size - 1)
        m[o, low] += 1 - (place - low)
        m[o, min(low + 1, size - 1)] += place - low
    return m


def corners(x, height, width):
    """Linear, the corners of both images on each other."""
    def of(size, outputs):
        step = (size - 1) / (outputs - 1) if outputs > 1 else 0
        return lines(size, outputs, [o * step for o in range(outputs)])
    return of(x.shape[2], height) @ x.astype(np.float64) @ of(x.shape[3], width).T


@layer("Interp")
def interp(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "interp_param")
    start, end = -p("pad_beg", 0), p("pad_end", 0)
    x = x[:, :, start:x.shape[2] + end, start:x.shape[3] + end]
    size = list(x.shape[2:])
    shrink, zoom = p("shrink_factor"), p("zoom_factor")
    if shrink and not zoom:
        size = [(s - 1) // shrink + 1 for s in size]
    elif zoom and not shrink:
        size = [s + (s - 1) * (zoom - 1) for s in size]
    elif p.has("height"):
        size = [p("height"), p("width")]
    elif shrink:
        size = [(s - 1) // shrink + 1 for s in size]
        size = [s + (s - 1) * (zoom - 1) for s in size]
    else:
        size = bottoms[1].shape[2:]
    return corners(x, *size)


@layer("Resample")
def resample(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "resample_param")
    kind = p("type", "LINEAR")
    if len(bottoms) > 1:
        size = bottoms[1].shape[2:]
    elif p.has("height"):
        size = [p("height"), p("width")]
    else:
        size = [int(s * p("factor", 1.0)) for s in x.shape[2:]]
    steps = [i / o for i, o in zip(x.shape[2:], size)]
    antialias = p("antialias", True) and any(s > 1 for s in steps)
    for axis in range(2):
        inputs, outputs, step = x.shape[2 + axis], size[axis], steps[axis]
        m = np.zeros((outputs, inputs))
        for o in range(outputs):
            place = o * step + step / 2 - 0.5
            if kind == "NEAREST":
                m[o, min(max(int(np.floor(place + 0.5)), 0), inputs - 1)] = 1
                continue
            near = np.abs((place - np.arange(inputs)) / (step if antialias else 1.0))
            if kind == "CUBIC":
                m[o] = np.where(near <= 1, near * near * (1.5 * near - 2.5) + 1, np.where(near < 2, near * (near * (-0.5 * near + 2.5) - 4) + 2, 0))
            else:
                m[o] = np.maximum(1 - near, 0)
            m[o] /= m[o].sum()
        x = np.moveaxis(np.tensordot(m, x, (1, 2 + axis)), 0, 2 + axis)
    return x


@layer("Upsample")
def upsample(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "upsample_param")
    steps = [p("scale_h"), p("scale_w")] if p.has("scale_h") else [p("scale", 2)] * 2
    if len(bottoms) == 1:
        return x.repeat(steps[0], 2).repeat(steps[1], 3)
    size = [p("upsample_h"), p("upsample_w")] if p.has("upsample_h") else [x.shape[2] * steps[0] - p("pad_out_h", 0), x.shape[3] * steps[1] - p("pad_out_w", 0)]
    return unpool(x, bottoms[1], size)


def unpool(x, mask, size):
    y = np.zeros((*x.shape[:2], size[0] * size[1]))
    np.put_along_axis(y, mask.astype(int).reshape(*x.shape[:2], -1), x.reshape(*x.shape[:2], -1), 2)
    return y.reshape(*x.shape[:2], *size)


@layer("MaxUnpool")
def max_unpool(at, bottoms, blobs, n):
    return unpool(bottoms[0], bottoms[1], bottoms[2].shape[2:])


@layer("SpatialTransformer")
def spatial_transformer(at, bottoms, blobs, n):
    (u, theta), p = bottoms, Params(at, "st_param")
    height, width = p("output_H", u.shape[2]), p("output_W", u.shape[3])
    given = iter(theta.reshape(theta.shape[0], -1).T)
    names = [f"theta_{i}_{j}" for i in (1, 2) for j in (1, 2, 3)]
    full = np.stack([np.full(theta.shape[0], p(name)) if p.has(name) else next(given) for name in names], 1)
    rows, columns = np.meshgrid(np.arange(height) / height * 2 - 1, np.arange(width) / width * 2 - 1, indexing="ij")
    points = np.stack([rows, columns, np.ones_like(rows)], -1)
    y = np.zeros((*u.shape[:2], height, width))
    for image in range(u.shape[0]):
        at_points = points @ full[image].reshape(2, 3).T.astype(np.float64)
        r, c = (at_points[..., 0] + 1) / 2 * u.shape[2], (at_points[..., 1] + 1) / 2 * u.shape[3]
        for dr in (0, 1):
            for dc in (0, 1):
                i, j = np.floor(r).astype(int) + dr, np.floor(c).astype(int) + dc
                inside = (i >= 0) & (i < u.shape[2]) & (j >= 0) & (j < u.shape[3])
                weight = np.where(inside, np.maximum(0, 1 - np.abs(r - i)) * np.maximum(0, 1 - np.abs(c - j)), 0)
                y[image] += weight * u[image][:, i.clip(0, u.shape[2] - 1), j.clip(0, u.shape[3] - 1)]
    return y


@layer("FlowWarp")
def flow_warp(at, bottoms, blobs, n):
    x, flow = bottoms
    images, _, h, w = x.shape
    y = np.zeros(x.shape)
    for i in range(images):
        for r in range(h):
            for c in range(w):
                px, py = c + flow[i, 0, r, c], r + flow[i, 1, r, c]
                if 0 <= px < w and 0 <= py < h:
                    l, t = int(px), int(py)
                    a, b, right, bottom = px - l, py - t, min(l + 1, w - 1), min(t + 1, h - 1)
                    y[i, :, r, c] = (1 - a) * (1 - b) * x[i, :, t, l] + (1 - a) * b * x[i, :, bottom, l] + a * (1 - b) * x[i, :, t, right] + a * b * x[i, :, bottom, right]
    return y


@layer("Correlation", "Correlation1D")
def correlation(at, bottoms, blobs, n):
    p = Params(at, "correlation_param")
    pad, k, most = p("pad", 0), p("kernel_size"), p("max_displacement")
    s1, s2 = p("stride_1", 1), p("stride_2", 1)
    flat = one(at, "type") == "Correlation1D"
    around = [(0, 0), (0, 0), (0, 0) if flat else (pad, pad), (pad, pad)]
    a, b = (np.pad(x.astype(np.float64), around) for x in bottoms)
    border, reach = most + (k - 1) // 2, most // s2
    h = -(-(a.shape[2] - 2 * ((k - 1) // 2 if flat else border)) // s1)
    w = -(-(a.shape[3] - 2 * border) // s1)
    planes = []
    for dy in [0] if flat else range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            plane = np.zeros((a.shape[0], h, w))
            for j in range(k):
                for i in range(k):
                    top, left = (0 if flat else most) + j, most + i
                    rows, columns = slice(top, top + (h - 1) * s1 + 1, s1), slice(left, left + (w - 1) * s1 + 1, s1)
                    one_a = a[:, :, rows, columns]
                    rows = slice(top + dy * s2, top + dy * s2 + (h - 1) * s1 + 1, s1)
                    columns = slice(left + dx * s2, left + dx * s2 + (w - 1) * s1 + 1, s1)
                    one_b = b[:, :, rows, columns]
                    plane += (np.abs(one_a - one_b) if p("correlation_type", "MULTIPLY") == "SUBTRACT" else one_a * one_b).sum(1)
            planes.append(plane / (k * k * a.shape[1]))
    return np.stack(planes, 1)


@layer("Accum")
def accum(at, bottoms, blobs, n):
    p = Params(at, "accum_param")
    if p("have_reference", False):
        *bottoms, like = bottoms
        size = like.shape[2:]
    else:
        largest = [max(x.shape[i] for x in bottoms) for i in (2, 3)]
        by = p("size_divisible_by")
        size = [-(-s // by) * by for s in largest] if by else [p("top_height", 0), p("top_width", 0)]
        size = size if all(s > m for s, m in zip(size, largest)) else largest
    return np.concatenate([corners(x, *size) for x in bottoms], 1)


@layer("DataAugmentation")
def data_augmentation(at, bottoms, blobs, n):
    x, p = bottoms[0], Params(at, "augmentation_param")
    size = [p("crop_height", x.shape[2]), p("crop_width", x.shape[3])]
    top, left = ((x.shape[2 + i] - size[i]) // 2 for i in range(2))
    x = x[:, :, top:top + size[0], left:left + size[1]]
    if len(blobs) < 3:
        return x - np.reshape(p.every("mean") or [0.0] * x.shape[1], (1, -1, 1, 1))
    if not p("mean_per_pixel", True):
        return x - blobs[2].reshape(1, -1, 1, 1)
    mean = blobs[1].reshape(1, x.shape[1], *blobs[1].shape[-2:])
    return x - (mean if mean.shape[2:] == x.shape[2:] else mean.mean((2, 3), keepdims=True))


# Recurrent.

@layer("LSTM")
def lstm(at, bottoms, blobs, n):
    return recurrent(at, bottoms, blobs, n, 2)


@layer("RNN")
def rnn(at, bottoms, blobs, n):
    return recurrent(at, bottoms, blobs, n, 1)


def recurrent(at, bottoms, blobs, n, states):
    p = Params(at, "recurrent_param")
    hidden, shown = p("num_output"), p("expose_hidden", False)
    x, cont = bottoms[0].astype(np.float64), bottoms[1]
    steps, batch = x.shape[:2]
    rest = list(bottoms[2:])
    start = [s.reshape(batch, -1).astype(np.float64) for s in rest[-states:]] if shown else [np.zeros((batch, hidden))] * states
    still = rest[0] if len(rest) > (states if shown else 0) else None
    blobs = list(blobs)
    w, b = blobs.pop(0), blobs.pop(0)
    fixed = still.reshape(batch, -1) @ blobs.pop(0).T if still is not None else 0
    r = blobs.pop(0)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    h, outputs = start[0], []
    c = start[-1]
    for t in range(steps):
        going = cont[t].reshape(batch, 1)
        gates = x[t].reshape(batch, -1) @ w.T + b + fixed + (going * h) @ r.T
        if states == 2:
            i, f, o, g = np.split(gates, 4, 1)
            c = going * sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            outputs.append(h)
        else:
            h = np.tanh(gates)
            outputs.append(np.tanh(h @ blobs[0].T + blobs[1]))
    return [np.stack(outputs), h[None], c[None]][:n]


@layer("CTCGreedyDecoder")
def ctc_greedy_decoder(at, bottoms, blobs, n):
    """Rows are images, as mo and the IR have them; Caffe has them as columns."""
    p = Params(at, "ctc_decoder_param")
    probabilities, indicators = bottoms
    steps, batch, classes = probabilities.shape
    blank = p("blank_index", -1) % classes
    y = np.full((batch, steps, 1, 1), -1.0)
    for i in range(batch):
        before, told = -1, 0
        for t in range(steps):
            if t and indicators[t, i] == 0:
                break
            best = probabilities[t, i].argmax()
            if best != blank and not (p("ctc_merge_repeated", True) and best == before):
                y[i, told] = best
                told += 1
            before = best
    return y


for _name, _function in detection.LAYERS.items():
    LAYERS[_name] = lambda at, bottoms, blobs, n, f=_function: f(Params, at, bottoms, n)
