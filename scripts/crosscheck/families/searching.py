"""Ordering and searching: TopK, sorted lookups, running sums, nonzero, unique, segments."""

import numpy as np

from ..case import const, distinct, dynamic, literal, one, uniform


def cases():
    yield from topk()
    yield from lookups()
    yield from running()
    yield from unique()
    yield from segments()


def topk():
    data = distinct("f32", 3, 5, 4)
    for opset in (1, 3, 11):
        for mode in ("max", "min"):
            for sort in ("value", "index", "none"):
                yield one("TopK", opset, [data, const("i64", 3)], {"axis": 2 if sort == "none" else 1, "mode": mode, "sort": sort}, tag=f"{mode}-{sort}",
                          judge="rows" if sort == "none" else "values", fixture=opset == 11 and sort != "none")
        attrs = {"axis": -1, "mode": "max", "sort": "value"}
        yield one("TopK", opset, [data, const("i64", 2)], attrs, tag="negative-axis")
        yield one("TopK", opset, [data, const("i64", 4)], attrs, tag="all-of-axis")
        yield one("TopK", opset, [data, const("i64", 2)], dict(attrs, index_element_type="i64"), tag="i64-index", fixture=opset == 3)
        yield one("TopK", opset, [dynamic(data), const("i64", 2)], attrs, tag="dynamic")
        yield one("TopK", opset, [data, literal("i64", 2)], attrs, tag="run-time-k")
        for kind in ("i32", "f16", "u8", "i64"):
            yield one("TopK", opset, [literal(kind, [3, 9, 1, 7, 5, 2, 8]), const("i64", 3)], dict(attrs, axis=0), tag=kind)
    ties = literal("f32", [1, 3, 3, 2, 3, 1])
    stable = {"axis": 0, "mode": "max", "sort": "value", "stable": True}
    yield one("TopK", 11, [ties, const("i64", 4)], stable, tag="stable-max", fixture=True)
    yield one("TopK", 11, [ties, const("i64", 4)], dict(stable, mode="min"), tag="stable-min", fixture=True)
    yield one("TopK", 11, [ties, const("i64", 4)], dict(stable, sort="index"), tag="stable-by-index")
    yield one("TopK", 11, [literal("f32", [5, 1, 1, 2, 0]), const("i64", 3)], {"axis": 0, "mode": "min", "sort": "index"}, tag="ties-by-index")
    yield one("TopK", 3, [literal("f32", [[7]]), const("i32", 1)], {"axis": 1, "mode": "max", "sort": "value"}, tag="one-element")


def lookups():
    values = literal("f32", [[1, 2, 2.5], [3, 9, -1]])
    for right in (True, False):
        for kind in ("i64", "i32"):
            yield one("Bucketize", 3, [values, const("f32", [2.0, 3.0, 7.0])], {"output_type": kind, "with_right_bound": right},
                      tag=f"right{int(right)}-{kind}", fixture=True)
    yield one("Bucketize", 3, [uniform("i32", 8, lo=0, hi=9), const("i32", [2, 4, 6])], {"output_type": "i64", "with_right_bound": True}, tag="i32")
    yield one("Bucketize", 3, [uniform("i64", 8, lo=0, hi=9), const("f32", [2.5, 4.5])], {"output_type": "i32", "with_right_bound": True}, tag="mixed")
    yield one("Bucketize", 3, [values, const("f32", np.zeros((0,)))], {"output_type": "i64", "with_right_bound": True}, tag="no-buckets")
    yield one("Bucketize", 3, [dynamic(values), const("f32", [2.0, 3.0])], {"output_type": "i64", "with_right_bound": False}, tag="dynamic")
    for right in (False, True):
        attrs = {"right_mode": right, "output_type": "i64"}
        mark = f"right{int(right)}"
        yield one("SearchSorted", 15, [literal("f32", [1, 2, 2, 3, 5]), literal("f32", [[2, 0], [9, 3]])], attrs, tag=f"{mark}-1d", fixture=True)
        yield one("SearchSorted", 15, [literal("f32", [[1, 2, 3], [4, 5, 6]]), literal("f32", [[2, 0], [5.5, 9]])], attrs, tag=f"{mark}-2d", fixture=True)
        yield one("SearchSorted", 15, [literal("i32", [1, 2, 2, 3]), literal("i32", [2, 4])], dict(attrs, output_type="i32"), tag=f"{mark}-i32")
    yield one("SearchSorted", 15, [dynamic(literal("f32", [1, 2, 3])), dynamic(literal("f32", [2.5]))], {"right_mode": False}, tag="dynamic")


def running():
    data = uniform("f32", 2, 3, 4)
    for exclusive in (False, True):
        for reverse in (False, True):
            yield one("CumSum", 3, [data, const("i64", 1)], {"exclusive": exclusive, "reverse": reverse}, tag=f"f32-{int(exclusive)}{int(reverse)}",
                      fixture=True)
    yield one("CumSum", 3, [data, const("i32", -1)], {}, tag="negative-axis")
    yield one("CumSum", 3, [uniform("i32", 3, 4), const("i64", 0)], {}, tag="i32")
    yield one("CumSum", 3, [uniform("i64", 3, 4), const("i64", 1)], {"reverse": True}, tag="i64")
    yield one("CumSum", 3, [uniform("f16", 3, 4), const("i64", 1)], {}, tag="f16")
    yield one("CumSum", 3, [dynamic(data), const("i64", 2)], {"exclusive": True}, tag="dynamic")
    for kind in ("i64", "i32"):
        yield one("NonZero", 3, [uniform("i32", 3, 4, lo=0, hi=1)], {"output_type": kind}, tag=f"i32-{kind}", fixture=True)
    for kind in ("f32", "u8", "boolean", "i64", "f16"):
        yield one("NonZero", 3, [uniform(kind, 2, 5, lo=0, hi=2 if kind != "f32" else 1)], {"output_type": "i64"}, tag=kind)
    yield one("NonZero", 3, [literal("i32", 3)], {"output_type": "i64"}, tag="scalar")
    yield one("NonZero", 3, [literal("i32", 0)], {"output_type": "i64"}, tag="scalar-zero")
    yield one("NonZero", 3, [literal("f32", [[0, 0], [0, 0]])], {"output_type": "i64"}, tag="none")
    yield one("NonZero", 3, [dynamic(uniform("i32", 2, 2, 2, lo=0, hi=1))], {"output_type": "i64"}, tag="dynamic")


def unique():
    flat = literal("f32", [3, 1, 3, 2, 1, 3])
    rows = literal("i32", [[1, 2], [3, 4], [1, 2], [0, 9]])
    for in_order in (True, False):
        attrs = {"sorted": in_order, "index_element_type": "i64", "count_element_type": "i64"}
        mark = f"sorted{int(in_order)}"
        yield one("Unique", 10, [flat], attrs, tag=f"{mark}-flat", fixture=True)
        yield one("Unique", 10, [rows], attrs, tag=f"{mark}-2d-flattened")
        yield one("Unique", 10, [rows, const("i64", 0)], attrs, tag=f"{mark}-axis0", fixture=True)
        yield one("Unique", 10, [rows, const("i64", -1)], attrs, tag=f"{mark}-axis1")
    yield one("Unique", 10, [flat], {"sorted": True, "index_element_type": "i32", "count_element_type": "i32"}, tag="i32-index")
    yield one("Unique", 10, [dynamic(flat)], {"sorted": True}, tag="dynamic")
    yield one("Unique", 10, [literal("i64", [5, 5, 5])], {"sorted": True}, tag="one-value")
    yield one("Unique", 10, [literal("u8", [5, 1, 5])], {"sorted": True}, tag="u8")


def segments():
    data = uniform("f32", 5, 2)
    ids = const("i32", [0, 0, 2, 2, 3])
    for mode in ("ZERO", "LOWEST"):
        yield one("SegmentMax", 16, [data, ids], {"fill_mode": mode}, tag=f"{mode.lower()}", fixture=True)
        yield one("SegmentMax", 16, [data, ids, const("i32", 6)], {"fill_mode": mode}, tag=f"{mode.lower()}-more")
        yield one("SegmentMax", 16, [data, ids, const("i32", 2)], {"fill_mode": mode}, tag=f"{mode.lower()}-fewer")
        yield one("SegmentMax", 16, [uniform("i32", 5), ids], {"fill_mode": mode}, tag=f"{mode.lower()}-i32")
    yield one("SegmentMax", 16, [dynamic(data), literal("i64", [0, 1, 1, 1, 4])], {"fill_mode": "ZERO"}, tag="run-time")
    yield one("SparseFillEmptyRows", 16, [uniform("f32", 3), literal("i64", [5, 4]), literal("i64", [[0, 1], [2, 0], [2, 3]]), literal("f32", -1.0)],
              tag="f32", fixture=True)
    yield one("SparseFillEmptyRows", 16, [uniform("i32", 2), literal("i32", [2, 3]), literal("i32", [[0, 1], [1, 2]]), literal("i32", 7)], tag="full-i32")
    yield one("SparseFillEmptyRows", 16, [uniform("f32", 0), literal("i64", [2, 3]), literal("i64", np.zeros((0, 2))), literal("f32", 7)], tag="empty")
