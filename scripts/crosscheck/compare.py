"""Tolerances, and the comparison of two lists of tensors.

`TOLERANCE` is the one place where a bound is stated. Integers, booleans and strings must be equal,
except where `INTEGER_SLACK` says that the last unit depends on the order of float operations.
"""

import numpy as np

from . import dtypes

# (rtol, atol) by element type of the output.
BY_TYPE = {
    "f64": (1e-4, 1e-5), "f32": (1e-4, 1e-5),
    "f16": (1e-2, 1e-2), "bf16": (1e-2, 1e-2),
    "f8e4m3": (0.13, 1e-2), "f8e5m2": (0.26, 1e-2), "f8e8m0": (0.0, 0.0), "f4e2m1": (0.0, 0.0), "nf4": (0.0, 1e-6),
}

# (rtol, atol) for f32 by operation, with the reason.
TOLERANCE = {
    "DFT": (1e-3, 1e-4, "sums over the whole signal"),
    "IDFT": (1e-3, 1e-4, "sums over the whole signal"),
    "RDFT": (1e-3, 1e-4, "sums over the whole signal"),
    "IRDFT": (1e-3, 1e-4, "sums over the whole signal"),
    "STFT": (1e-3, 1e-4, "sums over a frame"),
    "ISTFT": (1e-3, 1e-4, "sums over a frame, divided by a window norm"),
    "Inverse": (1e-3, 1e-4, "elimination amplifies rounding"),
    "LSTMSequence": (1e-3, 1e-4, "steps feed each other"),
    "GRUSequence": (1e-3, 1e-4, "steps feed each other"),
    "RNNSequence": (1e-3, 1e-4, "steps feed each other"),
    "Erf": (1e-4, 2e-5, "the CPU device uses a polynomial"),
    "Gelu": (1e-3, 5e-5, "built on erf or tanh polynomials"),
    "Mish": (1e-3, 1e-4, "built on exp and log polynomials"),
    "SoftPlus": (1e-3, 1e-4, "built on exp and log polynomials"),
    "Tan": (1e-3, 1e-4, "steep near odd multiples of pi/2"),
    "CTCLoss": (1e-3, 1e-4, "sums of logarithms over all paths"),
    "NormalizeL2": (1e-3, 1e-5, "fast inverse square root"),
    "MVN": (1e-3, 1e-4, "difference of close numbers"),
    "GroupNormalization": (1e-3, 1e-4, "difference of close numbers"),
    "network": (1e-3, 1e-3, "many layers"),
}

# Allowed difference of integer outputs, in units.
INTEGER_SLACK = {
    "Interpolate": (1, "integer images are blended in float and rounded"),
    "NV12toRGB": (1, "fixed or floating point colour matrix"),
    "NV12toBGR": (1, "fixed or floating point colour matrix"),
    "I420toRGB": (1, "fixed or floating point colour matrix"),
    "I420toBGR": (1, "fixed or floating point colour matrix"),
}


def bounds(op, dtype, rtol=None, atol=None):
    """(rtol, atol) for an output of `op` with element type `dtype`; a case may state its own."""
    if dtype not in dtypes.FLOATS:
        return 0.0, float(INTEGER_SLACK.get(op, (0,))[0])
    base = BY_TYPE[dtype]
    if op in TOLERANCE:
        base = tuple(max(a, b) for a, b in zip(base, TOLERANCE[op][:2]))
    return (base[0] if rtol is None else rtol), (base[1] if atol is None else atol)


def difference(case, expected, found):
    """None when two lists of (name, element type, array) agree, else one line that tells why not.

    `case` is the content of case.json; `found` comes in the same order as `expected`.
    """
    if len(expected) != len(found):
        return f"{len(found)} outputs, expected {len(expected)}"
    for (name, dtype, want), (_, found_dtype, have) in zip(expected, found):
        if dtype and found_dtype and dtype != found_dtype:
            return f"{name}: element type {found_dtype}, expected {dtype}"
        if want.shape != have.shape:
            return f"{name}: shape {list(have.shape)}, expected {list(want.shape)}"
        if case.get("judge", "values") == "shape":
            continue
        if case.get("judge") == "rows":
            want, have = sorted_rows(want), sorted_rows(have)
        problem = unequal(case, dtype, want, have)
        if problem:
            return f"{name}: {problem}"
    return None


def unequal(case, dtype, want, have):
    if want.dtype.kind in "US" or have.dtype.kind in "US":
        return None if np.array_equal(want, have) else f"strings {have.tolist()!r:.60}, expected {want.tolist()!r:.60}"
    rtol, atol = bounds(case["op"], dtype, case.get("rtol"), case.get("atol"))
    if dtype not in dtypes.FLOATS and atol == 0.0:
        good = (want == have) | (want != want) & (have != have)
    else:
        a, b = want.astype(np.float64), have.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            good = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= atol + rtol * np.abs(a))
            good &= ~(np.isinf(a) ^ np.isinf(b))
    if np.all(good):
        return None
    at = np.unravel_index(int(np.argmin(good)), good.shape) if good.shape else ()
    return (f"{int(np.size(good) - np.count_nonzero(good))} of {np.size(good)} values differ, "
            f"first at {[int(i) for i in at]}: {have[at]!s}, expected {want[at]!s}")


def sorted_rows(array):
    """The last dimension sorted, for operations that leave the order open."""
    return np.sort(array, axis=-1) if array.ndim else array
