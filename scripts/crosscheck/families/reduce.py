"""Reductions along axes."""

import numpy as np

from ..case import const, dynamic, literal, one, uniform

NUMERIC = {"ReduceSum": 1, "ReduceMean": 1, "ReduceMax": 1, "ReduceMin": 1, "ReduceProd": 1, "ReduceL1": 4,
           "ReduceL2": 4}
LOGICAL = ["ReduceLogicalAnd", "ReduceLogicalOr"]


def cases():
    for name, opset in NUMERIC.items():
        data = uniform("f32", 2, 3, 4, lo=0.5, hi=1.5) if name == "ReduceProd" else uniform("f32", 2, 3, 4)
        for keep in (False, True):
            attrs = {"keep_dims": keep}
            yield one(name, opset, [data, const("i64", [1])], attrs, tag=f"f32-axis1-keep{int(keep)}", fixture=not keep)
            yield one(name, opset, [data, const("i32", [-1, 0])], attrs, tag=f"f32-axes-keep{int(keep)}", fixture=keep)
        drop = {"keep_dims": False}
        yield one(name, opset, [data, const("i64", 2)], drop, tag="f32-scalar-axis")
        if name not in ("ReduceL1", "ReduceL2"):
            yield one(name, opset, [data, const("i64", np.zeros((0,)))], drop, tag="f32-no-axes", reference=lambda x: [x])
        yield one(name, opset, [data, const("i64", [0, 1, 2])], drop, tag="f32-all")
        yield one(name, opset, [uniform("f16", 3, 4), const("i64", [0])], drop, tag="f16")
        yield one(name, opset, [uniform("i32", 3, 5, lo=-4, hi=4), const("i64", [1])], drop, tag="i32")
        yield one(name, opset, [uniform("i64", 3, 5, lo=1, hi=4), const("i64", [0])], drop, tag="i64")
        yield one(name, opset, [dynamic(data), const("i64", [1, 2])], {"keep_dims": True}, tag="dynamic")
        yield one(name, opset, [data, literal("i32", [1])], drop, tag="run-time-axis")
    for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"):
        yield one(name, 1, [uniform("u8", 3, 5, lo=0, hi=40), const("i64", [1])], {"keep_dims": False}, tag="u8")
    for name in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1"):
        # OpenVINO's maximum starts at the lowest finite number; the maximum of nothing is minus infinity.
        options = {}
        if name == "ReduceMax":
            options = {"reference": lambda x: [np.full((2, 3), -np.inf, np.float32)],
                       "known": "the maximum of no elements is the lowest finite number in OpenVINO"}
        yield one(name, NUMERIC[name], [uniform("f32", 2, 0, 3), const("i64", [1])], {"keep_dims": False},
                  tag="f32-empty", **options)
    for name in LOGICAL:
        data = uniform("boolean", 2, 3, 4)
        for keep in (False, True):
            yield one(name, 1, [data, const("i64", [1])], {"keep_dims": keep}, tag=f"axis1-keep{int(keep)}", fixture=keep)
        yield one(name, 1, [data, const("i64", [-1, 0])], {"keep_dims": False}, tag="axes")
        yield one(name, 1, [dynamic(data), const("i64", [2])], {"keep_dims": False}, tag="dynamic")
