"""Reading and writing by index: Gather and Scatter, OneHot, embedding tables."""

import numpy as np

from ..case import Dyn, const, counting, dynamic, literal, net, one, uniform


def cases():
    yield from gather()
    yield from gather_more()
    yield from scatter()
    yield from one_hot()
    yield from embedding()


def gather():
    data = counting("f32", 3, 4, 2)
    for opset in (1, 7, 8):
        attrs = {} if opset == 1 else {"batch_dims": 0}
        yield one("Gather", opset, [data, const("i64", [0, 2]), const("i64", 0)], attrs, tag="axis0", fixture=opset == 1)
        yield one("Gather", opset, [data, const("i64", [[3, 0], [1, 1]]), const("i64", 1)], attrs, tag="2d-indices", fixture=opset == 7)
        yield one("Gather", opset, [data, const("i32", 1), const("i64", -1)], attrs, tag="scalar-index", fixture=opset == 8)
        yield one("Gather", opset, [data, literal("i32", [2, 0]), const("i64", 0)], attrs, tag="run-time")
        yield one("Gather", opset, [dynamic(data), dynamic(literal("i64", [2, 0])), const("i64", 1)], attrs, tag="dynamic")
        for kind in ("u8", "i64", "f16", "boolean"):
            yield one("Gather", opset, [uniform(kind, 4, 3), const("i64", [3, 1]), const("i64", 0)], attrs, tag=kind)
    batched = counting("f32", 2, 5, 3)
    for opset in (7, 8):
        yield one("Gather", opset, [batched, const("i64", [[0, 4], [2, 2]]), const("i64", 1)], {"batch_dims": 1}, tag="batch1", fixture=True)
        yield one("Gather", opset, [batched, const("i64", [[0, 1, 2], [2, 2, 0]]), const("i64", 2)], {"batch_dims": 1}, tag="batch1-axis2")
        yield one("Gather", opset, [batched, const("i64", [[0, 4], [2, 2]]), const("i64", 1)], {"batch_dims": -1}, tag="batch-negative")
    yield one("Gather", 8, [literal("f32", [1, 2, 3]), literal("i64", [-1, 5, 0, -3, -4]), const("i64", 0)], {"batch_dims": 0},
              tag="negative-and-beyond", fixture=True)
    yield one("Gather", 8, [data, const("i64", np.zeros((0,))), const("i64", 0)], {"batch_dims": 0}, tag="no-indices",
              reference=lambda x: [x[:0]])
    yield one("Gather", 8, [const("string", ["a", "bb", "ccc"]), literal("i64", [2, 0]), const("i64", 0)], {"batch_dims": 0}, tag="string")


def gather_more():
    data = uniform("f32", 3, 4)
    yield one("GatherElements", 6, [data, literal("i64", [[0, 3], [1, 1], [2, 0]])], {"axis": 1}, tag="axis1", fixture=True)
    yield one("GatherElements", 6, [data, literal("i32", [[0, 2, 1, 0]])], {"axis": 0}, tag="axis0")
    yield one("GatherElements", 6, [data, literal("i64", [[-1, 3], [-4, 1], [2, 0]])], {"axis": -1}, tag="negative")
    yield one("GatherElements", 6, [dynamic(data), dynamic(literal("i64", [[0], [1], [2]]))], {"axis": 1}, tag="dynamic")
    yield one("GatherElements", 6, [uniform("u8", 3, 4), literal("i64", [[0, 1], [1, 2], [2, 0]])], {"axis": 1}, tag="u8")
    cube = counting("f32", 2, 3, 2)
    for opset in (5, 8):
        yield one("GatherND", opset, [cube, literal("i64", [[0, 1], [1, 2]])], {"batch_dims": 0}, tag="slices", fixture=True)
        yield one("GatherND", opset, [cube, literal("i32", [[0, 1, 1], [1, 2, 0]])], {"batch_dims": 0}, tag="elements")
        yield one("GatherND", opset, [cube, literal("i64", [[[1]], [[2]]])], {"batch_dims": 1}, tag="batch1")
        yield one("GatherND", opset, [cube, literal("i64", [[[1], [0], [1]], [[0], [0], [1]]])], {"batch_dims": 2}, tag="batch2", fixture=True)
        yield one("GatherND", opset, [dynamic(cube), Dyn(literal("i64", [[0, 1], [1, 2]]), "?,2")], {"batch_dims": 0}, tag="dynamic")
        yield one("GatherND", opset, [uniform("i32", 2, 3), literal("i64", [[1], [0]])], {"batch_dims": 0}, tag="i32")
    yield one("GatherND", 8, [cube, literal("i64", [[-1, -1], [0, -3]])], {"batch_dims": 0}, tag="negative")
    for kind in ("f32", "i32"):
        yield one("GatherTree", 1, [literal(kind, [[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 10]]]), literal(kind, [[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]]]),
                                    literal(kind, [3]), const(kind, 10)], tag=f"beams-{kind}", fixture=True)
    yield one("GatherTree", 1, [uniform("i32", 4, 2, 3, lo=1, hi=6), uniform("i32", 4, 2, 3, lo=0, hi=2), literal("i32", [2, 4]), const("i32", 7)],
              tag="lengths-i32")


def scatter():
    data = counting("f32", 4, 3, 2)
    yield one("ScatterUpdate", 3, [data, const("i64", [3, 0]), uniform("f32", 2, 3, 2), const("i64", 0)], tag="axis0", fixture=True)
    yield one("ScatterUpdate", 3, [data, const("i64", [[2], [0]]), uniform("f32", 4, 2, 1, 2), const("i64", 1)], tag="2d-indices", fixture=True,
              trust="cpu", known="the reference kernel misplaces the updates of a multi-dimensional index")
    yield one("ScatterUpdate", 3, [data, literal("i32", [1]), uniform("f32", 4, 3, 1), const("i64", -1)], tag="negative-axis")
    yield one("ScatterUpdate", 3, [dynamic(data), literal("i64", [1]), dynamic(uniform("f32", 1, 3, 2)), const("i64", 0)], tag="dynamic")
    for kind in ("i32", "u8", "i64", "f16"):
        yield one("ScatterUpdate", 3, [uniform(kind, 4, 2), const("i64", [1]), uniform(kind, 1, 2), const("i64", 0)], tag=kind)
    yield from scatter_elements()
    yield from scatter_nd()


def scatter_elements():
    data, where = uniform("f32", 3, 4), literal("i64", [[0, 3], [1, 2], [2, 0]])
    values, axis = uniform("f32", 3, 2), const("i64", 1)
    name = "ScatterElementsUpdate"
    yield one(name, 3, [data, where, values, axis], tag="axis1", fixture=True)
    yield one(name, 3, [data, literal("i32", [[2, 0, 1, 1]]), uniform("f32", 1, 4), const("i64", -2)], tag="negative-axis")
    yield one(name, 3, [uniform("i32", 3, 4), where, uniform("i32", 3, 2), axis], tag="i32")
    yield one(name, 3, [dynamic(data), where, values, axis], tag="dynamic")
    clash = literal("i64", [[0, 0, 3], [1, 1, 1], [-1, 3, 0]])
    for reduction in ("none", "sum", "prod", "min", "max", "mean"):
        for init in (True, False):
            attrs = {"reduction": reduction, "use_init_val": init}
            indices = where if reduction == "none" else clash
            updates = values if reduction == "none" else uniform("f32", 3, 3)
            yield one(name, 12, [data, indices, updates, axis], attrs, tag=f"{reduction}-init{int(init)}-f32", fixture=init or reduction == "mean")
            whole = uniform("i32", 3, 2, lo=-9, hi=9) if reduction == "none" else uniform("i32", 3, 3, lo=-9, hi=9)
            yield one(name, 12, [uniform("i32", 3, 4, lo=-9, hi=9), indices, whole, axis], attrs, tag=f"{reduction}-init{int(init)}-i32",
                      known="the CPU kernel rounds an integer mean toward zero" if reduction == "mean" else "")
    yield one(name, 12, [dynamic(data), dynamic(clash), dynamic(uniform("f32", 3, 3)), axis], {"reduction": "sum", "use_init_val": True}, tag="sum-dynamic")
    yield one(name, 12, [uniform("boolean", 6), literal("i64", [0, 0, 3]), literal("boolean", [True, False, True]), const("i64", 0)],
              {"reduction": "sum", "use_init_val": True}, tag="sum-boolean")


def scatter_nd():
    data = counting("f32", 4, 3)
    name = "ScatterNDUpdate"
    for opset in (4, 15):
        attrs = {} if opset == 4 else {"reduction": "none"}
        yield one(name, opset, [data, literal("i64", [[0, 1], [3, 2]]), uniform("f32", 2)], attrs, tag="elements", fixture=True)
        yield one(name, opset, [data, literal("i64", [[1], [3]]), uniform("f32", 2, 3)], attrs, tag="rows")
        yield one(name, opset, [data, literal("i32", [[[0, 0]], [[2, 1]]]), uniform("f32", 2, 1)], attrs, tag="3d-indices")
        yield one(name, opset, [dynamic(data), dynamic(literal("i64", [[1], [3]])), dynamic(uniform("f32", 2, 3))], attrs, tag="dynamic")
        yield one(name, opset, [uniform("i32", 5), literal("i64", [[1], [4]]), uniform("i32", 2)], attrs, tag="i32")
        yield one(name, opset, [data, literal("i64", [[-1, 1], [0, -3]]), uniform("f32", 2)], attrs, tag="negative")
    for reduction in ("sum", "sub", "prod", "min", "max"):
        attrs = {"reduction": reduction}
        clash = literal("i64", [[0, 1], [3, 2], [0, 1]])
        yield one(name, 15, [uniform("f32", 4, 3), clash, uniform("f32", 3)], attrs, tag=f"{reduction}-f32", fixture=True)
        yield one(name, 15, [uniform("i32", 4, 3, lo=-9, hi=9), clash, uniform("i32", 3, lo=-9, hi=9)], attrs, tag=f"{reduction}-i32")
        yield one(name, 15, [uniform("boolean", 5), literal("i64", [[0], [2], [0]]), uniform("boolean", 3)], attrs, tag=f"{reduction}-boolean")


def one_hot():
    where = literal("i64", [[-1, 0, 2], [3, 1, 5]])
    values = [const("i64", 3), const("f32", 5.0), const("f32", -1.0)]
    for axis in (-1, 0, 1):
        yield one("OneHot", 1, [where, *values], {"axis": axis}, tag=f"axis{axis}", fixture=axis == -1)
        for mode in ("ignore_negative", "normalize"):
            yield one("OneHot", 16, [where, *values], {"axis": axis, "negative_indices_mode": mode}, tag=f"axis{axis}-{mode.split('_')[0]}",
                      fixture=axis == 1)
    yield one("OneHot", 1, [literal("i32", 1), const("i64", 4), const("i32", 1), const("i32", 0)], {"axis": 0}, tag="scalar-i32")
    yield one("OneHot", 1, [where, const("i64", 3), const("boolean", True), const("boolean", False)], {"axis": -1}, tag="boolean")
    yield one("OneHot", 1, [dynamic(where), *values], {"axis": -1}, tag="dynamic")
    yield one("OneHot", 1, [where, literal("i64", 4), literal("f32", 2.0), literal("f32", 0.5)], {"axis": -1}, tag="run-time-depth")
    yield one("OneHot", 1, [where, const("i64", 3), const("u8", 7), const("u8", 1)], {"axis": -1}, tag="u8")


def embedding():
    table = counting("f32", 5, 2)
    indices, offsets = const("i32", [0, 2, 3, 4]), const("i32", [0, 2, 2])
    weights = const("f32", [0.5, 0.25, 2.0, 1.0])
    for name, opset, attrs in (("EmbeddingBagOffsetsSum", 3, {}), ("EmbeddingBagOffsets", 15, {"reduction": "sum"})):
        yield one(name, opset, [table, indices, offsets], attrs, tag="plain", fixture=True)
        yield one(name, opset, [table, indices, offsets, const("i32", 1)], attrs, tag="default")
        yield one(name, opset, [table, indices, offsets, const("i32", -1), weights], attrs, tag="weights", fixture=True)
        yield one(name, opset, [table, indices, offsets, const("i32", 0), weights], attrs, tag="default-weights")
        yield one(name, opset, [table, literal("i64", [4, 0, 1]), literal("i64", [0, 1])], attrs, tag="run-time-i64")
        yield one(name, opset, [dynamic(table), indices, offsets], attrs, tag="dynamic")
    yield one("EmbeddingBagOffsets", 15, [table, indices, offsets], {"reduction": "mean"}, tag="mean", fixture=True)
    yield one("EmbeddingBagOffsets", 15, [table, indices, offsets, const("i32", 2)], {"reduction": "mean"}, tag="mean-default")
    packed = const("i32", [[0, 2], [1, 4], [3, 3]])
    packed_weights = const("f32", [[0.5, 0.25], [2.0, 1.0], [1.0, -1.0]])
    for name, opset, attrs in (("EmbeddingBagPackedSum", 3, {}), ("EmbeddingBagPacked", 15, {"reduction": "sum"})):
        yield one(name, opset, [table, packed], attrs, tag="plain", fixture=True)
        yield one(name, opset, [table, packed, packed_weights], attrs, tag="weights")
        yield one(name, opset, [counting("f32", 5, 2, 2), packed], attrs, tag="rank3-table")
        yield one(name, opset, [dynamic(table), literal("i64", [[0, 1]])], attrs, tag="dynamic")
    yield one("EmbeddingBagPacked", 15, [table, packed], {"reduction": "mean"}, tag="mean", fixture=True)
    segments = [table, const("i32", [0, 2, 3, 4]), const("i32", [0, 0, 2, 2]), const("i32", 4)]
    yield one("EmbeddingSegmentsSum", 3, segments, tag="plain", fixture=True)
    yield one("EmbeddingSegmentsSum", 3, [*segments, const("i32", 1)], tag="default")
    yield one("EmbeddingSegmentsSum", 3, [*segments, const("i32", -1), weights], tag="weights", known="the CPU kernel leaves empty segments unset",
              reference=lambda x: [np.stack([0.5 * x[0] + 0.25 * x[2], 0 * x[0], 2 * x[3] + x[4], 0 * x[0]])])
    yield one("EmbeddingSegmentsSum", 3, [table, literal("i64", [0, 1]), literal("i64", [0, 1]), literal("i64", 3)], tag="run-time-i64")
