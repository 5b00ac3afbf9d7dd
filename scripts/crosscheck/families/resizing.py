"""Interpolate of all versions and GridSample."""

from ..case import const, dynamic, net, one, uniform

COORDINATES = ["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"]
NEAREST = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]
ANTIALIAS = "the CPU device runs `linear` below rank 5 as linear_onnx and ignores antialias"
LINEAR = "the CPU device runs `linear` below rank 5 as linear_onnx"


def cases():
    yield from version_11()
    yield from version_4()
    yield from version_1()
    yield from grid_sample()


def resize(tag, data, sizes, mode, axes=(2, 3), by="sizes", **more):
    known = more.pop("known", "")
    fixture = more.pop("fixture", False)
    attrs = {"mode": mode, "shape_calculation_mode": by, **more}
    target = const("i64", sizes) if by == "sizes" else const("f32", sizes)
    ins = [data, target] + ([const("i64", list(axes))] if axes else [])
    return one("Interpolate", 11, ins, attrs, tag=tag, known=known, fixture=fixture)


def version_11():
    image = uniform("f32", 1, 2, 4, 5)
    for mode in ("nearest", "linear", "linear_onnx", "cubic"):
        for coordinates in COORDINATES:
            for mark, sizes in (("up", [7, 8]), ("down", [2, 3])):
                yield resize(f"{mode}-{coordinates}-{mark}", image, sizes, mode, coordinate_transformation_mode=coordinates,
                             known=LINEAR if mode == "linear" else "", fixture=coordinates in ("half_pixel", "align_corners") and mark == "up")
    for rounding in NEAREST:
        for mark, sizes in (("up", [6, 10]), ("down", [2, 2])):
            yield resize(f"nearest-{rounding}-{mark}", image, sizes, "nearest", nearest_mode=rounding, fixture=mark == "down")
    for mode in ("nearest", "linear_onnx", "cubic"):
        yield resize(f"{mode}-scales", image, [1.5, 0.6], mode, by="scales", fixture=True)
        yield resize(f"{mode}-to-one", image, [1, 1], mode, coordinate_transformation_mode="align_corners")
        yield resize(f"{mode}-pads", image, [6, 8], mode, pads_begin=[0, 0, 1, 0], pads_end=[0, 0, 0, 2])
        yield resize(f"{mode}-dynamic", dynamic(image), [6, 8], mode)
        yield resize(f"{mode}-f16", uniform("f16", 1, 2, 4, 5), [6, 8], mode)
    for mode in ("bilinear_pillow", "bicubic_pillow"):
        a = {"cube_coeff": -0.5} if mode.startswith("bicubic") else {}
        for mark, sizes in (("up", [7, 8]), ("down", [2, 3]), ("mixed", [2, 9])):
            yield resize(f"{mode}-{mark}", image, sizes, mode, fixture=mark == "mixed", **a)
        yield resize(f"{mode}-f16", uniform("f16", 1, 2, 4, 5), [2, 3], mode, **a)
        yield resize(f"{mode}-u8", uniform("u8", 1, 2, 4, 5, lo=0, hi=255), [3, 3], mode, **a)
    yield resize("cubic-coefficient", image, [7, 8], "cubic", cube_coeff=-0.5)
    yield resize("nearest-u8", uniform("u8", 1, 2, 4, 5, lo=0, hi=255), [7, 8], "nearest")
    yield resize("linear-onnx-u8", uniform("u8", 1, 2, 4, 5, lo=0, hi=255), [7, 8], "linear_onnx")
    yield resize("nearest-3d", uniform("f32", 1, 2, 3, 4, 5), [4, 5, 3], "nearest", axes=(2, 3, 4))
    yield resize("linear-onnx-3d", uniform("f32", 1, 2, 3, 4, 5), [4, 5, 3], "linear_onnx", axes=(2, 3, 4))
    yield resize("linear-3d", uniform("f32", 1, 1, 3, 4, 5), [4, 5, 3], "linear", axes=(2, 3, 4))
    yield resize("linear-3d-antialias", uniform("f32", 1, 1, 3, 4, 5), [2, 3, 3], "linear", axes=(2, 3, 4), antialias=True)
    yield resize("linear-antialias", image, [2, 3], "linear", antialias=True, known=ANTIALIAS)
    yield resize("nearest-1d", uniform("f32", 1, 2, 6), [4], "nearest", axes=(2,))
    yield resize("linear-onnx-1d", uniform("f32", 1, 2, 6), [9], "linear_onnx", axes=(2,))
    yield resize("nearest-all-axes", uniform("f32", 2, 3), [4, 5], "nearest", axes=None)
    yield resize("linear-onnx-channels-last", uniform("f32", 1, 4, 5, 3), [6, 8], "linear_onnx", axes=(1, 2))
    yield resize("same-size", image, [4, 5], "cubic")

    def from_shape(g):
        x = g.input(image, shape="?,2,?,?")
        shape = g.op("ShapeOf", 3, [x], {"output_type": "i64"})
        spatial = g.op("Slice", 8, [shape, const("i64", [2]), const("i64", [4]), const("i64", [1])])
        doubled = g.op("Multiply", 1, [spatial, const("i64", 2)])
        return [g.op("Interpolate", 11, [x, doubled, const("i64", [2, 3])], {"mode": "nearest", "shape_calculation_mode": "sizes"})]
    yield net("Interpolate", 11, "sizes-from-shapeof", from_shape)


def version_4():
    image = uniform("f32", 1, 2, 4, 5)
    for mode in ("nearest", "linear_onnx", "cubic"):
        for by in ("sizes", "scales"):
            ins = [image, const("i64", [6, 8]), const("f32", [1.5, 1.7]), const("i64", [2, 3])]
            yield one("Interpolate", 4, ins, {"mode": mode, "shape_calculation_mode": by}, tag=f"{mode}-{by}", fixture=by == "scales")
    ins = [image, const("i64", [1, 2, 6, 3]), const("f32", [1, 1, 1.5, 0.6])]
    yield one("Interpolate", 4, ins, {"mode": "nearest", "shape_calculation_mode": "sizes"}, tag="no-axes")
    yield one("Interpolate", 4, [image, const("i64", [6, 8]), const("f32", [1.5, 1.6]), const("i64", [2, 3])],
              {"mode": "nearest", "shape_calculation_mode": "sizes", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
              tag="asymmetric-floor")
    yield one("Interpolate", 4, [image, const("i64", [2, 3]), const("f32", [0.5, 0.6]), const("i64", [2, 3])],
              {"mode": "linear", "shape_calculation_mode": "sizes", "antialias": True}, tag="linear-antialias", known=ANTIALIAS)


def version_1():
    image = uniform("f32", 1, 2, 4, 5)
    for mode in ("nearest", "linear", "cubic"):
        for align in (True, False):
            for mark, sizes in (("up", [7, 8]), ("down", [2, 3])):
                yield one("Interpolate", 1, [image, const("i64", sizes)], {"axes": [2, 3], "mode": mode, "align_corners": align},
                          tag=f"{mode}-align{int(align)}-{mark}", fixture=mark == "up")
    yield one("Interpolate", 1, [uniform("f32", 1, 2, 6), const("i64", [9])], {"axes": [2], "mode": "linear", "align_corners": False}, tag="linear-1d")


def grid_sample():
    image, grid = uniform("f32", 2, 3, 4, 5), uniform("f32", 2, 3, 6, 2, lo=-1.6, hi=1.6)
    for mode in ("bilinear", "bicubic", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                yield one("GridSample", 9, [image, grid], {"mode": mode, "padding_mode": padding, "align_corners": align},
                          tag=f"{mode}-{padding}-align{int(align)}", fixture=align == (padding == "border"))
    yield one("GridSample", 9, [uniform("f32", 1, 1, 1, 1), uniform("f32", 1, 2, 2, 2)], {"mode": "bilinear", "padding_mode": "reflection",
                                                                                          "align_corners": True}, tag="one-pixel")
    yield one("GridSample", 9, [dynamic(image), dynamic(grid)], {"mode": "bilinear"}, tag="dynamic")
    yield one("GridSample", 9, [uniform("f16", 1, 2, 4, 4), uniform("f16", 1, 3, 3, 2, lo=-1, hi=1)], {"mode": "bilinear"}, tag="f16")
