"""How far what an engine gave is from the reference: floats by relative error, integers by steps."""

import numpy as np
from caffe_suite.compare import relative_error


def outputs(wanted, had):
    """{output: (kind, difference)}, kind `relative` or `steps`; or what is wrong with the output. `had` is a list of
    (name, array); outputs are matched by name, and by position where the names differ."""
    if len(had) != len(wanted):
        return {"outputs": f"{len(had)} ({', '.join(n for n, _ in had)}), expected {len(wanted)} ({', '.join(wanted)})"}
    by_name = {plain(name): array for name, array in had}
    same_names = all(plain(name) in by_name for name in wanted)
    told = {}
    for i, (name, want) in enumerate(wanted.items()):
        have = by_name[plain(name)] if same_names else had[i][1]
        if want.shape != have.shape:
            told[name] = f"{have.dtype}{list(have.shape)}, expected {want.dtype}{list(want.shape)}"
        elif want.dtype.kind in "SUO":
            told[name] = ("steps", 0.0) if np.array_equal(want.astype(str), texts(have)) else "strings differ"
        elif want.dtype.kind in "iub":
            apart = np.abs(want.astype(np.int64) - have.astype(np.int64))
            told[name] = ("steps", float(apart.max(initial=0)))
        else:
            told[name] = ("relative", relative_error(want, have))
    return told


def plain(name):
    return name.removesuffix("/sink_port_0").removesuffix(":0")


def texts(array):
    return np.array([t.decode() if isinstance(t, bytes) else str(t) for t in array.reshape(-1)]).reshape(array.shape)


def spread(wanted, others):
    """How far the reference is from itself: the largest difference of its other kernels for each output."""
    each = [outputs(wanted, list(other.items())) for other in others]
    return {n: max((told[n][1] for told in each if not isinstance(told.get(n, ""), str)), default=0.0) for n in wanted}


def agrees(told, tolerance, steps, own):
    """Whether every output is within its bound. What the reference makes of rounding by itself, `own`, is no error: of floats
    twice as much, because theirs and ours add up."""
    def bound(name, kind):
        return max(tolerance, 2 * own.get(name, 0.0)) if kind == "relative" else max(steps, own.get(name, 0.0))
    return all(not isinstance(t, str) and t[1] <= bound(n, t[0]) for n, t in told.items())


def words(told):
    """The worst output in a word."""
    wrong = [f"{n}: {t}" for n, t in told.items() if isinstance(t, str)]
    if wrong:
        return wrong[0]
    kind, worst = max(told.values(), key=lambda t: t[1], default=("relative", 0.0))
    return f"{worst:.1e}" if kind == "relative" else f"{worst:.0f} steps"
