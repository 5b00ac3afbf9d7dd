"""SSD, region proposal, YOLO and region-of-interest operations."""

import numpy as np

from ..case import Data, Dyn, const, dynamic, literal, one, uniform
from .boxes import scores


def rois(count, high, batch=None):
    """Regions [x1, y1, x2, y2] inside [0, high]; with `batch`, preceded by the image number."""
    def draw(rng):
        corner = rng.uniform(0, high * 0.6, (count, 2))
        box = np.concatenate([corner, corner + rng.uniform(high * 0.15, high * 0.4, (count, 2))], axis=1)
        if batch is None:
            return box
        return np.concatenate([rng.integers(0, batch, (count, 1)), box], axis=1)
    return Data("f32", (count, 4 if batch is None else 5), draw)


def cases():
    yield from prior_boxes()
    yield from detection_output()
    yield from proposal()
    yield from generate_proposals()
    yield from detectron()
    yield from yolo()
    yield from roi_pooling()
    yield from roi_align()


def prior_boxes():
    layer, image = const("i64", [3, 2]), const("i64", [30, 24])
    base = {"min_size": [4.0, 8.0], "max_size": [6.0, 12.0], "aspect_ratio": [2.0, 3.0], "flip": True, "clip": False, "step": 0.0, "offset": 0.5,
            "variance": [0.1, 0.1, 0.2, 0.2], "scale_all_sizes": True}
    for opset in (1, 8):
        for tag, change in [("plain", {}), ("clip", {"clip": True}), ("no-flip", {"flip": False}), ("step", {"step": 4.0, "offset": 0.3}),
                            ("no-max", {"max_size": []}), ("one-variance", {"variance": [0.3]}), ("no-variance", {"variance": []}),
                            ("mxnet", {"scale_all_sizes": False, "max_size": [], "min_size": [0.2, 0.3], "step": -1.0}),
                            ("fixed", {"min_size": [], "max_size": [], "aspect_ratio": [], "flip": False, "fixed_size": [6.0], "fixed_ratio": [2.0], "density": [2.0]}),
                            ("fixed-no-ratio", {"min_size": [], "max_size": [], "fixed_size": [6.0], "density": [2.0]})]:
            yield one("PriorBox", opset, [layer, image], {**base, **change}, tag=tag, fixture=opset == 8 and tag in ("plain", "mxnet", "fixed"))
    for order in (True, False):
        yield one("PriorBox", 8, [layer, image], {**base, "min_max_aspect_ratios_order": order}, tag=f"order{int(order)}", fixture=not order)
    yield one("PriorBox", 8, [literal("i64", [3, 2]), literal("i64", [30, 24])], base, tag="run-time-sizes")
    clustered = {"width": [4.0, 9.0], "height": [5.0, 3.0], "clip": False, "step": 0.0, "offset": 0.5, "variance": [0.1, 0.1, 0.2, 0.2]}
    for tag, change in [("plain", {}), ("clip", {"clip": True}), ("step", {"step": 5.0}), ("steps", {"step_w": 4.0, "step_h": 6.0}),
                        ("one-variance", {"variance": [0.3]})]:
        yield one("PriorBoxClustered", 1, [layer, image], {**clustered, **change}, tag=tag, fixture=tag in ("plain", "steps"))
    yield one("PriorBoxClustered", 1, [literal("i64", [3, 2]), literal("i64", [30, 24])], clustered, tag="run-time-sizes")


def detection_output():
    n, priors, classes = 2, 6, 3

    def ssd_priors(width=4):
        def draw(rng):
            corner = rng.uniform(0, 0.6, (priors, 2))
            box = np.concatenate([corner, corner + rng.uniform(0.15, 0.4, (priors, 2))], axis=1)
            if width == 5:
                box = np.concatenate([np.zeros((priors, 1)), box * 30], axis=1)
            variance = np.tile([0.1, 0.1, 0.2, 0.2], priors)
            rows = np.zeros((1, 2, priors * width))
            rows[0, 0] = box.reshape(-1)
            rows[0, 1, :priors * 4] = variance
            return rows
        return Data("f32", (1, 2, priors * width), draw)
    confidence = Data("f32", (n, priors * classes), lambda rng: rng.uniform(0.01, 1, (n, priors * classes)))
    location = uniform("f32", n, priors * 4, lo=-1, hi=1)
    base = {"background_label_id": 0, "top_k": -1, "variance_encoded_in_target": False, "keep_top_k": [8], "share_location": True,
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "nms_threshold": 0.45, "confidence_threshold": 0.2, "clip_after_nms": False,
            "clip_before_nms": False, "decrease_label_id": False, "normalized": True, "input_height": 1, "input_width": 1, "objectness_score": 0.0}
    for opset in (1, 8):
        extra = {"num_classes": classes} if opset == 1 else {}
        for tag, change in [("center", {}), ("corner", {"code_type": "caffe.PriorBoxParameter.CORNER"}), ("clip-after", {"clip_after_nms": True}),
                            ("clip-before", {"clip_before_nms": True}), ("top-k", {"top_k": 3, "keep_top_k": [5]}), ("keep-all", {"keep_top_k": [-1]}),
                            ("mxnet", {"decrease_label_id": True, "clip_before_nms": True}), ("encoded", {"variance_encoded_in_target": True}),
                            ("background-1", {"background_label_id": 1})]:
            attrs = {**base, **extra, **change}
            prior = Data("f32", (1, 1, priors * 4), lambda rng: ssd_priors().make(rng)[:, :1]) if tag == "encoded" else ssd_priors()
            yield one("DetectionOutput", opset, [location, confidence, prior], attrs, tag=tag, fixture=opset == 8 and tag in ("center", "corner", "mxnet"))
        pixels = {**base, **extra, "normalized": False, "input_height": 30, "input_width": 30}
        yield one("DetectionOutput", opset, [location, confidence, ssd_priors(5)], pixels, tag="pixels")
        own = uniform("f32", n, priors * classes * 4, lo=-1, hi=1)
        yield one("DetectionOutput", opset, [own, confidence, ssd_priors()], {**base, **extra, "share_location": False}, tag="own-location", fixture=opset == 8)
        arm = [Data("f32", (n, priors * 2), lambda rng: rng.uniform(0, 1, (n, priors * 2))), uniform("f32", n, priors * 4, lo=-0.5, hi=0.5)]
        yield one("DetectionOutput", opset, [location, confidence, ssd_priors(), *arm], {**base, **extra, "objectness_score": 0.4}, tag="arm", fixture=opset == 8)
    yield one("DetectionOutput", 8, [dynamic(location), dynamic(confidence), dynamic(ssd_priors())], base, tag="dynamic")


def proposal():
    a, h, w = 6, 3, 4
    base = {"base_size": 8, "pre_nms_topn": 30, "post_nms_topn": 6, "nms_thresh": 0.6, "feat_stride": 8, "min_size": 4, "ratio": [0.5, 1.0, 2.0],
            "scale": [1.0, 2.0], "clip_before_nms": True, "clip_after_nms": False, "normalize": False, "box_size_scale": 1.0,
            "box_coordinate_scale": 1.0, "framework": ""}
    probabilities = scores(1, 2 * a, h, w)
    deltas = uniform("f32", 1, 4 * a, h, w, lo=-0.5, hi=0.5)
    for opset in (1, 4):
        for tag, change in [("caffe", {}), ("tensorflow", {"framework": "tensorflow", "box_size_scale": 5.0, "box_coordinate_scale": 10.0}),
                            ("normalize", {"normalize": True}), ("clip-after", {"clip_before_nms": False, "clip_after_nms": True}),
                            ("few", {"pre_nms_topn": 8, "post_nms_topn": 3})]:
            yield one("Proposal", opset, [probabilities, deltas, const("f32", [24.0, 32.0, 1.0])], {**base, **change}, tag=tag,
                      fixture=opset == 4 and tag in ("caffe", "tensorflow"))
    yield one("Proposal", 4, [scores(2, 2 * a, h, w), uniform("f32", 2, 4 * a, h, w, lo=-0.5, hi=0.5), literal("f32", [24.0, 32.0, 1.0, 1.0])], base,
              tag="batch")


def generate_proposals():
    h, w, a = 2, 3, 2
    anchors = Data("f32", (h, w, a, 4), lambda rng: np.concatenate(
        [c := rng.uniform(0, 12, (h, w, a, 2)), c + rng.uniform(4, 10, (h, w, a, 2))], axis=3))
    base = {"min_size": 1.0, "nms_threshold": 0.6, "pre_nms_count": 10, "post_nms_count": 5, "normalized": True, "nms_eta": 1.0, "roi_num_type": "i64"}
    ins = [const("f32", [[20.0, 24.0, 1.0, 1.0], [20.0, 24.0, 1.0, 1.0]]), anchors, uniform("f32", 2, a * 4, h, w, lo=-0.4, hi=0.4), scores(2, a, h, w)]
    for tag, change in [("plain", {}), ("pixels", {"normalized": False}), ("min-size", {"min_size": 6.0}), ("i32", {"roi_num_type": "i32"}),
                        ("tight", {"nms_threshold": 0.2, "pre_nms_count": 6})]:
        yield one("GenerateProposals", 9, ins, {**base, **change}, tag=tag, fixture=tag in ("plain", "pixels"))
    yield one("GenerateProposals", 9, [const("f32", [[20.0, 24.0, 1.0]]), anchors, uniform("f32", 1, a * 4, h, w, lo=-0.4, hi=0.4), scores(1, a, h, w)], base,
              tag="three-values")


def detectron():
    grid = {"flatten": True, "h": 0, "w": 0, "stride_x": 0.0, "stride_y": 0.0}
    name = "ExperimentalDetectronPriorGridGenerator"
    priors = const("f32", [[-4.0, -4.0, 4.0, 4.0], [-8.0, -4.0, 8.0, 4.0]])
    features, image = uniform("f32", 1, 2, 3, 4), uniform("f32", 1, 3, 24, 32)
    for tag, change in [("flat", {}), ("grid", {"flatten": False}), ("stride", {"stride_x": 4.0, "stride_y": 5.0}), ("size", {"h": 3, "w": 4})]:
        yield one(name, 6, [priors, features, image], {**grid, **change}, tag=tag, fixture=tag in ("flat", "stride"))
    name = "ExperimentalDetectronGenerateProposalsSingleImage"
    h, w, a = 2, 3, 2
    anchors = Data("f32", (h * w * a, 4), lambda rng: np.concatenate(
        [c := rng.uniform(0, 12, (h * w * a, 2)), c + rng.uniform(4, 10, (h * w * a, 2))], axis=1))
    base = {"min_size": 0.0, "nms_threshold": 0.6, "pre_nms_count": 10, "post_nms_count": 5}
    ins = [const("f32", [20.0, 24.0, 1.0]), anchors, uniform("f32", a * 4, h, w, lo=-0.4, hi=0.4), scores(a, h, w)]
    yield one(name, 6, ins, base, tag="plain", fixture=True)
    yield one(name, 6, ins, {**base, "min_size": 6.0}, tag="min-size")
    yield one(name, 6, ins, {**base, "post_nms_count": 20}, tag="padded")
    name = "ExperimentalDetectronDetectionOutput"
    base = {"score_threshold": 0.1, "nms_threshold": 0.5, "max_delta_log_wh": 2.0, "num_classes": 3, "post_nms_count": 6, "max_detections_per_image": 8,
            "class_agnostic_box_regression": False, "deltas_weights": [10.0, 10.0, 5.0, 5.0]}
    regions = rois(6, 20)
    probabilities = Data("f32", (6, 3), lambda rng: rng.uniform(0.05, 1, (6, 3)))
    deltas = uniform("f32", 6, 12, lo=-1, hi=1)
    info = const("f32", [[20.0, 24.0, 1.0]])
    yield one(name, 6, [regions, deltas, probabilities, info], base, tag="plain", fixture=True)
    yield one(name, 6, [regions, deltas, probabilities, info], {**base, "score_threshold": 0.6, "max_detections_per_image": 4}, tag="few")
    yield one(name, 6, [regions, uniform("f32", 6, 12, lo=-1, hi=1), probabilities, info], {**base, "class_agnostic_box_regression": True}, tag="agnostic")
    name = "ExperimentalDetectronROIFeatureExtractor"
    levels = [uniform("f32", 1, 2, 16, 16), uniform("f32", 1, 2, 8, 8)]
    for aligned in (False, True):
        for ratio in (2, 0):
            attrs = {"output_size": 3, "sampling_ratio": ratio, "pyramid_scales": [4, 8], "aligned": aligned}
            yield one(name, 6, [rois(3, 60), *levels], attrs, tag=f"aligned{int(aligned)}-ratio{ratio}", fixture=ratio == 2)
    yield one(name, 6, [literal("f32", [[0, 0, 20, 20], [0, 0, 400, 400], [5, 5, 60, 40]]), uniform("f32", 1, 2, 16, 16), uniform("f32", 1, 2, 8, 8)],
              {"output_size": 2, "sampling_ratio": 2, "pyramid_scales": [4, 8], "aligned": False}, tag="levels")
    for count in (3, 6):
        yield one("ExperimentalDetectronTopKROIs", 6, [rois(6, 20), scores(6)], {"max_rois": count}, tag=f"max{count}", fixture=count == 3)


def yolo():
    anchors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for softmax in (True, False):
        attrs = {"anchors": anchors, "axis": 1, "coords": 4, "classes": 2, "end_axis": 3, "num": 3, "do_softmax": softmax, "mask": [0, 1, 2]}
        yield one("RegionYolo", 1, [uniform("f32", 1, 21, 2, 3)], attrs, tag=f"softmax{int(softmax)}", fixture=True)
    attrs = {"anchors": anchors, "axis": 1, "coords": 4, "classes": 2, "end_axis": 3, "num": 3, "do_softmax": False, "mask": [1, 2]}
    yield one("RegionYolo", 1, [uniform("f32", 1, 14, 2, 3)], attrs, tag="mask-two")
    yield one("RegionYolo", 1, [dynamic(uniform("f32", 1, 14, 2, 3))], attrs, tag="dynamic")


def roi_pooling():
    image = uniform("f32", 2, 3, 8, 8)
    for scale in (1.0, 0.5):
        attrs = {"pooled_h": 3, "pooled_w": 2, "output_roi": [3, 2], "spatial_scale": scale, "method": "max"}
        yield one("ROIPooling", 2, [image, rois(4, 7 / scale, batch=2)], attrs, tag=f"max-{scale}", fixture=True)
    bilinear = {"output_roi": [3, 2], "pooled_h": 3, "pooled_w": 2, "spatial_scale": 1.0, "method": "bilinear"}
    yield one("ROIPooling", 2, [image, rois(4, 0.99, batch=2)], bilinear, tag="bilinear", fixture=True)
    yield one("ROIPooling", 2, [image, rois(4, 0.99, batch=2)], {**bilinear, "output_roi": [1, 1], "pooled_h": 1, "pooled_w": 1}, tag="bilinear-one")
    yield one("ROIPooling", 2, [dynamic(image), Dyn(rois(3, 7, batch=2), "?,5")], {**bilinear, "method": "max"}, tag="dynamic")
    channels = uniform("f32", 2, 8, 8, 8)
    yield one("PSROIPooling", 1, [channels, rois(4, 14, batch=2)], {"output_dim": 2, "group_size": 2, "spatial_scale": 0.5, "mode": "average",
                                                                    "spatial_bins_x": 1, "spatial_bins_y": 1}, tag="average", fixture=True)
    yield one("PSROIPooling", 1, [uniform("f32", 2, 12, 8, 8), rois(4, 0.99, batch=2)],
              {"output_dim": 2, "group_size": 3, "spatial_scale": 1.0, "mode": "bilinear", "spatial_bins_x": 2, "spatial_bins_y": 3}, tag="bilinear", fixture=True)
    base = {"output_dim": 2, "group_size": 2, "spatial_scale": 0.5, "mode": "bilinear_deformable", "spatial_bins_x": 2, "spatial_bins_y": 2,
            "trans_std": 0.1, "part_size": 2}
    yield one("DeformablePSROIPooling", 1, [channels, rois(3, 14, batch=2)], base, tag="no-offsets", fixture=True)
    yield one("DeformablePSROIPooling", 1, [channels, rois(3, 14, batch=2), uniform("f32", 3, 2, 2, 2, lo=-1, hi=1)], base, tag="offsets", fixture=True)


def roi_align():
    image, where = uniform("f32", 2, 2, 8, 8), const("i32", [0, 1, 1])
    for mode in ("avg", "max"):
        for ratio in (0, 2):
            base = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": ratio, "spatial_scale": 0.5, "mode": mode}
            yield one("ROIAlign", 3, [image, rois(3, 15), where], base, tag=f"{mode}-ratio{ratio}", fixture=ratio == 2)
            for aligned in ("asymmetric", "half_pixel_for_nn", "half_pixel"):
                yield one("ROIAlign", 9, [image, rois(3, 15), where], dict(base, aligned_mode=aligned), tag=f"{mode}-ratio{ratio}-{aligned}",
                          fixture=ratio == 0)
    base = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "avg"}
    outside = literal("f32", [[-5, -5, 3, 3], [6, 6, 20, 20], [2, 2, 2, 2]])
    yield one("ROIAlign", 9, [image, outside, where], dict(base, aligned_mode="half_pixel"), tag="outside")
    yield one("ROIAlign", 9, [image, outside, where], dict(base, aligned_mode="asymmetric", mode="max"), tag="outside-max")
    yield one("ROIAlign", 9, [Dyn(image, "?,2,?,?"), Dyn(rois(3, 7), "?,4"), dynamic(literal("i64", [0, 1, 1]))], dict(base, aligned_mode="asymmetric"), tag="dynamic")
    turned = Data("f32", (3, 5), lambda rng: np.concatenate([rng.uniform(3, 10, (3, 2)), rng.uniform(2, 6, (3, 2)), rng.uniform(-3, 3, (3, 1))], axis=1))
    for clockwise in (False, True):
        for ratio in (0, 2):
            yield one("ROIAlignRotated", 15, [image, turned, where], {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": ratio, "spatial_scale": 0.5,
                                                                      "clockwise_mode": clockwise}, tag=f"clockwise{int(clockwise)}-ratio{ratio}", fixture=ratio == 2)
