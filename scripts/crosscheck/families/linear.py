"""Matrix products, Einsum, convolutions of every kind, Inverse."""

import numpy as np

from ..case import Data, Dyn, const, dynamic, literal, net, one, uniform


def cases():
    yield from matmul()
    yield from einsum()
    yield from convolution()
    yield from backprop()
    yield from deformable()
    yield from binary_convolution()
    yield from inverse()


def matmul():
    for a, b, ta, tb, tag in [
            ((3, 4), (4, 5), False, False, "2d"), ((4, 3), (4, 5), True, False, "ta"), ((3, 4), (5, 4), False, True, "tb"),
            ((4, 3), (5, 4), True, True, "ta-tb"), ((2, 3, 4), (4, 5), False, False, "batch-by-matrix"),
            ((2, 1, 3, 4), (3, 4, 2), False, False, "batch-broadcast"), ((4,), (4, 5), False, False, "row"),
            ((3, 4), (4,), False, False, "column"), ((4,), (4,), False, False, "dot"),
            ((2, 3, 4), (4,), False, False, "batch-by-column"), ((4,), (2, 4, 3), False, False, "row-by-batch"),
            ((4,), (5, 4), True, True, "row-transposed"), ((1, 1), (1, 7), False, False, "ones")]:
        yield one("MatMul", 1, [uniform("f32", *a), uniform("f32", *b)], {"transpose_a": ta, "transpose_b": tb}, tag=tag,
                  fixture=tag in ("2d", "ta-tb", "batch-broadcast", "dot", "row-by-batch"))
    off = {"transpose_a": False, "transpose_b": False}
    yield one("MatMul", 1, [uniform("f32", 5, 6), const("f32", uniform("f32", 6, 3))], off, tag="constant-weights")
    yield one("MatMul", 1, [uniform("f16", 3, 4), uniform("f16", 4, 2)], off, tag="f16")
    yield one("MatMul", 1, [uniform("i32", 3, 4), uniform("i32", 4, 2)], off, tag="i32")
    yield one("MatMul", 1, [uniform("i64", 3, 4), uniform("i64", 4, 2)], off, tag="i64")
    yield one("MatMul", 1, [dynamic(uniform("f32", 2, 3, 4)), dynamic(uniform("f32", 4, 2))], off, tag="dynamic")
    yield one("MatMul", 1, [uniform("f32", 3, 0), uniform("f32", 0, 2)], off, tag="empty-inner")
    yield one("MatMul", 1, [uniform("f32", 0, 3), uniform("f32", 3, 2)], off, tag="empty-rows")
    yield one("MatMul", 1, [uniform("f32", 17, 65), uniform("f32", 65, 33)], off, tag="odd-sizes")


def einsum():
    for equation, shapes in [
            ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]), ("ij->", [(2, 3)]),
            ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]), ("i,j->ij", [(3,), (4,)]), ("ij,jk", [(2, 3), (3, 4)]),
            ("...ij,...jk->...ik", [(2, 3, 4), (4, 2)]), ("abc,cd,de->abe", [(2, 3, 4), (4, 2), (2, 5)]),
            ("i,i->", [(4,), (4,)]), ("ijk->kij", [(2, 3, 4)]), ("ij,ij->i", [(2, 3), (2, 3)]),
            ("bhqd,bhkd->bhqk", [(1, 2, 3, 4), (1, 2, 5, 4)]), ("aB,Bc->ac", [(2, 3), (3, 2)]), ("iji->j", [(3, 2, 3)])]:
        tag = equation.replace("->", "_to_").replace(",", "_").replace("...", "E")
        yield one("Einsum", 7, [uniform("f32", *s) for s in shapes], {"equation": equation}, tag=tag,
                  fixture=equation in ("bij,bjk->bik", "ii->i", "...ij,...jk->...ik"))
    yield one("Einsum", 7, [uniform("i32", 2, 3), uniform("i32", 3, 2)], {"equation": "ij,jk->ik"}, tag="i32")
    yield one("Einsum", 7, [dynamic(uniform("f32", 2, 3)), dynamic(uniform("f32", 3, 2))], {"equation": "ij,jk->ik"},
              tag="dynamic")


def window(strides, begin, end, dilations, auto="explicit"):
    return {"strides": strides, "pads_begin": begin, "pads_end": end, "dilations": dilations, "auto_pad": auto}


def convolution():
    plain = window([1, 1], [0, 0], [0, 0], [1, 1])
    image, filters = uniform("f32", 1, 3, 7, 6), const("f32", uniform("f32", 4, 3, 3, 3))
    variants = {
        "plain": plain,
        "stride-pad": window([2, 2], [1, 1], [1, 1], [1, 1]),
        "uneven": window([1, 2], [1, 0], [0, 2], [1, 1]),
        "dilated": window([1, 1], [2, 2], [2, 2], [2, 2]),
        "same-upper": window([2, 2], [0, 0], [0, 0], [1, 1], "same_upper"),
        "same-lower": window([2, 2], [0, 0], [0, 0], [1, 1], "same_lower"),
        "valid": window([2, 1], [0, 0], [0, 0], [1, 1], "valid"),
    }
    for tag, attrs in variants.items():
        yield one("Convolution", 1, [image, filters], attrs, tag=f"2d-{tag}",
                  fixture=tag in ("uneven", "dilated", "same-lower"))
    # Attributes of an automatic padding count for nothing: the engine must not use these pads.
    yield one("Convolution", 1, [image, filters], window([2, 2], [5, 5], [5, 5], [1, 1], "same_upper"), tag="2d-stale-pads")
    yield one("Convolution", 1, [uniform("f32", 2, 3, 9), const("f32", uniform("f32", 2, 3, 3))],
              window([2], [1], [1], [1]), tag="1d", fixture=True)
    yield one("Convolution", 1, [uniform("f32", 1, 2, 4, 5, 4), const("f32", uniform("f32", 3, 2, 2, 3, 2))],
              window([1, 2, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1]), tag="3d", fixture=True)
    yield one("Convolution", 1, [image, uniform("f32", 2, 3, 3, 3)], plain, tag="2d-run-time-filters")
    yield one("Convolution", 1, [Dyn(image, "?,3,?,?"), filters], variants["stride-pad"], tag="2d-dynamic")
    yield one("Convolution", 1, [Dyn(image, "?,3,?,?"), filters], variants["same-upper"], tag="2d-dynamic-same")
    yield one("Convolution", 1, [uniform("f16", 1, 3, 5, 5), const("f16", uniform("f16", 2, 3, 3, 3))], plain, tag="2d-f16")
    yield one("Convolution", 1, [uniform("f32", 1, 16, 6, 6), const("f32", uniform("f32", 32, 16, 1, 1))], plain, tag="2d-1x1")
    yield one("Convolution", 1, [uniform("f32", 1, 1, 3, 3), const("f32", uniform("f32", 1, 1, 5, 5))],
              window([1, 1], [2, 2], [2, 2], [1, 1]), tag="2d-kernel-wider-than-data")
    yield one("GroupConvolution", 1, [uniform("f32", 1, 4, 6, 6), const("f32", uniform("f32", 2, 3, 2, 3, 3))],
              variants["stride-pad"], tag="2d", fixture=True)
    yield one("GroupConvolution", 1, [uniform("f32", 1, 5, 6, 6), const("f32", uniform("f32", 5, 1, 1, 3, 3))],
              variants["same-upper"], tag="depthwise", fixture=True)
    yield one("GroupConvolution", 1, [uniform("f32", 2, 4, 7), const("f32", uniform("f32", 4, 2, 1, 3))],
              window([1], [1], [1], [2]), tag="1d-multiplier")
    yield one("GroupConvolution", 1, [uniform("f32", 1, 4, 3, 4, 3), const("f32", uniform("f32", 2, 1, 2, 2, 2, 2))],
              window([1] * 3, [0] * 3, [0] * 3, [1] * 3), tag="3d")
    yield one("GroupConvolution", 1, [dynamic(uniform("f32", 1, 4, 6, 6)), const("f32", uniform("f32", 4, 1, 1, 3, 3))],
              plain, tag="dynamic")
    yield one("GroupConvolution", 1, [uniform("f16", 1, 4, 5, 5), const("f16", uniform("f16", 4, 1, 1, 3, 3))], plain, tag="f16")
    yield net("Convolution", 1, "bias-relu", conv_bias_relu)


def conv_bias_relu(g):
    x = g.input(uniform("f32", 1, 3, 8, 8))
    y = g.op("Convolution", 1, [x, const("f32", uniform("f32", 8, 3, 3, 3))], window([1, 1], [1, 1], [1, 1], [1, 1]))
    y = g.op("Add", 1, [y, const("f32", uniform("f32", 1, 8, 1, 1))])
    return [g.op("Relu", 1, [y])]


def backprop():
    def attrs(strides, begin, end, dilations=None, auto="explicit", extra=None):
        d = window(strides, begin, end, dilations or [1] * len(strides), auto)
        d["output_padding"] = extra or [0] * len(strides)
        return d
    image, filters = uniform("f32", 1, 3, 4, 5), const("f32", uniform("f32", 3, 2, 3, 3))
    name = "ConvolutionBackpropData"
    yield one(name, 1, [image, filters], attrs([2, 2], [1, 1], [1, 1]), tag="2d", fixture=True)
    yield one(name, 1, [image, filters], attrs([2, 2], [1, 1], [1, 1], extra=[1, 1]), tag="2d-output-padding", fixture=True)
    yield one(name, 1, [image, filters], attrs([1, 2], [0, 1], [2, 0], dilations=[2, 1]), tag="2d-dilated-uneven")
    for auto in ("same_upper", "same_lower", "valid", "explicit"):
        size = [8, 10] if auto.startswith("same") else [9, 11]
        yield one(name, 1, [image, filters, const("i64", size)], attrs([2, 2], [0, 0], [0, 0], auto=auto),
                  tag=f"2d-output-shape-{auto.replace('_', '-')}", fixture=auto.startswith("same"))
    yield one(name, 1, [image, filters], attrs([2, 2], [0, 0], [0, 0], auto="same_upper"), tag="2d-auto-no-output-shape")
    yield one(name, 1, [uniform("f32", 1, 2, 5), const("f32", uniform("f32", 2, 3, 4))], attrs([3], [1], [0]), tag="1d")
    yield one(name, 1, [uniform("f32", 1, 2, 3, 3, 3), const("f32", uniform("f32", 2, 2, 2, 2, 2))], attrs([2] * 3, [0] * 3, [0] * 3),
              tag="3d")
    yield one(name, 1, [Dyn(image, "?,3,?,?"), filters], attrs([2, 2], [1, 1], [1, 1]), tag="2d-dynamic")
    yield one(name, 1, [uniform("f16", 1, 2, 3, 3), const("f16", uniform("f16", 2, 2, 2, 2))], attrs([2, 2], [0, 0], [0, 0]), tag="f16")
    name = "GroupConvolutionBackpropData"
    grouped = const("f32", uniform("f32", 2, 2, 3, 3, 3))
    yield one(name, 1, [uniform("f32", 1, 4, 4, 4), grouped], attrs([2, 2], [1, 1], [1, 1], extra=[1, 0]), tag="2d", fixture=True)
    yield one(name, 1, [uniform("f32", 1, 4, 4, 4), grouped, const("i64", [8, 8])], attrs([2, 2], [0, 0], [0, 0], auto="same_upper"),
              tag="2d-output-shape")
    yield one(name, 1, [uniform("f32", 1, 4, 5), const("f32", uniform("f32", 4, 1, 1, 3))], attrs([2], [1], [1]), tag="1d-depthwise")
    yield one(name, 1, [dynamic(uniform("f32", 1, 4, 4, 4)), grouped], attrs([1, 1], [1, 1], [1, 1]), tag="dynamic")


def deformable():
    data, filters = uniform("f32", 1, 4, 5, 5), const("f32", uniform("f32", 2, 4, 3, 3))
    base = window([1, 1], [1, 1], [1, 1], [1, 1])
    base.update(group=1, deformable_group=1)
    offsets = uniform("f32", 1, 18, 5, 5, lo=-1.5, hi=1.5)
    name = "DeformableConvolution"
    for opset in (1, 8):
        yield one(name, opset, [data, offsets, filters], base, tag="plain", fixture=opset == 8)
        yield one(name, opset, [data, uniform("f32", 1, 36, 5, 5, lo=-1, hi=1), filters], dict(base, deformable_group=2), tag="two-deformable-groups")
        yield one(name, opset, [data, offsets, const("f32", uniform("f32", 2, 2, 3, 3))], dict(base, group=2), tag="two-groups")
    mask = uniform("f32", 1, 9, 5, 5, lo=0, hi=1)
    for pad in (False, True):
        yield one(name, 8, [data, offsets, filters, mask], dict(base, bilinear_interpolation_pad=pad), tag=f"mask-pad{int(pad)}", fixture=True)
    yield one(name, 8, [data, uniform("f32", 1, 18, 3, 3, lo=-1, hi=1), filters], dict(base, strides=[2, 2]), tag="strided")
    yield one(name, 8, [dynamic(data), dynamic(offsets), filters], base, tag="dynamic")


def binary_convolution():
    pattern = np.random.default_rng(3).integers(0, 2, (2, 8, 3, 3))
    data = uniform("boolean", 1, 8, 5, 5)
    for value in (0.0, 1.0, -1.0):
        attrs = window([1, 1], [1, 1], [1, 1], [1, 1])
        attrs.update(mode="xnor-popcount", pad_value=value)

        def build(g, attrs=attrs, bits=const("u1", literal("u1", pattern))):
            x = g.op("Convert", 1, [g.input(data)], {"destination_type": "f32"})
            return [g.op("BinaryConvolution", 1, [x, bits], attrs)]

        # The kernel reads the filter bits of a byte from the low end, as old converters packed them.
        yield net("BinaryConvolution", 1, f"pad{value:g}", build, fixture=True)


def inverse():
    well = Data("f32", (3, 3), lambda rng: rng.uniform(-1, 1, (3, 3)) + 3 * np.eye(3))
    batch = Data("f32", (2, 2, 4, 4), lambda rng: rng.uniform(-1, 1, (2, 2, 4, 4)) + 3 * np.eye(4))
    for adjoint in (False, True):
        yield one("Inverse", 14, [well], {"adjoint": adjoint}, tag=f"adjoint{int(adjoint)}", fixture=True)
        yield one("Inverse", 14, [batch], {"adjoint": adjoint}, tag=f"batch-adjoint{int(adjoint)}")
    yield one("Inverse", 14, [literal("f32", [[0, 2], [1, 1]])], {"adjoint": False}, tag="needs-pivot")
    yield one("Inverse", 14, [dynamic(well)], {"adjoint": False}, tag="dynamic")
