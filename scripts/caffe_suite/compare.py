"""How far two outputs are from each other."""

import numpy as np

# No element is measured against less than this part of the largest of its output, nor against less than SMALLEST.
PART = 1e-3
SMALLEST = 1e-3


def relative_error(wanted, had):
    """The largest of all elements; lists of boxes are compared up to their end."""
    if had is None:
        return np.inf
    wanted, had = np.asarray(wanted, np.float64), np.asarray(had, np.float64)
    if is_list(wanted) and is_list(had):
        wanted, had = rows(wanted), rows(had)
    if wanted.shape != had.shape:
        return np.inf
    if not wanted.size:
        return 0.0
    size = np.abs(np.where(np.isfinite(wanted), wanted, 0))
    with np.errstate(invalid="ignore"):
        each = np.where(wanted == had, 0, np.abs(wanted - had)) / np.maximum(size, max(PART * size.max(), SMALLEST))
    return float(np.where(np.isnan(each), np.inf, each).max())


def is_list(a):
    return a.ndim == 4 and a.shape[:2] == (1, 1) and a.shape[3] == 7


def rows(a):
    """Rows of detections before the one with image -1, by image, label and score."""
    a = a.reshape(-1, 7)
    ends = np.flatnonzero((a[:, 0] < 0) | (~a.any(1)))
    a = a[:ends[0]] if len(ends) else a
    return a[np.lexsort((-a[:, 2], a[:, 1], a[:, 0]))]
