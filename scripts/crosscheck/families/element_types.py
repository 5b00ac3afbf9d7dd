"""Conversions between element types, packed constants, strings."""

import numpy as np

from ..case import const, dynamic, literal, net, one, uniform

PLAIN = ["f32", "f16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "boolean"]
# Values each packed type can hold exactly, an odd count to leave a half-filled last byte.
PACKED = {
    "u1": [1, 0, 0, 1, 1, 0, 1, 0, 1], "u2": [0, 1, 2, 3, 1], "u4": [0, 1, 7, 15, 9], "i4": [-8, -1, 0, 7, 3],
    "u3": [0, 1, 7, 5, 2, 3, 4, 6], "u6": [0, 1, 63, 33],
    "nf4": [-1.0, 0.0, 1.0, 0.3379152, -0.2844414], "f4e2m1": [0.5, 6.0, -1.0, 0.0, 3.0],
    "f8e4m3": [1.0, 448.0, -0.5, 0.015625, 0.0], "f8e5m2": [1.0, 2.0, -0.25, 57344.0, 0.0], "f8e8m0": [1.0, 4.0, 0.5, 128.0, 2.0],
    "bf16": [1.0, -2.5, 0.0, 3.140625, 100.0],
}
OUT_OF_RANGE = "a value outside the target range has no specified result"


def cases():
    yield from converts()
    yield from packed_constants()
    yield from like_and_promote()
    yield from strings()


def converts():
    for source in PLAIN:
        for target in PLAIN:
            if source == target and source not in ("f32", "i32"):
                continue
            low = 0 if source.startswith("u") or target.startswith("u") else -90
            yield one("Convert", 1, [uniform(source, 3, 4, lo=low, hi=100)], {"destination_type": target}, tag=f"{source}-to-{target}",
                      fixture=(source, target) in (("f32", "i32"), ("i64", "f32"), ("f32", "boolean"), ("f16", "f32"), ("u8", "f16")))
    yield one("Convert", 1, [literal("f32", [-1.9, 1.9, 2.5, -0.5, 0.0])], {"destination_type": "i32"}, tag="truncates", fixture=True)
    yield one("Convert", 1, [literal("f32", [-1.9, 1.9, 300, 255.9])], {"destination_type": "u8"}, tag="wraps-u8", known=OUT_OF_RANGE)
    yield one("Convert", 1, [literal("f32", [1e20, -1e20, 3e9])], {"destination_type": "i32"}, tag="out-of-range-i32", known=OUT_OF_RANGE)
    yield one("Convert", 1, [literal("i32", [-1, 256, 300, -129])], {"destination_type": "u8"}, tag="i32-wraps-u8")
    yield one("Convert", 1, [literal("f32", [0.1, -0.1, 0.0, np.nan, 1e-30])], {"destination_type": "boolean"}, tag="to-boolean-small")
    yield one("Convert", 1, [literal("f32", [65504, 65519, 65520, 1e-8, 6e-8, 0.1, 1e6])], {"destination_type": "f16"}, tag="to-f16-edges")
    yield one("Convert", 1, [dynamic(uniform("f32", 3, 4))], {"destination_type": "i64"}, tag="dynamic")
    for target in ("bf16", "f8e4m3", "f8e5m2"):
        yield one("Convert", 1, [uniform("f32", 3, 4)], {"destination_type": target}, tag=f"f32-to-{target}", fixture=True)
        yield one("Convert", 1, [literal("f32", [1.0, 1.06, 1.12, 1.2, -3.3, 0.0, 1e-5])], {"destination_type": target}, tag=f"f32-to-{target}-rounding")
    for target in ("u4", "i4", "u2", "nf4", "f4e2m1"):
        yield one("Convert", 1, [uniform("f32", 8, lo=0, hi=1)], {"destination_type": target}, tag=f"f32-to-{target}")

    def through_bf16(g):
        x = g.op("Convert", 1, [g.input(uniform("f32", 3, 4))], {"destination_type": "bf16"})
        y = g.op("Add", 1, [x, const("bf16", [1.0, 2.0, 3.0, 4.0])])
        return [g.op("Convert", 1, [y], {"destination_type": "f32"})]
    yield net("Convert", 1, "bf16-arithmetic", through_bf16, rtol=2e-2, atol=2e-2)
    yield one("Abs", 1, [uniform("bf16", 2, 3)], tag="bf16-input")


def packed_constants():
    for kind, values in PACKED.items():
        def build(g, kind=kind, values=values):
            wide = g.op("Convert", 1, [const(kind, values)], {"destination_type": "f32"})
            return [g.op("Multiply", 1, [wide, g.input(literal("f32", [2.0] * len(values)))])]
        yield net("Constant", 1, kind, build, fixture=True)
    for kind in ("f32", "f16", "f64", "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64", "boolean"):
        def build(g, kind=kind):
            wide = g.op("Convert", 1, [const(kind, uniform(kind, 2, 3, lo=0, hi=9))], {"destination_type": "f32"})
            return [g.op("Multiply", 1, [wide, g.input(uniform("f32", 2, 3))])]
        yield net("Constant", 1, kind, build, fixture=kind in ("f16", "i64", "boolean"))

    def scalar_and_empty(g):
        x = g.input(uniform("f32", 2, 3))
        return [g.op("Add", 1, [x, const("f32", 1.5)]), g.op("Concat", 1, [x, const("f32", np.zeros((0, 3)))], {"axis": 0})]
    yield net("Constant", 1, "scalar-and-empty", scalar_and_empty)

    def int4_weights(g):
        """Grouped 4-bit weights with scale and zero point, as weight compression writes them."""
        w = g.op("Convert", 1, [const("u4", uniform("u4", 4, 2, 8, lo=0, hi=15))], {"destination_type": "f32"})
        zero = g.op("Convert", 1, [const("u4", uniform("u4", 4, 2, 1, lo=4, hi=11))], {"destination_type": "f32"})
        w = g.op("Multiply", 1, [g.op("Subtract", 1, [w, zero]), const("f32", uniform("f32", 4, 2, 1, lo=0.01, hi=0.1))])
        w = g.op("Reshape", 1, [w, const("i64", [4, 16])], {"special_zero": False})
        return [g.op("MatMul", 1, [g.input(uniform("f32", 3, 16)), w], {"transpose_a": False, "transpose_b": True})]
    yield net("MatMul", 1, "int4-weights", int4_weights, rtol=1e-3, atol=1e-3, fixture=True)

    def int8_weights(g):
        w = g.op("Convert", 1, [const("i8", uniform("i8", 4, 16, lo=-127, hi=127))], {"destination_type": "f16"})
        w = g.op("Multiply", 1, [w, const("f16", uniform("f16", 4, 1, lo=0.001, hi=0.01))])
        w = g.op("Convert", 1, [w], {"destination_type": "f32"})
        return [g.op("MatMul", 1, [g.input(uniform("f32", 3, 16)), w], {"transpose_a": False, "transpose_b": True})]
    yield net("MatMul", 1, "int8-weights", int8_weights, rtol=1e-2, atol=1e-2)


def like_and_promote():
    for source, like in (("f32", "i32"), ("i32", "f32"), ("f32", "u8"), ("i64", "f16"), ("u8", "boolean")):
        yield one("ConvertLike", 1, [uniform(source, 2, 3, lo=0, hi=9), uniform(like, 1)], tag=f"{source}-like-{like}", fixture=source == "f32")
    yield one("ConvertLike", 1, [dynamic(uniform("f32", 2, 3)), const("i64", 1)], tag="dynamic")
    for a, b in (("f32", "i32"), ("i8", "u8"), ("f16", "f32"), ("i32", "i64"), ("boolean", "i32"), ("u8", "i16"), ("f16", "i64"), ("f32", "f32")):
        yield one("ConvertPromoteTypes", 14, [uniform(a, 2, lo=0, hi=5), uniform(b, 3, lo=0, hi=5)],
                  {"promote_unsafe": True, "pytorch_scalar_promotion": False, "u64_integer_promotion_target": "f32"}, tag=f"{a}-{b}", fixture=a == "i8")
    for a, b in (("f32", "i32"), ("i8", "f32"), ("i32", "u8")):
        yield one("ConvertPromoteTypes", 14, [uniform(a, 2, lo=0, hi=5), literal(b, 3)],
                  {"promote_unsafe": True, "pytorch_scalar_promotion": True, "u64_integer_promotion_target": "f32"}, tag=f"{a}-scalar-{b}")
    yield one("ConvertPromoteTypes", 14, [uniform("u64", 2, lo=0, hi=5), uniform("i32", 2, lo=0, hi=5)],
              {"promote_unsafe": True, "pytorch_scalar_promotion": False, "u64_integer_promotion_target": "f32"}, tag="u64-i32")


def strings():
    words = literal("string", ["ab", "", "xyz", "Grüße"])
    yield one("StringTensorUnpack", 15, [words], tag="words", fixture=True)
    yield one("StringTensorUnpack", 15, [literal("string", [["a", "bc"], ["def", ""]])], tag="2d")
    yield one("StringTensorUnpack", 15, [dynamic(words)], tag="dynamic")
    yield one("StringTensorUnpack", 15, [const("string", ["ab", "", "xyz"])], tag="constant", fixture=True)
    yield one("StringTensorPack", 15, [literal("i32", [0, 2, 2]), literal("i32", [2, 2, 5]), literal("u8", [97, 98, 120, 121, 122])], tag="words", fixture=True)
    yield one("StringTensorPack", 15, [literal("i64", [[0, 3]]), literal("i64", [[3, 4]]), literal("u8", [97, 98, 120, 121])], tag="2d-i64")

    def round_trip(g):
        parts = g.op("StringTensorUnpack", 15, [g.input(words)])
        return [g.op("StringTensorPack", 15, list(parts.outputs()))]
    yield net("StringTensorPack", 15, "round-trip", round_trip)
