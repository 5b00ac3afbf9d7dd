"""Random operations. With a seed they are deterministic, so the values themselves are compared."""

import numpy as np

from ..case import const, literal, one, uniform

WORD = 0xFFFFFFFF


def philox(n, counter, key):
    """Four random words of the counter-based generator Philox 4x32-10."""
    n_low, n_high, c_low, c_high, k_low, k_high = n & WORD, n >> 32, counter & WORD, counter >> 32, key & WORD, key >> 32
    for _ in range(10):
        p, q = 0xD2511F53 * n_low, 0xCD9E8D57 * c_low
        n_low, n_high, c_low, c_high = (q >> 32) ^ n_high ^ k_low, q & WORD, (p >> 32) ^ c_high ^ k_high, p & WORD
        k_low, k_high = (k_low + 0x9E3779B9) & WORD, (k_high + 0xBB67AE85) & WORD
    return [n_low, n_high, c_low, c_high]


def whole_numbers(low, high):
    """i64 by the reference: two words make a number, the second is the high half."""
    words = [w for n in range(7) for w in philox(n, 10, 150)]
    values = [((b << 32) | a) % (high - low) + low for a, b in zip(words[::2], words[1::2])]
    return [np.array(values, np.int64).reshape(2, 7)]


def halves(low, high):
    """f16 by the reference: ten bits of a word are the mantissa of a number in [1, 2)."""
    words = np.array([w for n in range(4) for w in philox(n, 10, 150)][:14], np.uint32)
    unit = ((words & 0x3FF) | 0x3C00).astype(np.uint16).view(np.float16) - np.float16(1)
    return [(unit * np.float16(high - low) + np.float16(low)).reshape(2, 7)]


def cases():
    for kind, low, high in (("f32", 0.0, 1.0), ("f32", -5.0, 7.0), ("i32", 0, 100), ("i64", -10, 1000), ("f16", 0.0, 2.0)):
        attrs = {"output_type": kind, "global_seed": 150, "op_seed": 10}
        own = {"i64": whole_numbers, "f16": halves}.get(kind)
        yield one("RandomUniform", 8, [const("i64", [2, 7]), const(kind, low), const(kind, high)], attrs, tag=f"{kind}-{low}-{high}", fixture=True,
                  reference=(lambda f=own, a=low, b=high: f(a, b)) if own else None,
                  known="the CPU device draws i64 as i32 and f16 as f32" if own else "")
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
