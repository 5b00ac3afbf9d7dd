"""Elementwise operations of two operands, and Select."""

import numpy as np

from ..case import const, dynamic, literal, one, uniform

ARITHMETIC = ["Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Power", "Mod", "FloorMod",
              "SquaredDifference"]
COMPARISON = ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]
LOGICAL = {"LogicalAnd": 1, "LogicalOr": 1, "LogicalXor": 2, "Xor": 1}
BITWISE = ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]
SHIFTS = ["BitwiseLeftShift", "BitwiseRightShift"]
TRUNCATES = "the CPU kernel truncates integer quotients although m_pythondiv asks for the floor"


def cases():
    for name in ARITHMETIC:
        yield from arithmetic(name)
    for name in COMPARISON:
        yield from comparison(name)
    for name, opset in LOGICAL.items():
        yield one(name, opset, [uniform("boolean", 2, 3), uniform("boolean", 3)], tag="boolean", fixture=True)
        yield one(name, opset, [dynamic(uniform("boolean", 2, 3)), dynamic(uniform("boolean", 2, 1))], tag="dynamic")
    for name in BITWISE:
        for kind in ("i32", "u8", "i64", "boolean"):
            yield one(name, 13, [uniform(kind, 3, 4, lo=-50, hi=100), uniform(kind, 4, lo=-50, hi=100)], tag=kind,
                      fixture=kind == "i32")
    for name in SHIFTS:
        for kind in ("i32", "u8", "i64", "u32"):
            yield one(name, 15, [uniform(kind, 3, 4, lo=-50, hi=100), uniform(kind, 4, lo=0, hi=5)], tag=kind,
                      fixture=kind == "i32")
    yield from select()


def arithmetic(name):
    positive = name in ("Divide", "Mod", "FloorMod", "Power")
    first = (0.2, 3.0) if name == "Power" else (-9, 9)
    second = (0.5, 2.5) if name == "Power" else (0.5, 4) if positive else (-9, 9)

    def pair(kind, a, b):
        return [uniform(kind, *a, lo=first[0], hi=first[1]), uniform(kind, *b, lo=second[0], hi=second[1])]

    yield one(name, 1, pair("f32", (2, 3, 4), (2, 3, 4)), tag="f32", fixture=True)
    yield one(name, 1, pair("f32", (2, 1, 4), (3, 1)), tag="f32-broadcast", fixture=True)
    yield one(name, 1, pair("f32", (2, 3), ()), tag="f32-scalar")
    yield one(name, 1, pair("f16", (4, 5), (5,)), tag="f16")
    yield one(name, 1, [dynamic(x) for x in pair("f32", (2, 3, 4), (3, 1))], tag="dynamic")
    yield one(name, 1, pair("f32", (2, 3), (2, 3)), {"auto_broadcast": "none"}, tag="f32-no-broadcast")
    whole = [uniform("i32", 3, 4, lo=-20, hi=20) if name != "Power" else uniform("i32", 3, 4, lo=0, hi=4),
             uniform("i32", 4, lo=1, hi=6) if name != "Power" else uniform("i32", 4, lo=0, hi=3)]
    yield one(name, 1, whole, tag="i32", known=TRUNCATES if name == "Divide" else "")
    yield one(name, 1, [uniform("i64", 5, lo=0, hi=9), uniform("i64", 5, lo=1, hi=5)], tag="i64")
    if name != "Power":
        yield one(name, 1, [uniform("u8", 2, 5, lo=10, hi=15), uniform("u8", 5, lo=1, hi=10)], tag="u8",
                  **({"reference": lambda a, b: [(a - b) ** 2], "known": "the CPU kernel gives 0 for u8"} if name == "SquaredDifference" else {}))
    if name in ("Add", "Multiply"):
        # The specification is silent about overflow and folding does not do u8; wrapping is what the i32 reference does.
        yield one(name, 1, [literal("u8", [200, 100, 16]), literal("u8", [100, 3, 16])], tag="u8-overflow",
                  reference=(lambda a, b: [a + b]) if name == "Add" else (lambda a, b: [a * b]), known="the CPU kernel saturates u8")
    if name in ("Divide", "Mod", "FloorMod"):
        signs = [literal("i32", [-7, 7, -7, 7, -6, 6]), literal("i32", [2, -2, -2, 2, 3, -3])]
        yield one(name, 1, signs, tag="i32-signs", known=TRUNCATES if name == "Divide" else "", fixture=True)
        yield one(name, 1, [literal("f32", [-7, 7, -7, 7, 5.5]), literal("f32", [2, -2, -2, 2, -2])], tag="f32-signs")
    if name == "Divide":
        signs = [literal("i32", [-7, 7, -7, 7]), literal("i32", [2, -2, -2, 2])]
        yield one(name, 1, signs, {"m_pythondiv": False}, tag="i32-truncating")
        yield one(name, 1, [literal("f32", [1, -1, 0]), literal("f32", [0, 0, 0])], tag="f32-by-zero")
    if name == "Add":
        # The second operand is laid over the first from `auto_broadcast_axis` on.
        for tag, axis, shape in (("tail", -1, (3, 4)), ("middle", 1, (3,)), ("front", 0, (2, 3))):
            yield one(name, 1, [uniform("f32", 2, 3, 4), uniform("f32", *shape)],
                      {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": axis}, tag=f"f32-pdpd-{tag}")
        yield one(name, 1, [uniform("f32", 2, 0, 3), uniform("f32", 3)], tag="f32-empty")
        yield one(name, 1, [literal("i32", [2147483647, -2147483648]), literal("i32", [1, -1])], tag="i32-wrap")
    if name in ("Maximum", "Minimum"):
        yield one(name, 1, [literal("f32", [np.inf, -np.inf, 1]), literal("f32", [0, 0, 1])], tag="f32-infinite")
    if name == "Power":
        yield one(name, 1, [literal("f32", [-2, -2, 0, 4, 9]), literal("f32", [2, 3, 0, 0.5, -0.5])], tag="f32-edges")
        yield one(name, 1, [uniform("f32", 3, 4), const("f32", 2.0)], tag="f32-square")


def comparison(name):
    yield one(name, 1, [uniform("i32", 4, 5, lo=0, hi=3), uniform("i32", 5, lo=0, hi=3)], tag="i32", fixture=True)
    yield one(name, 1, [uniform("f32", 4, 5, lo=-1, hi=1), uniform("f32", 4, 1, lo=-1, hi=1)], tag="f32")
    yield one(name, 1, [uniform("i64", 6, lo=0, hi=2), const("i64", 1)], tag="i64-scalar")
    yield one(name, 1, [uniform("u8", 6, lo=0, hi=2), uniform("u8", 6, lo=0, hi=2)], tag="u8")
    yield one(name, 1, [dynamic(uniform("f16", 2, 3)), dynamic(uniform("f16", 3))], tag="f16-dynamic")
    yield one(name, 1, [literal("f32", [np.nan, 1, np.nan, np.inf]), literal("f32", [1, np.nan, np.nan, np.inf])],
              tag="f32-nan")
    if name in ("Equal", "NotEqual"):
        yield one(name, 1, [uniform("boolean", 8), uniform("boolean", 8)], tag="boolean")


def select():
    mask = uniform("boolean", 2, 3, 4)
    yield one("Select", 1, [mask, uniform("f32", 2, 3, 4), uniform("f32", 2, 3, 4)], tag="f32", fixture=True)
    yield one("Select", 1, [uniform("boolean", 3, 1), uniform("f32", 2, 1, 4), uniform("f32", 3, 1)],
              tag="f32-broadcast", fixture=True)
    yield one("Select", 1, [mask, uniform("i64", 4), const("i64", 7)], tag="i64-scalar")
    yield one("Select", 1, [mask, uniform("u8", 2, 3, 4), uniform("u8", 2, 3, 4)], tag="u8")
    yield one("Select", 1, [mask, uniform("f16", 2, 3, 4), uniform("f16", 3, 4)], tag="f16")
    yield one("Select", 1, [dynamic(mask), dynamic(uniform("f32", 2, 3, 4)), dynamic(uniform("f32", 4))], tag="dynamic")
    yield one("Select", 1, [mask, uniform("f32", 2, 3, 4), uniform("f32", 2, 3, 4)], {"auto_broadcast": "none"},
              tag="no-broadcast")
    yield one("Select", 1, [uniform("boolean", 3), uniform("f32", 2, 3), uniform("f32", 3)],
              {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": -1}, tag="pdpd")
