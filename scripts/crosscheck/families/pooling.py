"""Pooling windows."""

import numpy as np

from ..case import const, counting, distinct, dynamic, one, uniform


def window(kernel, strides, begin, end, rounding="floor", auto="explicit", **more):
    return {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end, "rounding_type": rounding,
            "auto_pad": auto, **more}


def cases():
    yield from average()
    yield from maximum()
    yield from adaptive()


def average():
    image = counting("f32", 1, 2, 5, 5, start=1)
    for opset in (1, 14, 16):
        for exclude in (True, False):
            flag = {"exclude-pad": exclude}
            if opset == 16:
                flag["dilations"] = [1, 1]
            mark = f"exclude{int(exclude)}"
            yield one("AvgPool", opset, [image], window([2, 2], [2, 2], [0, 0], [0, 0], **flag), tag=f"{mark}-floor")
            yield one("AvgPool", opset, [image], window([2, 2], [2, 2], [0, 0], [0, 0], "ceil", **flag), tag=f"{mark}-ceil", fixture=opset == 14)
            yield one("AvgPool", opset, [image], window([3, 3], [2, 2], [1, 1], [1, 1], **flag), tag=f"{mark}-padded", fixture=opset == 1)
            yield one("AvgPool", opset, [image], window([3, 2], [2, 3], [1, 0], [0, 1], "ceil", **flag), tag=f"{mark}-uneven-ceil", fixture=opset == 1)
            for auto in ("same_upper", "same_lower", "valid"):
                yield one("AvgPool", opset, [image], window([2, 2], [1, 1], [0, 0], [0, 0], "floor", auto, **flag),
                          tag=f"{mark}-{auto.replace('_', '-')}")
            if opset >= 14:
                yield one("AvgPool", opset, [image], window([3, 3], [3, 3], [1, 1], [1, 1], "ceil_torch", **flag),
                          tag=f"{mark}-ceil-torch", fixture=True)
    keep = {"exclude-pad": True}
    yield one("AvgPool", 16, [image], window([2, 2], [1, 1], [1, 1], [1, 1], dilations=[2, 2], **keep), tag="dilated", fixture=True)
    yield one("AvgPool", 16, [image], window([2, 2], [1, 1], [1, 1], [1, 1], dilations=[2, 2], **{"exclude-pad": False}),
              tag="dilated-include")
    yield one("AvgPool", 1, [uniform("f32", 2, 3, 9)], window([3], [2], [1], [1], **keep), tag="1d")
    yield one("AvgPool", 1, [uniform("f32", 1, 2, 4, 5, 4)], window([2, 3, 2], [2, 1, 2], [0, 1, 0], [0, 1, 0], **keep), tag="3d")
    yield one("AvgPool", 1, [uniform("f16", 1, 2, 5, 5)], window([2, 2], [2, 2], [0, 0], [0, 0], **keep), tag="f16")
    yield one("AvgPool", 1, [dynamic(image)], window([2, 2], [2, 2], [0, 0], [0, 0], **keep), tag="dynamic")
    yield one("AvgPool", 1, [uniform("f32", 1, 2, 4, 4)], window([4, 4], [1, 1], [0, 0], [0, 0], **keep), tag="global")


def maximum():
    image = distinct("f32", 1, 2, 5, 5)
    for opset in (1, 8, 14):
        more = {} if opset == 1 else {"dilations": [1, 1]}
        yield one("MaxPool", opset, [image], window([2, 2], [2, 2], [0, 0], [0, 0], **more), tag="floor")
        yield one("MaxPool", opset, [image], window([2, 2], [2, 2], [0, 0], [0, 0], "ceil", **more), tag="ceil", fixture=True)
        yield one("MaxPool", opset, [image], window([3, 3], [2, 2], [1, 1], [1, 1], **more), tag="padded", fixture=opset == 8)
        for auto in ("same_upper", "same_lower", "valid"):
            yield one("MaxPool", opset, [image], window([2, 2], [1, 1], [0, 0], [0, 0], "floor", auto, **more),
                      tag=auto.replace("_", "-"))
        if opset >= 8:
            yield one("MaxPool", opset, [image], window([2, 2], [1, 1], [1, 1], [1, 1], dilations=[2, 2]), tag="dilated", fixture=True)
            for axis in (1, 2, -1):
                yield one("MaxPool", opset, [image], window([2, 2], [1, 1], [0, 0], [0, 0], dilations=[1, 1], axis=axis,
                                                            index_element_type="i32"), tag=f"i32-index-axis{axis}", fixture=axis == 2)
        yield one("MaxPool", opset, [distinct("f32", 2, 3, 9)], window([3], [2], [1], [1], **({} if opset == 1 else {"dilations": [1]})), tag="1d")
    yield one("MaxPool", 14, [image], window([3, 3], [3, 3], [1, 1], [1, 1], "ceil_torch", dilations=[1, 1]), tag="ceil-torch", fixture=True)
    yield one("MaxPool", 8, [distinct("f32", 1, 2, 4, 4, 4)], window([2, 2, 2], [2, 2, 2], [0] * 3, [0] * 3, dilations=[1] * 3), tag="3d")
    yield one("MaxPool", 1, [distinct("f16", 1, 2, 5, 5)], window([2, 2], [2, 2], [0, 0], [0, 0]), tag="f16")
    yield one("MaxPool", 1, [uniform("u8", 1, 2, 5, 5, lo=0, hi=250)], window([2, 2], [2, 2], [0, 0], [0, 0]), tag="u8")
    yield one("MaxPool", 1, [uniform("i8", 1, 2, 5, 5, lo=-100, hi=100)], window([2, 2], [2, 2], [1, 1], [0, 0]), tag="i8")
    yield one("MaxPool", 8, [uniform("i32", 1, 2, 5, 5, lo=-100, hi=100)], window([2, 2], [2, 2], [0, 0], [0, 0], dilations=[1, 1]), tag="i32")
    yield one("MaxPool", 8, [dynamic(image)], window([2, 2], [2, 2], [0, 0], [0, 0], dilations=[1, 1]), tag="dynamic")
    yield one("MaxPool", 8, [uniform("f32", 1, 1, 4, 4, lo=1, hi=1)], window([2, 2], [1, 1], [0, 0], [0, 0], dilations=[1, 1]), tag="ties")


def adaptive():
    def largest(data):
        """Reference of AdaptiveMaxPool over the last axis only, which the CPU device refuses with i64 indices."""
        n, m = data.shape[-1], 3
        spans = [(k * n // m, -(-(k + 1) * n // m)) for k in range(m)]
        values = np.stack([data[..., a:b].max(-1) for a, b in spans], -1)
        return [values, np.stack([data[..., a:b].argmax(-1) + a for a, b in spans], -1)]
    yield one("AdaptiveMaxPool", 8, [distinct("f32", 2, 3, 7), const("i64", [3])], {"index_element_type": "i64"}, tag="1d-i64-index", reference=largest)
    for shape, size in (((2, 3, 7), [3]), ((1, 2, 5, 7), [2, 3]), ((1, 2, 4, 5, 6), [2, 2, 4]), ((1, 2, 5, 7), [7, 9])):
        mark = f"{len(size)}d" + ("-up" if size == [7, 9] else "")
        yield one("AdaptiveAvgPool", 8, [uniform("f32", *shape), const("i64", size)], tag=mark, fixture=mark == "2d")
        yield one("AdaptiveMaxPool", 8, [distinct("f32", *shape), const("i64", size)], {"index_element_type": "i32"}, tag=mark, fixture=mark == "2d")
    yield one("AdaptiveMaxPool", 8, [distinct("f32", 1, 2, 5, 7), const("i32", [2, 3])], {"index_element_type": "i32"}, tag="i32-sizes")
    yield one("AdaptiveAvgPool", 8, [uniform("f16", 1, 2, 5, 7), const("i32", [2, 3])], tag="f16")
    yield one("AdaptiveAvgPool", 8, [dynamic(uniform("f32", 1, 2, 5, 7)), const("i64", [2, 3])], tag="dynamic")
