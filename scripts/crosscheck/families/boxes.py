"""Suppression of overlapping boxes: the NMS operations of every generation."""

import numpy as np

from ..case import Data, Dyn, const, dynamic, literal, one, uniform

SIX = [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]]
SIX_SCORES = [[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3]]]
AT_THRESHOLD = "the hard path of the CPU kernel suppresses already at iou == threshold"


def random_boxes(n, count):
    """Boxes as two ordered corners inside [0, 10]."""
    def draw(rng):
        corner = rng.uniform(0, 8, (n, count, 2))
        return np.concatenate([corner, corner + rng.uniform(1, 4, (n, count, 2))], axis=2)
    return Data("f32", (n, count, 4), draw)


def scores(*shape):
    """Scores without ties, so that the order is decided."""
    size = int(np.prod(shape))
    return Data("f32", shape, lambda rng: (rng.permutation(size) + 1.0).reshape(shape) / (size + 1))


def cases():
    yield from non_max_suppression()
    yield from multiclass()
    yield from matrix()
    yield from rotated()


def non_max_suppression():
    name = "NonMaxSuppression"
    boxes, values = literal("f32", SIX), literal("f32", SIX_SCORES)
    limits = [const("i64", 3), const("f32", 0.5), const("f32", 0.0)]
    for opset in (1, 3, 4, 5, 9):
        attrs = {"box_encoding": "corner", "sort_result_descending": True}
        if opset > 1:
            attrs["output_type"] = "i64"
        yield one(name, opset, [boxes, values, *limits], attrs, tag="corner", fixture=opset in (3, 5, 9))
        yield one(name, opset, [random_boxes(2, 8), scores(2, 3, 8), const("i64", 4), const("f32", 0.3), const("f32", 0.2)],
                  attrs, tag="batch-classes", fixture=opset in (4, 9))
        yield one(name, opset, [random_boxes(2, 8), scores(2, 3, 8), const("i64", 4), const("f32", 0.3), const("f32", 0.2)],
                  dict(attrs, sort_result_descending=False), tag="unsorted")
        yield one(name, opset, [literal("f32", SIX), values, *limits], dict(attrs, box_encoding="center"), tag="center")
        yield one(name, opset, [boxes, values, const("i64", 6), const("f32", 0.5), const("f32", 0.55)], attrs, tag="score-threshold")
        yield one(name, opset, [boxes, values], attrs, tag="nothing-selected", cpu=opset < 5, reference=nothing if opset >= 5 else None,
                  known="the CPU kernel leaves the count unset" if opset >= 5 else "")
        if opset > 1:
            yield one(name, opset, [boxes, values, *limits], dict(attrs, output_type="i32"), tag="i32")
    for opset in (5, 9):
        for sigma in (0.0, 0.5):
            yield one(name, opset, [boxes, values, const("i64", 6), const("f32", 0.5), const("f32", 0.1), const("f32", sigma)],
                      {"box_encoding": "corner", "output_type": "i64"}, tag=f"sigma{sigma}", fixture=sigma == 0.5,
                      **({"reference": soft_and_hard, "known": "the CPU device runs version 5 as version 9, which never suppresses for good"}
                         if (opset, sigma) == (5, 0.5) else {}))
        touching = literal("f32", [[[0, 0, 1, 1], [0, 0.5, 1, 1], [0, 5, 1, 6]]])
        yield one(name, opset, [touching, literal("f32", [[[0.9, 0.8, 0.7]]]), const("i64", 3), const("f32", 0.5), const("f32", 0.0)],
                  {"box_encoding": "corner"}, tag="iou-at-threshold", known=AT_THRESHOLD if opset == 9 else "",
                  reference=iou_at_threshold if opset == 9 else None)
        yield one(name, opset, [Dyn(random_boxes(1, 6), "?,?,4"), dynamic(scores(1, 2, 6)), const("i64", 3), const("f32", 0.4), const("f32", 0.0)],
                  {"box_encoding": "corner"}, tag="dynamic")
        flipped = literal("f32", [[[1, 1, 0, 0], [0, 0.1, 1, 1.1], [3, 3, 2, 2]]])
        yield one(name, opset, [flipped, literal("f32", [[[0.9, 0.8, 0.7]]]), const("i64", 3), const("f32", 0.5), const("f32", 0.0)],
                  {"box_encoding": "corner"}, tag="flipped-corners")


def nothing(boxes, values):
    return [np.zeros((0, 3), np.int64), np.zeros((0, 3), np.float32), np.zeros(1, np.int64)]


def soft_and_hard(boxes, values):
    """Version 5 with a sigma still drops every box that overlaps a kept one by more than the threshold."""
    return [np.array([[0, 0, 3], [0, 0, 0], [0, 0, 5]]), np.array([[0, 0, 0.95], [0, 0, 0.9], [0, 0, 0.3]]), np.array([3])]


def iou_at_threshold(boxes, values):
    """Version 9 keeps a box whose overlap equals the threshold."""
    kept = np.array([[0, 0, 0], [0, 0, 1], [0, 0, 2]])
    return [kept, np.array([[0, 0, 0.9], [0, 0, 0.8], [0, 0, 0.7]]), np.array([3])]


def multiclass():
    name = "MulticlassNms"
    boxes, values = random_boxes(2, 8), scores(2, 3, 8)
    base = {"sort_result_type": "score", "sort_result_across_batch": False, "output_type": "i64", "iou_threshold": 0.3, "score_threshold": 0.1,
            "nms_top_k": -1, "keep_top_k": -1, "background_class": -1, "nms_eta": 1.0, "normalized": True}
    for opset in (8, 9):
        for order in ("score", "classid", "none"):
            yield one(name, opset, [boxes, values], dict(base, sort_result_type=order), tag=f"by-{order}", fixture=opset == 9 and order != "none")
        yield one(name, opset, [boxes, values], dict(base, sort_result_across_batch=True), tag="across-batch", fixture=opset == 8)
        yield one(name, opset, [boxes, values], dict(base, sort_result_across_batch=True, sort_result_type="classid"), tag="across-batch-classid")
        yield one(name, opset, [boxes, values], dict(base, nms_top_k=3, keep_top_k=4), tag="top-k")
        yield one(name, opset, [boxes, values], dict(base, background_class=0), tag="background")
        yield one(name, opset, [boxes, values], dict(base, nms_eta=0.8, iou_threshold=0.7), tag="eta")
        yield one(name, opset, [boxes, values], dict(base, normalized=False), tag="pixels")
        yield one(name, opset, [boxes, values], dict(base, output_type="i32"), tag="i32")
        yield one(name, opset, [Dyn(boxes, "?,?,4"), dynamic(values)], base, tag="dynamic")
    rois = Data("f32", (3, 6, 4), lambda rng: np.concatenate([c := rng.uniform(0, 8, (3, 6, 2)), c + rng.uniform(1, 4, (3, 6, 2))], axis=2))
    for kind in ("i64", "i32"):
        yield one(name, 9, [rois, scores(3, 6), literal(kind, [4, 2])], base, tag=f"roisnum-{kind}", fixture=kind == "i64")
    yield one(name, 9, [rois, scores(3, 6), literal("i64", [4, 2])], dict(base, sort_result_type="classid"), tag="roisnum-classid")


def matrix():
    name = "MatrixNms"
    boxes, values = random_boxes(2, 8), scores(2, 3, 8)
    base = {"sort_result_type": "score", "sort_result_across_batch": False, "output_type": "i64", "score_threshold": 0.1, "nms_top_k": -1,
            "keep_top_k": -1, "background_class": -1, "decay_function": "linear", "gaussian_sigma": 2.0, "post_threshold": 0.0, "normalized": True}
    for decay in ("linear", "gaussian"):
        for order in ("score", "classid"):
            yield one(name, 8, [boxes, values], dict(base, decay_function=decay, sort_result_type=order), tag=f"{decay}-by-{order}",
                      fixture=order == "score")
    yield one(name, 8, [boxes, values], dict(base, sort_result_across_batch=True), tag="across-batch")
    yield one(name, 8, [boxes, values], dict(base, nms_top_k=3, keep_top_k=4), tag="top-k")
    yield one(name, 8, [boxes, values], dict(base, background_class=1), tag="background")
    yield one(name, 8, [boxes, values], dict(base, post_threshold=0.4), tag="post-threshold")
    yield one(name, 8, [boxes, values], dict(base, normalized=False, output_type="i32"), tag="pixels-i32")
    yield one(name, 8, [Dyn(boxes, "?,?,4"), dynamic(values)], base, tag="dynamic")


def rotated():
    boxes = Data("f32", (1, 6, 5), lambda rng: np.concatenate(
        [rng.uniform(0, 6, (1, 6, 2)), rng.uniform(1, 4, (1, 6, 2)), rng.uniform(-1.5, 1.5, (1, 6, 1))], axis=2))
    limits = [const("i64", 4), const("f32", 0.2), const("f32", 0.05)]
    for clockwise in (True, False):
        for in_order in (True, False):
            attrs = {"sort_result_descending": in_order, "output_type": "i64", "clockwise": clockwise}
            yield one("NMSRotated", 13, [boxes, scores(1, 2, 6), *limits], attrs, tag=f"clockwise{int(clockwise)}-sorted{int(in_order)}", fixture=in_order)
    yield one("NMSRotated", 13, [boxes, scores(1, 2, 6), *limits], {"output_type": "i32"}, tag="i32")
    yield one("NMSRotated", 13, [Dyn(boxes, "?,?,5"), dynamic(scores(1, 1, 6)), *limits], {}, tag="dynamic")
    same = literal("f32", [[[2, 2, 2, 1, 0.0], [2, 2, 2, 1, 0.0], [2, 2, 2, 1, 1.57]]])
    yield one("NMSRotated", 13, [same, literal("f32", [[[0.9, 0.8, 0.7]]]), const("i64", 3), const("f32", 0.5), const("f32", 0.0)], {}, tag="same-box")
