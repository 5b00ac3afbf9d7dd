"""Shape changes and movement of elements: reshape, transpose, concat, split, slices, pads, tiles, blocks."""

import numpy as np

from ..case import Dyn, const, counting, dynamic, literal, net, one, uniform

BIG = 2 ** 63 - 1


def cases():
    yield from reshape()
    yield from squeeze()
    yield from transpose()
    yield from concat()
    yield from split()
    yield from strided_slice()
    yield from slices()
    yield from pad()
    yield from tile_broadcast()
    yield from blocks()
    yield from reverse_roll()
    yield from patches()
    yield from makers()
    yield from shape_of()


def reshape():
    data = counting("f32", 2, 3, 4)
    for tag, shape, special in [("flat", [-1], False), ("minus-one", [4, -1], False), ("zero-copies", [0, -1], True),
                                ("zero-twice", [0, 0, 2, 2], True), ("same-rank", [3, 4, 2], False), ("ones", [1, 24, 1], False)]:
        yield one("Reshape", 1, [data, const("i64", shape)], {"special_zero": special}, tag=tag, fixture=tag in ("zero-copies", "zero-twice"))
    yield one("Reshape", 1, [uniform("f32", 1), const("i64", np.zeros((0,)))], {"special_zero": False}, tag="to-scalar")
    yield one("Reshape", 1, [uniform("f32", 0, 3), const("i64", [0, 6])], {"special_zero": False}, tag="real-zero")
    yield one("Reshape", 1, [uniform("f32", 0, 3), const("i64", [3, 0])], {"special_zero": False}, tag="empty")
    for kind in ("f16", "i32", "u8", "boolean", "i64"):
        yield one("Reshape", 1, [uniform(kind, 2, 6), const("i32", [3, 4])], {"special_zero": False}, tag=kind)
    yield one("Reshape", 1, [data, literal("i64", [6, -1])], {"special_zero": True}, tag="run-time-shape")
    yield one("Reshape", 1, [dynamic(data), const("i64", [0, -1])], {"special_zero": True}, tag="dynamic")

    def by_shape_of(g):
        """ShapeOf -> Gather -> Concat -> Reshape, the flatten that exporters write."""
        x = g.input(uniform("f32", 2, 3, 4, 5), shape="?,?,?,?")
        rows = g.op("Gather", 8, [g.op("ShapeOf", 3, [x], {"output_type": "i64"}), const("i64", [0]), const("i64", 0)], {"batch_dims": 0})
        shape = g.op("Concat", 1, [rows, const("i64", [-1])], {"axis": 0})
        return [g.op("Reshape", 1, [x, shape], {"special_zero": False})]
    yield net("Reshape", 1, "by-shapeof", by_shape_of, fixture=True)


def squeeze():
    data = uniform("f32", 1, 3, 1, 2)
    for opset in (1, 15):
        attrs = {} if opset == 1 else {"allow_axis_skip": False}
        yield one("Squeeze", opset, [data], attrs, tag="all", fixture=True)
        yield one("Squeeze", opset, [data, const("i64", [0])], attrs, tag="first")
        yield one("Squeeze", opset, [data, const("i64", [-2])], attrs, tag="negative", fixture=True)
        yield one("Squeeze", opset, [data, const("i64", [0, 2])], attrs, tag="both")
        yield one("Squeeze", opset, [data, const("i64", 2)], attrs, tag="scalar-axis")
        yield one("Squeeze", opset, [dynamic(data), const("i64", [0, 2])], attrs, tag="dynamic")
        yield one("Squeeze", opset, [uniform("i32", 1, 4), const("i32", [0])], attrs, tag="i32")
        yield one("Squeeze", opset, [data, const("i64", [1])], attrs, tag="axis-not-one")
    yield one("Squeeze", 15, [data, const("i64", [0])], {"allow_axis_skip": True}, tag="skip")
    base = uniform("f32", 3, 4)
    for tag, axes in [("first", [0]), ("last", [-1]), ("two", [0, 3]), ("middle", [1]), ("negative-two", [-1, -4])]:
        yield one("Unsqueeze", 1, [base, const("i64", axes)], tag=tag, fixture=tag in ("two", "negative-two"))
    yield one("Unsqueeze", 1, [base, const("i64", 1)], tag="scalar-axis")
    yield one("Unsqueeze", 1, [uniform("f32"), const("i64", [0])], tag="of-scalar")
    yield one("Unsqueeze", 1, [dynamic(base), const("i64", [1])], tag="dynamic")
    yield one("Unsqueeze", 1, [uniform("boolean", 4), const("i64", [0])], tag="boolean")


def transpose():
    data = counting("f32", 2, 3, 4)
    for order in ([0, 2, 1], [2, 1, 0], [1, 0, 2], [0, 1, 2]):
        yield one("Transpose", 1, [data, const("i64", order)], tag="".join(map(str, order)), fixture=order == [1, 0, 2])
    yield one("Transpose", 1, [data, const("i64", np.zeros((0,)))], tag="reverse-all", reference=lambda x: [x.T], fixture=True)
    yield one("Transpose", 1, [counting("f32", 1, 3, 4, 5), const("i32", [0, 2, 3, 1])], tag="nchw-to-nhwc")
    yield one("Transpose", 1, [counting("f32", 2, 2, 3, 2, 2), const("i64", [4, 0, 2, 1, 3])], tag="rank5")
    for kind in ("u8", "f16", "i64", "boolean"):
        yield one("Transpose", 1, [uniform(kind, 3, 4), const("i64", [1, 0])], tag=kind)
    yield one("Transpose", 1, [dynamic(data), const("i64", [2, 0, 1])], tag="dynamic")
    yield one("Transpose", 1, [data, literal("i64", [2, 0, 1])], tag="run-time-order")


def concat():
    parts = [uniform("f32", 2, 3, 4), uniform("f32", 2, 1, 4), uniform("f32", 2, 2, 4)]
    yield one("Concat", 1, parts, {"axis": 1}, tag="axis1", fixture=True)
    yield one("Concat", 1, parts, {"axis": -2}, tag="negative", fixture=True)
    yield one("Concat", 1, [uniform("f32", 2, 3), uniform("f32", 0, 3), uniform("f32", 1, 3)], {"axis": 0}, tag="empty-part")
    yield one("Concat", 1, [uniform("f32", 3)], {"axis": 0}, tag="one")
    yield one("Concat", 1, [dynamic(p) for p in parts], {"axis": 1}, tag="dynamic")
    for kind in ("i64", "u8", "boolean", "f16"):
        yield one("Concat", 1, [uniform(kind, 2, 3), uniform(kind, 2, 2)], {"axis": 1}, tag=kind)


def split():
    data = counting("f32", 2, 6, 2)
    yield one("Split", 1, [data, const("i64", 1)], {"num_splits": 3}, tag="three", fixture=True)
    yield one("Split", 1, [data, const("i64", -2)], {"num_splits": 2}, tag="negative-axis")
    yield one("Split", 1, [dynamic(data), const("i32", 1)], {"num_splits": 2}, tag="dynamic")
    yield one("Split", 1, [uniform("i64", 4, 2), const("i64", 0)], {"num_splits": 4}, tag="i64")
    yield one("Split", 1, [uniform("u8", 4, 2), const("i64", 1)], {"num_splits": 2}, tag="u8")
    for tag, lengths in [("plain", [1, 2, 3]), ("rest", [2, -1, 1]), ("rest-is-zero", [6, -1]), ("zero-length", [0, 6])]:
        yield one("VariadicSplit", 1, [data, const("i64", 1), const("i64", lengths)], tag=tag, fixture=tag == "rest")
    yield one("VariadicSplit", 1, [data, const("i64", -2), const("i32", [4, 2])], tag="negative-axis")
    yield one("VariadicSplit", 1, [dynamic(data), const("i64", 1), const("i64", [4, -1])], tag="dynamic")
    yield one("VariadicSplit", 1, [uniform("f16", 2, 5), const("i64", 1), const("i64", [2, 3])], tag="f16")


def strided_slice():
    line, cube = counting("f32", 10), counting("f32", 3, 4, 5)

    def ss(tag, data, begin, end, strides, bm, em, new=(), shrink=(), ellipsis=(), **kw):
        ins = [data, const("i64", begin), const("i64", end)] + ([const("i64", strides)] if strides else [])
        return one("StridedSlice", 1, ins, {"begin_mask": list(bm), "end_mask": list(em), "new_axis_mask": list(new),
                                            "shrink_axis_mask": list(shrink), "ellipsis_mask": list(ellipsis)}, tag=tag, **kw)
    yield ss("plain", cube, [0, 1, 2], [2, 4, 5], [1, 1, 2], [0, 0, 0], [0, 0, 0], fixture=True)
    yield ss("no-strides", cube, [0, 1], [2, 4], None, [0, 0], [0, 0])
    yield ss("masks", cube, [9, 1, 1], [9, 9, 3], [1, 1, 1], [1, 0, 0], [1, 1, 0], fixture=True)
    yield ss("negative-stride-open-end", line, [8], [0], [-3], [0], [1], fixture=True)
    yield ss("negative-stride-below", line, [8], [-11], [-3], [0], [0])
    yield ss("empty", line, [3], [3], [1], [0], [0], fixture=True)
    yield ss("reverse", line, [0], [0], [-1], [1], [1])
    yield ss("negative-values", line, [-4], [-1], [1], [0], [0])
    yield ss("beyond", line, [-100], [100], [4], [0], [0])
    yield ss("shrink", cube, [1, 0, 0], [2, 4, 5], [1, 1, 1], [0, 1, 1], [0, 1, 1], shrink=[1, 0, 0], fixture=True)
    yield ss("shrink-negative", cube, [-1, 0], [0, 4], [1, 1], [0, 1], [0, 1], shrink=[1, 0])
    yield ss("new-axis", cube, [0, 0, 1], [0, 3, 3], [1, 1, 1], [0, 1, 0], [0, 1, 0], new=[1, 0, 0], fixture=True)
    yield ss("ellipsis", cube, [0, 1], [0, 3], [1, 1], [0, 0], [0, 0], ellipsis=[1, 0], fixture=True)
    yield ss("ellipsis-shrink", cube, [0, 0, 2], [1, 0, 3], [1, 1, 1], [0, 0, 0], [0, 0, 0], ellipsis=[0, 1, 0], shrink=[0, 0, 1])
    yield ss("new-shrink-ellipsis", cube, [0, 1, 0, 1], [0, 2, 0, 4], [1, 1, 1, 2], [0] * 4, [0] * 4, new=[1, 0, 0, 0], shrink=[0, 1, 0, 0],
             ellipsis=[0, 0, 1, 0])
    yield ss("dynamic", dynamic(cube), [0, 1, 0], [2, 4, 0], [1, 2, 1], [0, 0, 1], [0, 0, 1])
    yield ss("i64", counting("i64", 4, 4), [1, 0], [3, 4], [1, 2], [0, 0], [0, 0])
    yield ss("u8", counting("u8", 4, 4), [1, 0], [3, 4], [1, 2], [0, 0], [0, 0])
    yield one("StridedSlice", 1, [cube, literal("i64", [0, 1, 0]), literal("i64", [2, 4, 5]), literal("i64", [1, 1, 2])],
              {"begin_mask": [0] * 3, "end_mask": [0] * 3}, tag="run-time-bounds")


def slices():
    line, cube = counting("f32", 10), counting("f32", 3, 4, 5)

    def sl(tag, data, start, stop, step, axes=None, **kw):
        ins = [data, const("i64", start), const("i64", stop), const("i64", step)] + ([const("i64", axes)] if axes is not None else [])
        return one("Slice", 8, ins, tag=tag, **kw)
    yield sl("plain", cube, [0, 1, 2], [2, 4, 5], [1, 1, 2], fixture=True)
    yield sl("axes", cube, [1, 0], [3, 2], [1, 1], [-1, 0], fixture=True)
    yield sl("to-the-end", line, [8], [-BIG - 1], [-3], fixture=True)
    yield sl("start-beyond", line, [100], [2], [-4], fixture=True)
    yield sl("all-reversed", line, [-1], [-BIG - 1], [-1])
    yield sl("max-stop", line, [2], [BIG], [3])
    yield sl("empty", line, [5], [2], [1])
    yield sl("dynamic", dynamic(cube), [1], [BIG], [1], [1])
    for kind in ("i32", "u8", "f16", "boolean"):
        yield sl(kind, uniform(kind, 4, 5), [1, 0], [4, 5], [2, 2])
    yield one("Slice", 8, [cube, literal("i32", [1]), literal("i32", [3]), literal("i32", [1]), literal("i32", [2])], tag="run-time-bounds")

    def scatter(tag, data, updates, start, stop, step, axes=None, **kw):
        ins = [data, updates, const("i64", start), const("i64", stop), const("i64", step)] + ([const("i64", axes)] if axes is not None else [])
        return one("SliceScatter", 15, ins, tag=tag, **kw)
    yield scatter("plain", cube, uniform("f32", 3, 2, 5), [0, 1], [3, 3], [1, 1], fixture=True)
    yield scatter("axes", cube, uniform("f32", 3, 4, 2), [0], [4], [2], [-1], fixture=True)
    yield scatter("negative-step", line, uniform("f32", 3), [8], [-BIG - 1], [-3])
    yield scatter("dynamic", dynamic(cube), dynamic(uniform("f32", 1, 4, 5)), [1], [2], [1], [0])
    yield scatter("i32", counting("i32", 3, 4), uniform("i32", 3, 2), [1], [3], [1], [1])
    yield scatter("nothing", line, uniform("f32", 0), [5], [2], [1])


def pad():
    data = counting("f32", 2, 3, 4, start=1)
    for opset in (1, 12):
        for mode in ("constant", "edge", "reflect", "symmetric"):
            ins = [data, const("i64", [0, 1, 2]), const("i64", [1, 0, 1])] + ([const("f32", 9.0)] if mode == "constant" else [])
            yield one("Pad", opset, ins, {"pad_mode": mode}, tag=mode, fixture=opset == 12)
            if mode != "constant":
                deep = [counting("f32", 3, 4), const("i64", [2, 3]), const("i64", [2, 3])]
                yield one("Pad", opset, deep, {"pad_mode": mode}, tag=f"{mode}-deep")
        yield one("Pad", opset, [data, const("i64", [1, 0, 0]), const("i64", [0, 2, 0])], {"pad_mode": "constant"}, tag="no-value")
        yield one("Pad", opset, [dynamic(data), const("i32", [1, 0, 0]), const("i32", [0, 2, 1]), const("f32", -1.0)], {"pad_mode": "constant"},
                  tag="dynamic")
    line = counting("f32", 6, start=1)
    for mode in ("constant", "edge", "reflect", "symmetric"):
        yield one("Pad", 12, [line, const("i64", [-1]), const("i64", [2])], {"pad_mode": mode}, tag=f"{mode}-crop", fixture=True)
        yield one("Pad", 12, [line, const("i64", [2]), const("i64", [-3])], {"pad_mode": mode}, tag=f"{mode}-crop-end")
    yield one("Pad", 12, [data, const("i64", [-1, 0, -1]), const("i64", [0, -1, -1])], {"pad_mode": "constant"}, tag="only-crop")
    for kind in ("i32", "u8", "f16", "i64"):
        yield one("Pad", 12, [uniform(kind, 2, 3), const("i64", [1, 1]), const("i64", [0, 1]), const(kind, 5)], {"pad_mode": "constant"}, tag=kind)


def tile_broadcast():
    data = counting("f32", 2, 1, 3)
    for tag, repeats in [("plain", [2, 3, 1]), ("short", [2]), ("long", [2, 1, 1, 3]), ("ones", [1, 1, 1]), ("zero", [1, 0, 2])]:
        yield one("Tile", 1, [data, const("i64", repeats)], tag=tag, fixture=tag in ("short", "long"))
    yield one("Tile", 1, [dynamic(data), const("i32", [1, 2, 2])], tag="dynamic")
    yield one("Tile", 1, [data, literal("i64", [1, 2, 2])], tag="run-time-repeats")
    yield one("Tile", 1, [uniform("u8", 2, 2), const("i64", [2, 2])], tag="u8")
    for opset in (1, 3):
        yield one("Broadcast", opset, [data, const("i64", [2, 2, 4, 3])], {"mode": "numpy"}, tag="numpy", fixture=True)
        yield one("Broadcast", opset, [uniform("f32", 4), const("i64", [2, 4, 3]), const("i64", [1])], {"mode": "explicit"}, tag="explicit",
                  fixture=True)
        yield one("Broadcast", opset, [uniform("f32", 2, 3), const("i64", [2, 4, 3]), const("i64", [0, 2])], {"mode": "explicit"}, tag="explicit-two")
        yield one("Broadcast", opset, [uniform("i32"), const("i64", [2, 3])], {"mode": "numpy"}, tag="scalar-i32")
        yield one("Broadcast", opset, [dynamic(uniform("f32", 1, 3)), const("i64", [4, 3])], {"mode": "numpy"}, tag="dynamic")
    yield one("Broadcast", 3, [uniform("f32", 3, 1), const("i64", [2, 1, 4])], {"mode": "bidirectional"}, tag="bidirectional", fixture=True)
    yield one("Broadcast", 3, [uniform("f32", 2, 3, 4), const("i64", [1, 1])], {"mode": "bidirectional"}, tag="bidirectional-smaller-target")
    yield one("Broadcast", 3, [uniform("f32", 3), literal("i64", [2, 3])], {"mode": "numpy"}, tag="run-time-shape")
    for kind in ("boolean", "f16", "u8", "i64"):
        yield one("Broadcast", 3, [uniform(kind, 3), const("i64", [2, 3])], {"mode": "numpy"}, tag=kind)


def blocks():
    for mode in ("blocks_first", "depth_first"):
        mark = mode.replace("_", "-")
        yield one("DepthToSpace", 1, [counting("f32", 1, 8, 2, 3)], {"mode": mode, "block_size": 2}, tag=mark, fixture=True)
        yield one("SpaceToDepth", 1, [counting("f32", 1, 2, 4, 6)], {"mode": mode, "block_size": 2}, tag=mark, fixture=True)
        yield one("DepthToSpace", 1, [counting("f32", 1, 8, 2, 2, 2)], {"mode": mode, "block_size": 2}, tag=f"{mark}-3d")
        yield one("SpaceToDepth", 1, [counting("f32", 1, 1, 2, 4, 2)], {"mode": mode, "block_size": 2}, tag=f"{mark}-3d")
        yield one("DepthToSpace", 1, [counting("f32", 2, 4, 3)], {"mode": mode, "block_size": 2}, tag=f"{mark}-1d")
        yield one("DepthToSpace", 1, [dynamic(counting("f32", 1, 8, 2, 3))], {"mode": mode, "block_size": 2}, tag=f"{mark}-dynamic")
        yield one("SpaceToDepth", 1, [counting("u8", 1, 2, 4, 4)], {"mode": mode, "block_size": 2}, tag=f"{mark}-u8")
    yield one("SpaceToBatch", 2, [counting("f32", 1, 2, 4, 3), const("i64", [1, 1, 2, 3]), const("i64", [0, 0, 1, 0]), const("i64", [0, 0, 1, 3])],
              tag="2d", fixture=True)
    yield one("SpaceToBatch", 2, [dynamic(counting("f32", 1, 2, 4, 4)), const("i64", [1, 1, 2, 2]), const("i64", [0] * 4), const("i64", [0] * 4)],
              tag="dynamic")
    yield one("SpaceToBatch", 2, [counting("i32", 2, 4), const("i64", [1, 2]), const("i64", [0, 0]), const("i64", [0, 0])], tag="i32")
    yield one("BatchToSpace", 2, [counting("f32", 4, 1, 3, 2), const("i64", [1, 1, 2, 2]), const("i64", [0, 0, 1, 0]), const("i64", [0, 0, 0, 1])],
              tag="2d", fixture=True)
    yield one("BatchToSpace", 2, [dynamic(counting("f32", 4, 1, 3, 2)), const("i64", [1, 1, 2, 2]), const("i64", [0] * 4), const("i64", [0] * 4)],
              tag="dynamic")
    yield one("BatchToSpace", 2, [counting("u8", 6, 2, 2), const("i64", [1, 2, 3]), const("i64", [0, 1, 0]), const("i64", [0, 0, 2])], tag="u8")
    for axis, group in ((1, 2), (-3, 3), (0, 2), (2, 2)):
        yield one("ShuffleChannels", 1, [counting("f32", 4, 6, 2, 2)], {"axis": axis, "group": group}, tag=f"axis{axis}-group{group}",
                  fixture=axis in (1, -3))
    yield one("ShuffleChannels", 3, [counting("f32", 1, 6, 2, 2)], {"axis": 1, "group": 3}, tag="opset3")
    yield one("ShuffleChannels", 1, [dynamic(counting("f32", 1, 6, 2, 2))], {"axis": 1, "group": 3}, tag="dynamic")
    for stride, shape in ((2, (1, 4, 4, 4)), (2, (2, 8, 2, 2)), (3, (1, 9, 3, 3))):
        yield one("ReorgYolo", 2, [counting("f32", *shape)], {"stride": [stride]}, tag=f"stride{stride}-{shape[1]}", fixture=shape[0] == 2)


def reverse_roll():
    data = counting("f32", 3, 4, 2)
    yield one("Reverse", 1, [data, const("i64", [1])], {"mode": "index"}, tag="index", fixture=True)
    yield one("Reverse", 1, [data, const("i64", [0, 2])], {"mode": "index"}, tag="index-two")
    yield one("Reverse", 1, [data, const("boolean", [True, False, True])], {"mode": "mask"}, tag="mask", fixture=True)
    for batch, seq, lengths in ((0, 1, [1, 3, 4]), (1, 0, [1, 2, 3, 1]), (-1, 1, [2, 4])):
        yield one("ReverseSequence", 1, [data, const("i64", lengths)], {"batch_axis": batch, "seq_axis": seq}, tag=f"batch{batch}-seq{seq}",
                  fixture=batch == 0)
    yield one("ReverseSequence", 1, [data, literal("i32", [1, 3, 4])], {"batch_axis": 0, "seq_axis": 1}, tag="run-time-lengths")
    yield one("ReverseSequence", 1, [dynamic(data), const("i64", [4, 1, 2])], {"batch_axis": 0, "seq_axis": 1}, tag="dynamic")
    yield one("ReverseSequence", 1, [counting("i32", 2, 3), const("i64", [2, 3])], {"batch_axis": 0, "seq_axis": 1}, tag="i32")
    for tag, shift, axes in [("one", [1], [1]), ("negative", [-1], [-1]), ("two", [2, -1], [0, 1]), ("repeated-axis", [1, 1], [1, 1]),
                             ("wrap", [7], [1]), ("scalar-shift", 2, [0, 1])]:
        yield one("Roll", 7, [data, const("i64", shift), const("i64", axes)], tag=tag, fixture=tag in ("two", "repeated-axis"),
                  reference=(lambda x: [np.roll(x, (2, 2), (0, 1))]) if tag == "scalar-shift" else None)
    yield one("Roll", 7, [dynamic(data), const("i32", [1]), const("i32", [1])], tag="dynamic")
    yield one("Roll", 7, [uniform("u8", 3, 4), const("i64", [1]), const("i64", [1])], tag="u8")


def patches():
    image = counting("f32", 1, 2, 6, 6)
    for auto in ("valid", "same_upper", "same_lower"):
        for tag, sizes, strides, rates in [("plain", [3, 3], [2, 2], [1, 1]), ("rates", [2, 2], [1, 2], [2, 2])]:
            yield one("ExtractImagePatches", 3, [image], {"sizes": sizes, "strides": strides, "rates": rates, "auto_pad": auto},
                      tag=f"{auto.replace('_', '-')}-{tag}", fixture=tag == "plain")
    yield one("ExtractImagePatches", 3, [dynamic(image)], {"sizes": [2, 2], "strides": [2, 2], "rates": [1, 1], "auto_pad": "valid"}, tag="dynamic")
    yield one("ExtractImagePatches", 3, [uniform("i32", 1, 1, 4, 4)], {"sizes": [2, 2], "strides": [2, 2], "rates": [1, 1], "auto_pad": "valid"},
              tag="i32")
    base = {"strides": [1, 1], "dilations": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0]}
    yield one("Col2Im", 15, [uniform("f32", 1, 8, 9), const("i64", [4, 4]), const("i64", [2, 2])], base, tag="plain", fixture=True)
    yield one("Col2Im", 15, [uniform("f32", 2, 12, 9), const("i64", [5, 5]), const("i64", [2, 2])], dict(base, strides=[2, 2], pads_begin=[1, 1]),
              tag="stride-pad", fixture=True)
    yield one("Col2Im", 15, [uniform("f32", 8, 4), const("i64", [4, 4]), const("i64", [2, 2])], dict(base, dilations=[2, 2]), tag="no-batch-dilated")
    yield one("Col2Im", 15, [dynamic(uniform("f32", 1, 8, 9)), const("i64", [4, 4]), const("i64", [2, 2])], base, tag="dynamic")
    yield one("Col2Im", 15, [uniform("i32", 1, 4, 4), const("i32", [4, 4]), const("i32", [2, 2])], dict(base, strides=[2, 2]), tag="i32")


def makers():
    """Operations that make tensors out of scalars."""
    for tag, kind, start, stop, step in [("up", "f32", 0.0, 1.0, 0.3), ("down", "f32", 5.0, 1.0, -1.5), ("empty", "f32", 3.0, 1.0, 1.0),
                                         ("i32", "i32", 2, 11, 3), ("i64-down", "i64", 5, -3, -2)]:
        yield one("Range", 1, [literal(kind, start), literal(kind, stop), literal(kind, step)], tag=tag, fixture=tag in ("up", "i32"))
        yield one("Range", 4, [literal(kind, start), literal(kind, stop), literal(kind, step)], {"output_type": kind}, tag=tag)
    yield one("Range", 4, [literal("i64", 0), literal("i32", 5), literal("f32", 1.5)], {"output_type": "f32"}, tag="mixed", fixture=True)
    yield one("Range", 4, [literal("f32", 0.9), literal("f32", 5.9), literal("f32", 1.9)], {"output_type": "i32"}, tag="truncating")
    yield one("Range", 4, [const("i64", 0), const("i64", 6), const("i64", 2)], {"output_type": "i64"}, tag="constants")
    for tag, rows, cols, diagonal in [("square", 3, 3, 0), ("wide-up", 2, 4, 1), ("tall-down", 4, 2, -1), ("off", 3, 3, 5)]:
        yield one("Eye", 9, [literal("i64", rows), literal("i64", cols), literal("i64", diagonal)], {"output_type": "f32"}, tag=tag,
                  fixture=tag == "tall-down")
    yield one("Eye", 9, [literal("i32", 2), literal("i32", 3), literal("i32", 0), const("i64", [2, 1])], {"output_type": "i32"}, tag="batch", fixture=True)
    yield one("Eye", 9, [literal("i32", [3]), literal("i32", [2]), literal("i32", [1])], {"output_type": "u8"}, tag="u8-one-element")


def shape_of():
    for data, tag in ((uniform("f32", 2, 3, 4), "f32"), (uniform("f32"), "scalar"), (uniform("i32", 0, 3), "empty"), (uniform("boolean", 5), "boolean")):
        yield one("ShapeOf", 1, [data], tag=tag)
        for kind in ("i64", "i32"):
            yield one("ShapeOf", 3, [data], {"output_type": kind}, tag=f"{tag}-{kind}", fixture=tag in ("f32", "scalar"))
    yield one("ShapeOf", 3, [Dyn(uniform("f32", 2, 3), "?,1..8")], {"output_type": "i32"}, tag="dynamic")
    yield one("ShapeOf", 3, [Dyn(uniform("f32", 2, 3), "...")], {"output_type": "i64"}, tag="unknown-rank")
