"""Boxes: the layers of SSD, Faster R-CNN, R-FCN and YOLO. Lists of detections have the fixed length that an IR gives them:
the row after the last one has image -1, the rest are zero."""

import numpy as np

from .files import one


def prior_box(Params, at, bottoms, n):
    p = Params(at, "prior_box_param")
    if p.has("fixed_size"):
        raise NotImplementedError("fixed_size")
    height, width = bottoms[0].shape[2:]
    image_h, image_w = p("img_h") or p("img_size") or bottoms[1].shape[2], p("img_w") or p("img_size") or bottoms[1].shape[3]
    step_h, step_w = p("step_h") or p("step") or image_h / height, p("step_w") or p("step") or image_w / width
    if one(at, "type") == "PriorBoxClustered":
        sizes = list(zip(p.every("width"), p.every("height")))
    else:
        ratios = [1.0]
        for ratio in p.every("aspect_ratio"):
            if all(abs(ratio - r) >= 1e-6 for r in ratios):
                ratios += [ratio, 1 / ratio] if p("flip", True) else [ratio]
        sizes = []
        for i, least in enumerate(p.every("min_size")):
            sizes.append((least, least))
            if p.every("max_size"):
                side = (least * p.every("max_size")[i]) ** 0.5
                sizes.append((side, side))
            sizes += [(least * r ** 0.5, least / r ** 0.5) for r in ratios if abs(r - 1) >= 1e-6]
    offset = p("offset", 0.5)
    boxes = np.zeros((height, width, len(sizes), 4))
    for y in range(height):
        for x in range(width):
            cx, cy = (x + offset) * step_w, (y + offset) * step_h
            for k, (w, h) in enumerate(sizes):
                boxes[y, x, k] = (cx - w / 2) / image_w, (cy - h / 2) / image_h, (cx + w / 2) / image_w, (cy + h / 2) / image_h
    boxes = boxes.clip(0, 1) if p("clip", False) else boxes
    variance = p.every("variance") or [0.1]
    variances = np.resize(variance * 4 if len(variance) == 1 else variance, boxes.size)
    return np.stack([boxes.reshape(-1), variances])[None]


def overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width < 0 or height < 0:
        return 0
    area = lambda v: (v[2] - v[0]) * (v[3] - v[1])
    both = width * height
    return both / (area(a) + area(b) - both)


def detection_output(Params, at, bottoms, n):
    p = Params(at, "detection_output_param")
    if len(bottoms) > 3 or not p("normalized", True):
        raise NotImplementedError("two stages, and priors in pixels")
    loc, conf, prior = (b.astype(np.float64) for b in bottoms[:3])
    classes, shared = p("num_classes"), p("share_location", True)
    nms = one(p.tree, "nms_param", {})
    limit, top_k, keep = one(nms, "nms_threshold", 0.3), one(nms, "top_k", -1), p("keep_top_k", -1)
    background, least = p("background_label_id", 0), p("confidence_threshold", -3.4e38)
    images = loc.shape[0]
    prior = prior.reshape(prior.shape[0], prior.shape[1], -1)
    count = prior.shape[2] // 4
    loc = loc.reshape(images, count, -1, 4)
    conf = conf.reshape(images, count, classes)
    boxes = prior[0, 0].reshape(count, 4)
    encoded = p("variance_encoded_in_target", False)
    variances = np.ones((count, 4)) if encoded else prior[0, 1].reshape(count, 4)
    rows = []
    for image in range(images):
        found = []
        for label in range(classes):
            if label == background:
                continue
            shift = loc[image, :, 0 if shared else label]
            if p("code_type", "CORNER") == "CENTER_SIZE":
                w, h = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
                cx = variances[:, 0] * shift[:, 0] * w + (boxes[:, 0] + boxes[:, 2]) / 2
                cy = variances[:, 1] * shift[:, 1] * h + (boxes[:, 1] + boxes[:, 3]) / 2
                w, h = np.exp(variances[:, 2] * shift[:, 2]) * w, np.exp(variances[:, 3] * shift[:, 3]) * h
                decoded = np.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], 1)
            elif p("code_type", "CORNER") == "CORNER_SIZE":
                sizes = boxes[:, [2, 3, 2, 3]] - boxes[:, [0, 1, 0, 1]]
                decoded = boxes + variances * shift * sizes
            else:
                decoded = boxes + variances * shift
            scores = conf[image, :, label]
            order = [i for i in np.argsort(-scores, kind="stable") if scores[i] > least]
            order = order[:top_k] if top_k > 0 else order
            kept = []
            for i in order:
                if all(overlap(decoded[i], decoded[j]) <= limit for j in kept):
                    kept.append(i)
            found += [(scores[i], label, *decoded[i]) for i in kept]
        if 0 <= keep < len(found):
            found = sorted(found, key=lambda f: -f[0])[:keep]
        found.sort(key=lambda f: (f[1], -f[0]))
        rows += [[image, label, score, *box] for score, label, *box in found]
    most = images * keep if keep > 0 else images * top_k * classes if top_k > 0 else images * count * classes
    y = np.zeros((1, 1, most, 7))
    y[0, 0, :len(rows)] = rows if rows else np.zeros((0, 7))
    if len(rows) < most:
        y[0, 0, len(rows), 0] = -1
    return y


def nearest(v):
    """Halves away from zero, as C rounds."""
    return np.sign(v) * np.floor(np.abs(v) + 0.5)


def roi_pooling(Params, at, bottoms, n):
    (x, rois), p = bottoms, Params(at, "roi_pooling_param")
    rows, columns, scale = p("pooled_h"), p("pooled_w"), p("spatial_scale", 1.0)
    y = np.zeros((rois.shape[0], x.shape[1], rows, columns))
    for r, (image, *box) in enumerate(rois.reshape(-1, 5)):
        left, top, right, bottom = (int(nearest(np.float32(v) * np.float32(scale))) for v in box)
        h, w = max(bottom - top + 1, 1) / rows, max(right - left + 1, 1) / columns
        for i in range(rows):
            for j in range(columns):
                t, b = (min(max(int(f) + top, 0), x.shape[2]) for f in (np.floor(i * h), np.ceil((i + 1) * h)))
                l, e = (min(max(int(f) + left, 0), x.shape[3]) for f in (np.floor(j * w), np.ceil((j + 1) * w)))
                if b > t and e > l:
                    y[r, :, i, j] = x[int(image), :, t:b, l:e].max((1, 2))
    return y


def psroi_pooling(Params, at, bottoms, n):
    (x, rois), p = bottoms, Params(at, "psroi_pooling_param")
    outputs, group, scale = p("output_dim"), p("group_size"), p("spatial_scale")
    y = np.zeros((rois.shape[0], outputs, group, group))
    for r, (image, left, top, right, bottom) in enumerate(rois.reshape(-1, 5)):
        left, top, right, bottom = nearest(left) * scale, nearest(top) * scale, (nearest(right) + 1) * scale, (nearest(bottom) + 1) * scale
        h, w = max(bottom - top, 0.1) / group, max(right - left, 0.1) / group
        for i in range(group):
            for j in range(group):
                t, b = (int(min(max(f, 0), x.shape[2])) for f in (np.floor(i * h + top), np.ceil((i + 1) * h + top)))
                l, e = (int(min(max(f, 0), x.shape[3])) for f in (np.floor(j * w + left), np.ceil((j + 1) * w + left)))
                if b > t and e > l:
                    for o in range(outputs):
                        y[r, o, i, j] = x[int(image), (o * group + i) * group + j, t:b, l:e].mean(dtype=np.float64)
    return y


def region_yolo(Params, at, bottoms, n):
    x, p = bottoms[0].astype(np.float64), Params(at, "region_yolo_param")
    flat = Params(at, "flatten_param")
    coords, classes, soft = p("coords", 4), p("classes", 20), p("do_softmax", True)
    regions = p("num", 1) if soft else len(p.every("mask"))
    images, _, h, w = x.shape
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    y = x.reshape(images, regions, coords + 1 + classes, h, w).copy()
    y[:, :, :2] = sigmoid(y[:, :, :2])
    y[:, :, coords] = sigmoid(y[:, :, coords])
    scores = y[:, :, coords + 1:]
    if not soft:
        y[:, :, coords + 1:] = sigmoid(scores)
        return y.reshape(x.shape)
    scores = np.exp(scores - scores.max(2, keepdims=True))
    y[:, :, coords + 1:] = scores / scores.sum(2, keepdims=True)
    start, end = flat("axis", 1) % 4, flat("end_axis", -1) % 4
    return y.reshape(*x.shape[:start], -1, *x.shape[end + 1:])


LAYERS = {"PriorBox": prior_box, "PriorBoxClustered": prior_box, "DetectionOutput": detection_output, "ROIPooling": roi_pooling,
          "PSROIPooling": psroi_pooling, "RegionYolo": region_yolo}
