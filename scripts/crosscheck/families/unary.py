"""Elementwise operations of one operand: mathematics, rounding, predicates, activations."""

import numpy as np

from ..case import const, counting, Dyn, dynamic, literal, one, uniform

# name: (opset, domain of the floating cases)
MATHS = {
    "Abs": (1, -3, 3), "Acos": (1, -1, 1), "Acosh": (4, 1, 6), "Asin": (1, -1, 1), "Asinh": (4, -4, 4),
    "Atan": (1, -4, 4), "Atanh": (4, -0.95, 0.95), "Ceiling": (1, -3, 3), "Cos": (1, -6, 6), "Cosh": (1, -3, 3),
    "Erf": (1, -3, 3), "Exp": (1, -5, 5), "Floor": (1, -3, 3), "Log": (1, 0.05, 9), "Negative": (1, -3, 3),
    "Sigmoid": (1, -8, 8), "Sign": (1, -3, 3), "Sin": (1, -6, 6), "Sinh": (1, -3, 3), "Sqrt": (1, 0, 9),
    "Tan": (1, -1.3, 1.3), "Tanh": (1, -4, 4), "Relu": (1, -3, 3), "HSigmoid": (5, -5, 5), "HSwish": (4, -5, 5),
    "Mish": (4, -6, 6), "SoftPlus": (4, -9, 9), "SoftSign": (9, -5, 5), "Gelu": (2, -4, 4), "Identity": (16, -3, 3),
}
INTEGERS = ["Abs", "Ceiling", "Floor", "Negative", "Relu", "Sign", "Sqrt", "Identity"]
ROUNDED = ["Acos", "Asin", "Atan", "Cos", "Cosh", "Erf", "Exp", "Log", "Sigmoid", "Sin", "Sinh", "Tan", "Tanh",
           "Acosh", "Asinh", "Atanh"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-8, -1e-8, 20.0, -20.0, 1e4, -1e4, np.inf, -np.inf, np.nan]


def cases():
    for name, (opset, lo, hi) in MATHS.items():
        yield one(name, opset, [uniform("f32", 2, 3, 5, lo=lo, hi=hi)], tag="f32", fixture=True)
        yield one(name, opset, [uniform("f16", 4, 7, lo=lo, hi=hi)], tag="f16")
        yield one(name, opset, [dynamic(uniform("f32", 3, 4, lo=lo, hi=hi))], tag="f32-dynamic")
        yield one(name, opset, [uniform("f32", lo=lo, hi=hi)], tag="f32-scalar")
        # NaN and infinity: only where the answer does not hang on a polynomial.
        if name in ("Abs", "Ceiling", "Floor", "Negative", "Relu", "Sign", "Sqrt", "Identity", "Sigmoid", "Tanh",
                    "HSigmoid", "SoftSign"):
            yield one(name, opset, [literal("f32", SPECIAL)], tag="f32-special")
    for name in INTEGERS:
        opset = MATHS[name][0]
        lo = 0 if name == "Sqrt" else -9
        yield one(name, opset, [uniform("i32", 3, 5, lo=lo, hi=99)], tag="i32")
        yield one(name, opset, [uniform("i64", 2, 4, lo=lo, hi=99)], tag="i64")
    for name in ("Abs", "Relu", "Ceiling", "Identity"):
        yield one(name, MATHS[name][0], [uniform("i8", 9, lo=-100, hi=100)], tag="i8")
        yield one(name, MATHS[name][0], [uniform("u8", 9, lo=0, hi=250)], tag="u8")
    for name in ROUNDED:
        yield one(name, MATHS[name][0], [literal("i32", [1, 1, 1] if name == "Acosh" else [0, 0, 0] if name == "Atanh"
                                                  else [1, 2, 3] if name == "Log" else [-1, 0, 1])], tag="i32")
    yield one("Abs", 1, [uniform("f32", 0, 3)], tag="f32-empty")
    yield one("Identity", 16, [uniform("boolean", 6)], tag="boolean")
    yield one("Identity", 16, [literal("string", ["ab", "", "xyz"])], tag="string", reference=lambda x: [x])
    yield from rounding()
    yield from predicates()
    yield from activations()


def rounding():
    halves = literal("f32", [-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.49, -0.51, 2.7])
    for mode in ("half_to_even", "half_away_from_zero"):
        yield one("Round", 5, [halves], {"mode": mode}, tag=f"{mode}-f32", fixture=True)
        yield one("Round", 5, [uniform("f16", 3, 4, lo=-9, hi=9)], {"mode": mode}, tag=f"{mode}-f16")
        yield one("Round", 5, [uniform("i32", 3, 4, lo=-9, hi=9)], {"mode": mode}, tag=f"{mode}-i32")
    yield one("Round", 5, [dynamic(uniform("f32", 3, 4))], {"mode": "half_to_even"}, tag="dynamic")


def predicates():
    odd = literal("f32", [0.0, 1.0, np.nan, np.inf, -np.inf, 3e38, -1e-40])
    for name, function in (("IsFinite", np.isfinite), ("IsNaN", np.isnan)):
        options = {"reference": lambda x, f=function: [f(x)], "known": "the CPU kernel takes denormals for infinite" if name == "IsFinite" else ""}
        yield one(name, 10, [odd], tag="f32", fixture=True, **options)
        yield one(name, 10, [literal("f16", [0, np.nan, np.inf, -np.inf, 65504])], tag="f16")
        yield one(name, 10, [Dyn(odd, "?")], tag="dynamic", **options)
    for negative in (True, False):
        for positive in (True, False):
            attrs = {"detect_negative": negative, "detect_positive": positive}
            yield one("IsInf", 10, [odd], attrs, tag=f"f32-{int(negative)}{int(positive)}", fixture=True)
    yield one("IsInf", 10, [literal("f16", [0, np.nan, np.inf, -np.inf])], {}, tag="f16")
    yield one("LogicalNot", 1, [uniform("boolean", 3, 4)], tag="boolean", fixture=True)
    yield one("LogicalNot", 1, [dynamic(uniform("boolean", 3, 4))], tag="dynamic")
    yield one("BitwiseNot", 13, [uniform("boolean", 8)], tag="boolean")
    for kind in ("i32", "u8", "i8", "i64"):
        yield one("BitwiseNot", 13, [uniform(kind, 2, 5, lo=-100, hi=100)], tag=kind, fixture=kind == "i32")


def activations():
    wide = uniform("f32", 2, 3, 4, lo=-5, hi=5)
    yield one("Gelu", 7, [wide], {"approximation_mode": "ERF"}, tag="erf", fixture=True)
    yield one("Gelu", 7, [wide], {"approximation_mode": "TANH"}, tag="tanh", fixture=True)
    yield one("Gelu", 7, [uniform("f16", 5, 5)], {"approximation_mode": "TANH"}, tag="tanh-f16")
    yield one("Gelu", 7, [dynamic(wide)], {}, tag="default-dynamic")
    for low, high in ((-1.0, 1.0), (0.0, 6.0), (-2.5, 2.5)):
        attrs = {"min": low, "max": high}
        yield one("Clamp", 1, [wide], attrs, tag=f"f32-{low}-{high}", fixture=low == 0.0)
        yield one("Clamp", 1, [uniform("i32", 3, 4, lo=-5, hi=5)], attrs, tag=f"i32-{low}-{high}")
    yield one("Clamp", 1, [uniform("f16", 3, 4)], {"min": -1.0, "max": 1.0}, tag="f16")
    yield one("Clamp", 1, [uniform("u8", 9, lo=0, hi=200)], {"min": -10.0, "max": 100.0}, tag="u8-below-range")
    yield one("Clamp", 1, [uniform("i64", 9, lo=-9, hi=9)], {"min": -1e20, "max": 3.5}, tag="i64-beyond-range")
    yield one("Clamp", 1, [literal("f32", [np.nan, np.inf, -np.inf])], {"min": -1.0, "max": 1.0}, tag="special")
    for alpha in (1.0, 0.5, 2.0):
        yield one("Elu", 1, [wide], {"alpha": alpha}, tag=f"alpha-{alpha}", fixture=alpha == 0.5)
    yield one("Elu", 1, [uniform("f16", 3, 4)], {"alpha": 1.0}, tag="f16")
    yield one("HardSigmoid", 1, [wide, const("f32", 0.2), const("f32", 0.5)], tag="f32", fixture=True)
    yield one("HardSigmoid", 1, [uniform("f16", 7), const("f16", 0.3), const("f16", 0.4)], tag="f16")
    yield one("HardSigmoid", 1, [wide, literal("f32", 0.25), literal("f32", 0.1)], tag="run-time-slopes",
              reference=lambda x, a, b: [np.clip(a * x + b, 0, 1)])
    yield one("Selu", 1, [wide, const("f32", [1.67]), const("f32", [1.05])], tag="f32", fixture=True)
    yield one("Selu", 1, [uniform("f16", 7), const("f16", [1.67]), const("f16", [1.05])], tag="f16")
    yield one("Selu", 1, [wide, literal("f32", [1.5]), literal("f32", [1.1])], tag="run-time-slopes",
              reference=lambda x, a, b: [b * np.where(x > 0, x, a * np.expm1(x))])
    yield one("Swish", 4, [wide], tag="plain", fixture=True)
    yield one("Swish", 4, [wide, const("f32", 0.7)], tag="beta", fixture=True)
    yield one("Swish", 4, [wide, literal("f32", 1.3)], tag="run-time-beta")
    yield one("Swish", 4, [uniform("f16", 5), const("f16", 0.7)], tag="beta-f16")
    yield from slopes()


def slopes():
    data = uniform("f32", 2, 3, 4, 5)
    yield one("PRelu", 1, [data, const("f32", [0.1, 0.2, 0.3])], tag="per-channel", fixture=True)
    yield one("PRelu", 1, [data, const("f32", [0.1])], tag="one")
    yield one("PRelu", 1, [data, const("f32", 0.1)], tag="scalar")
    yield one("PRelu", 1, [data, const("f32", counting("f32", 5, start=0.1, step=0.1))], tag="last-axis",
              known="a 1-D slope whose length is not the channel count is broadcast from the right")
    yield one("PRelu", 1, [data, const("f32", counting("f32", 1, 3, 1, 1, start=-0.5, step=0.4))], tag="broadcast")
    yield one("PRelu", 1, [uniform("f32", 6), const("f32", counting("f32", 6, start=0.1, step=0.1))], tag="rank-1")
    yield one("PRelu", 1, [uniform("f32", 3, 3), const("f32", [0.1, 0.2, 0.3])], tag="square")
    yield one("PRelu", 1, [data, counting("f32", 3, start=0.1, step=0.1)], tag="run-time-slope")
    yield one("PRelu", 1, [uniform("f16", 2, 3, 2), const("f16", [0.1, 0.2, 0.3])], tag="f16")
    yield one("PRelu", 1, [dynamic(data), const("f32", [0.1, 0.2, 0.3])], tag="dynamic")
