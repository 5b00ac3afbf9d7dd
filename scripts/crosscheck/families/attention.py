"""Scaled dot-product attention, as one operation and written out."""

import numpy as np

from ..case import const, dynamic, literal, net, one, uniform


def cases():
    name = "ScaledDotProductAttention"
    q, k, v = uniform("f32", 1, 2, 4, 8), uniform("f32", 1, 2, 5, 8), uniform("f32", 1, 2, 5, 6)
    same = [uniform("f32", 1, 2, 4, 8) for _ in range(3)]
    yield one(name, 13, [q, k, v], {"causal": False}, tag="plain", fixture=True)
    yield one(name, 13, same, {"causal": True}, tag="causal", fixture=True)
    yield one(name, 13, [q, k, v], {"causal": True}, tag="causal-longer-keys")
    yield one(name, 13, [q, k, v, uniform("f32", 4, 5)], {"causal": False}, tag="mask", fixture=True)
    yield one(name, 13, [q, k, v, literal("boolean", [[1, 1, 0, 0, 1], [1, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 0, 1, 0]])], {"causal": False},
              tag="boolean-mask", fixture=True)
    yield one(name, 13, [q, k, v, uniform("f32", 1, 1, 4, 5), const("f32", 0.25)], {"causal": False}, tag="scale", fixture=True)
    yield one(name, 13, [q, k, v, const("f32", 0.0), literal("f32", 0.5)], {"causal": False}, tag="scalar-mask-run-time-scale")
    yield one(name, 13, [q, k, v, const("f32", 0.0), const("f32", 0.3)], {"causal": True}, tag="causal-scale")
    yield one(name, 13, [dynamic(q), dynamic(k), dynamic(v)], {"causal": False}, tag="dynamic")
    yield one(name, 13, [uniform("f32", 2, 4, 8), uniform("f32", 2, 5, 8), uniform("f32", 2, 5, 8)], {"causal": False}, tag="rank3")
    yield one(name, 13, [uniform("f16", 1, 1, 3, 4) for _ in range(3)], {"causal": False}, tag="f16")
    yield one(name, 13, [uniform("f32", 2, 2, 3, 4), uniform("f32", 1, 2, 3, 4), uniform("f32", 1, 2, 3, 4)], {"causal": False}, tag="batch-broadcast")
    yield one(name, 13, [q, k, v, literal("f32", np.where(np.eye(4, 5), 0, -np.inf))], {"causal": False}, tag="infinite-mask")
    yield one(name, 13, [q, k, v, uniform("f32", 1, 2, 4, 5), const("f32", 0.4), const("f32", uniform("f32", 1, 2, 1, 1))], {"causal": False}, tag="sink")

    def written_out(g):
        q, k, v = (g.input(uniform("f32", 1, 2, 4, 8)) for _ in range(3))
        score = g.op("MatMul", 1, [q, k], {"transpose_a": False, "transpose_b": True})
        score = g.op("Multiply", 1, [score, const("f32", 8 ** -0.5)])
        return [g.op("MatMul", 1, [g.op("Softmax", 8, [score], {"axis": -1}), v], {"transpose_a": False, "transpose_b": False})]
    yield net("MatMul", 1, "attention-written-out", written_out)

    def rms_norm(g):
        x = g.input(uniform("f32", 2, 3, 8))
        square = g.op("Power", 1, [x, const("f32", 2.0)])
        mean = g.op("ReduceMean", 1, [square, const("i64", [-1])], {"keep_dims": True})
        root = g.op("Sqrt", 1, [g.op("Add", 1, [mean, const("f32", 1e-5)])])
        return [g.op("Multiply", 1, [g.op("Divide", 1, [x, root]), const("f32", uniform("f32", 8))])]
    yield net("Power", 1, "rms-norm", rms_norm)

    def rotary(g):
        x, cos, sin = g.input(uniform("f32", 1, 2, 4, 8)), g.input(uniform("f32", 1, 1, 4, 8)), g.input(uniform("f32", 1, 1, 4, 8))
        halves = g.op("VariadicSplit", 1, [x, const("i64", -1), const("i64", [4, 4])])
        turned = g.op("Concat", 1, [g.op("Multiply", 1, [halves.output(1), const("f32", -1.0)]), halves.output(0)], {"axis": -1})
        return [g.op("Add", 1, [g.op("Multiply", 1, [x, cos]), g.op("Multiply", 1, [turned, sin])])]
    yield net("Concat", 1, "rotary-embedding", rotary)
