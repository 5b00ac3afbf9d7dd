"""Normalizations, softmax, and the quantization operations that round values to a grid."""

import numpy as np

from ..case import const, dynamic, literal, net, one, uniform


def cases():
    yield from softmax()
    yield from batch_norm()
    yield from mvn()
    yield from others()
    yield from fake_quantize()
    yield from fake_convert()


def softmax():
    data = uniform("f32", 2, 3, 4)
    for axis in (0, 1, 2):
        yield one("Softmax", 1, [data], {"axis": axis}, tag=f"axis{axis}", fixture=axis == 1)
    for axis in (-1, 1, -3):
        yield one("Softmax", 8, [data], {"axis": axis}, tag=f"axis{axis}", fixture=axis == -1)
        yield one("LogSoftmax", 5, [data], {"axis": axis}, tag=f"axis{axis}", fixture=axis == -1)
    for name, opset in (("Softmax", 8), ("LogSoftmax", 5)):
        yield one(name, opset, [uniform("f16", 3, 5)], {"axis": -1}, tag="f16")
        yield one(name, opset, [dynamic(data)], {"axis": -1}, tag="dynamic")
        yield one(name, opset, [literal("f32", [[1000.0, 1001.0, 999.0], [-1e4, 0, 1e4]])], {"axis": 1}, tag="large")
    yield one("Softmax", 8, [literal("f32", [[-np.inf, 0.0, 1.0]])], {"axis": 1}, tag="masked")


def batch_norm():
    data = uniform("f32", 2, 3, 4, 5)
    stats = [const("f32", uniform("f32", 3, lo=0.5, hi=2)) for _ in range(2)] + \
            [const("f32", uniform("f32", 3)), const("f32", uniform("f32", 3, lo=0.2, hi=3))]
    gamma, beta, mean, variance = stats
    yield one("BatchNormInference", 1, [gamma, beta, data, mean, variance], {"epsilon": 1e-3}, tag="f32", fixture=True)
    yield one("BatchNormInference", 5, [data, gamma, beta, mean, variance], {"epsilon": 1e-3}, tag="f32", fixture=True)
    yield one("BatchNormInference", 5, [dynamic(data), gamma, beta, mean, variance], {"epsilon": 1e-5}, tag="dynamic")
    yield one("BatchNormInference", 5, [uniform("f32", 2, 3), gamma, beta, mean, variance], {"epsilon": 1e-5}, tag="rank2")
    half = [const("f16", uniform("f16", 3, lo=0.5, hi=2)) for _ in range(4)]
    yield one("BatchNormInference", 5, [uniform("f16", 2, 3, 4), *half], {"epsilon": 1e-3}, tag="f16")


def mvn():
    data = uniform("f32", 2, 3, 4, 5)
    for across in (False, True):
        for variance in (False, True):
            yield one("MVN", 2, [data], {"eps": 1e-3, "across_channels": across, "normalize_variance": variance},
                      tag=f"across{int(across)}-variance{int(variance)}", fixture=across and variance)
    for mode in ("INSIDE_SQRT", "OUTSIDE_SQRT"):
        for axes in ([2, 3], [-1], [1, 2, 3], [0, 2, 3]):
            yield one("MVN", 6, [data, const("i64", axes)], {"eps": 0.5, "normalize_variance": True, "eps_mode": mode},
                      tag=f"{mode[:-5].lower()}-axes{'_'.join(map(str, axes))}", fixture=axes == [-1])
    inside = {"eps": 1e-3, "normalize_variance": True, "eps_mode": "INSIDE_SQRT"}
    yield one("MVN", 6, [data, const("i64", [2, 3])], dict(inside, normalize_variance=False), tag="mean-only", fixture=True)
    yield one("MVN", 6, [uniform("f16", 2, 3, 8), const("i64", [2])], inside, tag="f16")
    yield one("MVN", 6, [dynamic(data), const("i32", [-1, -2])], inside, tag="dynamic")
    yield one("MVN", 6, [uniform("f32", 7), const("i64", [0])], inside, tag="rank1")


def others():
    data = uniform("f32", 2, 4, 3, 5)
    for mode in ("add", "max"):
        for axes in ([1], [1, 2, 3], [2, 3], [-1]):
            yield one("NormalizeL2", 1, [data, const("i64", axes)], {"eps": 1e-2, "eps_mode": mode},
                      tag=f"{mode}-axes{'_'.join(map(str, axes))}", fixture=axes == [1])
    yield one("NormalizeL2", 1, [dynamic(data), const("i64", [1])], {"eps": 1e-6, "eps_mode": "add"}, tag="dynamic")
    for size in (3, 5, 2):
        yield one("LRN", 1, [data, const("i64", [1])], {"alpha": 0.5, "beta": 0.75, "bias": 2.0, "size": size}, tag=f"across-{size}",
                  reference=lambda x, n=size: [response(x, n, 0.5, 0.75, 2.0)], fixture=size == 3)
    yield one("LRN", 1, [data, const("i64", [2, 3])], {"alpha": 0.5, "beta": 0.75, "bias": 1.0, "size": 3}, tag="within", fixture=True)
    yield one("LRN", 1, [dynamic(data), const("i64", [1])], {"alpha": 0.5, "beta": 0.75, "bias": 1.0, "size": 5}, tag="dynamic",
              reference=lambda x: [response(x, 5, 0.5, 0.75, 1.0)], known="the CPU kernel returns an empty tensor for dynamic shapes")
    yield one("LRN", 1, [data, const("i64", np.zeros((0,)))], {"alpha": 0.5, "beta": 0.75, "bias": 1.0, "size": 3}, tag="no-axes",
              reference=lambda x: [x / (1.0 + 0.5 * x * x) ** 0.75])
    yield one("GRN", 1, [data], {"bias": 1e-3}, tag="f32", fixture=True)
    yield one("GRN", 1, [uniform("f32", 2, 5)], {"bias": 0.3}, tag="rank2")
    yield one("GRN", 1, [dynamic(data)], {"bias": 0.3}, tag="dynamic")
    scale, bias = const("f32", uniform("f32", 4, lo=0.5, hi=2)), const("f32", uniform("f32", 4))
    for groups in (1, 2, 4):
        yield one("GroupNormalization", 12, [data, scale, bias], {"num_groups": groups, "epsilon": 1e-3}, tag=f"groups{groups}",
                  fixture=groups == 2)
    yield one("GroupNormalization", 12, [dynamic(data), scale, bias], {"num_groups": 2, "epsilon": 1e-3}, tag="dynamic")
    yield one("GroupNormalization", 12, [uniform("f32", 2, 4, 6), scale, bias], {"num_groups": 2, "epsilon": 1e-3}, tag="rank3")
    yield one("GroupNormalization", 12, [uniform("f16", 2, 4, 6), const("f16", uniform("f16", 4)), const("f16", uniform("f16", 4))],
              {"num_groups": 2, "epsilon": 1e-3}, tag="f16")


def response(x, size, alpha, beta, bias):
    """Local response normalization over channels."""
    reach = (size - 1) // 2
    square = np.pad(x.astype(np.float64) ** 2, ((0, 0), (reach, reach), (0, 0), (0, 0)))
    total = sum(square[:, k:k + x.shape[1]] for k in range(2 * reach + 1))
    return x / (bias + alpha / size * total) ** beta


def fake_quantize():
    data = uniform("f32", 1, 3, 4, 4, lo=-4, hi=4)

    def limits(il, ih, ol, oh):
        return [const("f32", x) for x in (il, ih, ol, oh)]
    for levels in (2, 16, 255, 256):
        yield one("FakeQuantize", 1, [data, *limits(-2.0, 2.0, -2.0, 2.0)], {"levels": levels}, tag=f"levels{levels}",
                  fixture=levels in (2, 256))
    yield one("FakeQuantize", 1, [data, *limits(0.0, 2.55, 0.0, 2.55)], {"levels": 256}, tag="unsigned")
    yield one("FakeQuantize", 1, [data, *limits(-1.0, 2.0, 0.0, 255.0)], {"levels": 256}, tag="to-u8-range")
    yield one("FakeQuantize", 1, [data, *limits(-1.0, 1.0, 1.0, -1.0)], {"levels": 5}, tag="inverted-output")
    channel = [const("f32", np.array(v, np.float32).reshape(1, 3, 1, 1)) for v in
               ([-1, -2, -3], [1, 2, 3], [-1, -2, -3], [1, 2, 3])]
    yield one("FakeQuantize", 1, [data, *channel], {"levels": 255}, tag="per-channel", fixture=True)
    yield one("FakeQuantize", 1, [literal("f32", [0.5, 1.5, 2.5, -1, 3.5]), *limits(0.0, 3.0, 10.0, 40.0)], {"levels": 4}, tag="ties", fixture=True)
    yield one("FakeQuantize", 1, [literal("f32", [-1, 0, 1]), *limits(0.0, 0.0, -1.0, 1.0)], {"levels": 2}, tag="empty-range")
    yield one("FakeQuantize", 1, [dynamic(data), *limits(-2.0, 2.0, -2.0, 2.0)], {"levels": 256}, tag="dynamic")
    yield one("FakeQuantize", 1, [data, literal("f32", -2.0), literal("f32", 2.0), literal("f32", -1.0), literal("f32", 1.0)],
              {"levels": 17}, tag="run-time-limits")
    half = [const("f16", x) for x in (-2.0, 2.0, -2.0, 2.0)]
    yield one("FakeQuantize", 1, [uniform("f16", 3, 4), *half], {"levels": 16}, tag="f16")
    yield net("FakeQuantize", 1, "int8-network", int8_network, rtol=1e-2, atol=0.1)


def int8_network(g):
    """A convolution and a matrix product between FakeQuantize pairs, as quantization tools write them."""
    def quantized(x, low, high, levels):
        return g.op("FakeQuantize", 1, [x, *[const("f32", v) for v in (low, high, low, high)]], {"levels": levels})
    x = quantized(g.input(uniform("f32", 1, 3, 8, 8, lo=0, hi=2)), 0.0, 2.0, 256)
    w = quantized(g.const("f32", uniform("f32", 4, 3, 3, 3, lo=-1, hi=1)), -1.0, 1.0, 255)
    y = g.op("Convolution", 1, [x, w], {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]})
    y = g.op("Relu", 1, [g.op("Add", 1, [y, const("f32", uniform("f32", 1, 4, 1, 1))])])
    y = quantized(y, 0.0, 12.0, 256)
    y = g.op("Reshape", 1, [y, const("i64", [1, -1])], {"special_zero": False})
    w = quantized(g.const("f32", uniform("f32", 5, 256, lo=-0.5, hi=0.5)), -0.5, 0.5, 255)
    return [g.op("MatMul", 1, [y, w], {"transpose_a": False, "transpose_b": True})]


def fake_convert():
    data = uniform("f32", 3, 8, lo=-300, hi=300)
    for kind in ("f8e4m3", "f8e5m2"):
        attrs = {"destination_type": kind}
        yield one("FakeConvert", 13, [data, const("f32", 1.0)], attrs, tag=f"{kind}-scale", fixture=True)
        yield one("FakeConvert", 13, [data, const("f32", 0.5), const("f32", 2.0)], attrs, tag=f"{kind}-shift")
        yield one("FakeConvert", 13, [data, const("f32", uniform("f32", 3, 1, lo=0.1, hi=2))], attrs, tag=f"{kind}-per-row")
        yield one("FakeConvert", 13, [literal("f32", [1e6, -1e6, 1e-9, 0.0, 500.0]), const("f32", 1.0)], attrs, tag=f"{kind}-edges")
    yield one("FakeConvert", 13, [uniform("f16", 9, lo=-3, hi=3), const("f16", 1.0)], {"destination_type": "f8e4m3"}, tag="f16")
