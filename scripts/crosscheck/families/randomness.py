"""Random operations. With a seed they are deterministic, so the values themselves are compared."""

from ..case import const, literal, one, uniform


def cases():
    for kind, low, high in (("f32", 0.0, 1.0), ("f32", -5.0, 7.0), ("i32", 0, 100), ("i64", -10, 1000), ("f16", 0.0, 2.0)):
        attrs = {"output_type": kind, "global_seed": 150, "op_seed": 10}
        yield one("RandomUniform", 8, [const("i64", [2, 7]), const(kind, low), const(kind, high)], attrs, tag=f"{kind}-{low}-{high}", fixture=True)
    attrs = {"output_type": "f32", "global_seed": 150, "op_seed": 10}
    yield one("RandomUniform", 8, [const("i64", [3]), const("f32", 0.0), const("f32", 1.0)], attrs, tag="third-inference", repeat=3)
    yield one("RandomUniform", 8, [literal("i64", [2, 3]), literal("f32", 0.0), literal("f32", 1.0)], attrs, tag="run-time-shape")
    yield one("RandomUniform", 8, [const("i64", [9]), const("f32", 0.0), const("f32", 1.0)], {**attrs, "alignment": "pytorch"}, tag="pytorch")
    yield one("RandomUniform", 8, [const("i64", [9]), const("i32", 0), const("i32", 50)], {**attrs, "output_type": "i32", "alignment": "pytorch"},
              tag="pytorch-i32")
    yield one("RandomUniform", 8, [const("i64", [300]), const("f32", 0.0), const("f32", 1.0)], attrs, tag="many")
    yield one("RandomUniform", 8, [const("i64", [2, 7]), const("f32", 0.0), const("f32", 1.0)], {"output_type": "f32"}, tag="no-seed", judge="shape")
    for replacement in (True, False):
        for logs in (True, False):
            attrs = {"convert_type": "i64", "with_replacement": replacement, "log_probs": logs, "global_seed": 5, "op_seed": 7}
            yield one("Multinomial", 13, [uniform("f32", 2, 5, lo=0.1, hi=1), const("i32", [3])], attrs, tag=f"replace{int(replacement)}-log{int(logs)}",
                      judge="shape")
    yield one("Multinomial", 13, [literal("f32", [[0, 0, 1, 0]]), const("i64", [4])], {"convert_type": "i32", "with_replacement": True, "log_probs": False,
                                                                                     "global_seed": 5, "op_seed": 7}, tag="certain", fixture=True)
