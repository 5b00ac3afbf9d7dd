"""Classic networks, written as their authors published them, with seeded weights: `NETS` is {name: function that gives a Net}."""

import numpy as np


class Net:
    """Layers as text, their blobs, and the shapes that blobs of the net have."""

    def __init__(self, name, shape, seed=0):
        self.name, self.rng = name, np.random.default_rng(seed)
        self.text = [f'name: "{name}"', f'layer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ {" ".join(f"dim: {d}" for d in shape)} }} }} }}']
        self.blobs, self.shapes, self.inputs = [], {"data": tuple(shape)}, {"data": tuple(shape)}

    def layer(self, kind, name, bottoms, params="", shape=None, blobs=(), top=None):
        bottoms = [bottoms] if isinstance(bottoms, str) else bottoms
        top = top or name
        ends = "".join(f' bottom: "{b}"' for b in bottoms) + f' top: "{top}"'
        self.text.append(f'layer {{ name: "{name}" type: "{kind}"{ends} {params} }}')
        self.shapes[top] = shape or self.shapes[bottoms[0]]
        if blobs:
            self.blobs.append((name, kind, [np.asarray(b, np.float32) for b in blobs]))
        return top

    def conv(self, name, x, outputs, k, stride=1, pad=0, group=1, bias=True, dilation=1, kind="Convolution", gain=2.0):
        n, c, h, w = self.shapes[x]
        weights = self.rng.normal(size=(outputs, c // group, k, k), scale=(gain / (c // group * k * k)) ** 0.5).astype(np.float32)
        size = lambda s: (s + 2 * pad - ((k - 1) * dilation + 1)) // stride + 1
        params = f"convolution_param {{ num_output: {outputs} kernel_size: {k}"
        for word, value, default in (("stride", stride, 1), ("pad", pad, 0), ("group", group, 1), ("dilation", dilation, 1)):
            params += f" {word}: {value}" if value != default else ""
        params += "" if bias else " bias_term: false"
        blobs = [weights, self.rng.normal(size=outputs, scale=0.05)] if bias else [weights]
        return self.layer(kind, name, x, params + " }", (n, outputs, size(h), size(w)), blobs)

    def deconv(self, name, x, outputs, k, stride, pad, group=1, bias=False):
        n, c, h, w = self.shapes[x]
        weights = self.rng.normal(size=(c, outputs // group, k, k), scale=(2.0 / (c // group * (k / stride) ** 2)) ** 0.5)
        size = lambda s: stride * (s - 1) + k - 2 * pad
        params = f"convolution_param {{ num_output: {outputs} kernel_size: {k} stride: {stride} pad: {pad} group: {group} bias_term: {'true' if bias else 'false'} }}"
        return self.layer("Deconvolution", name, x, params, (n, outputs, size(h), size(w)), [weights] + ([np.zeros(outputs)] if bias else []))

    def relu(self, x, name=None):
        return self.layer("ReLU", name or f"{x}_relu", x, top=x)

    def norm(self, x, name=None, factor=1.0):
        """BatchNorm and Scale, in place."""
        name = name or x
        c = self.shapes[x][1]
        r = self.rng
        self.layer("BatchNorm", f"{name}/bn", x, "batch_norm_param { use_global_stats: true }", blobs=[r.normal(size=c, scale=0.1) * factor, (0.6 + r.random(c) * 0.8) * factor, [factor]], top=x)
        return self.layer("Scale", f"{name}/scale", x, "scale_param { bias_term: true }", blobs=[0.8 + r.random(c) * 0.4, r.normal(size=c, scale=0.1)], top=x)

    def pool(self, name, x, k=0, stride=1, pad=0, kind="MAX", whole=False):
        n, c, h, w = self.shapes[x]
        if whole:
            return self.layer("Pooling", name, x, f"pooling_param {{ pool: {kind} global_pooling: true }}", (n, c, 1, 1))

        def size(s):
            out = -(-(s + 2 * pad - k) // stride) + 1
            return out - 1 if pad and (out - 1) * stride >= s + pad else out
        return self.layer("Pooling", name, x, f"pooling_param {{ pool: {kind} kernel_size: {k} stride: {stride} pad: {pad} }}", (n, c, size(h), size(w)))

    def dense(self, name, x, outputs, gain=2.0):
        n, *rest = self.shapes[x]
        k = int(np.prod(rest))
        # Large matrices are made of one row, turned: drawing 100 million numbers takes a minute.
        row = self.rng.normal(size=k + outputs, scale=(gain / k) ** 0.5).astype(np.float32)
        weights = np.lib.stride_tricks.sliding_window_view(row, k)[:outputs] * self.rng.choice([-1, 1], (outputs, 1)).astype(np.float32)
        return self.layer("InnerProduct", name, x, f"inner_product_param {{ num_output: {outputs} }}", (n, outputs), [weights, self.rng.normal(size=outputs, scale=0.05)])

    def lrn(self, name, x):
        return self.layer("LRN", name, x, "lrn_param { local_size: 5 alpha: 0.0001 beta: 0.75 }")

    def drop(self, x):
        return self.layer("Dropout", f"{x}_drop", x, "dropout_param { dropout_ratio: 0.5 }", top=x)

    def concat(self, name, parts, axis=1):
        shape = list(self.shapes[parts[0]])
        shape[axis] = sum(self.shapes[p][axis] for p in parts)
        return self.layer("Concat", name, parts, f"concat_param {{ axis: {axis} }}", tuple(shape))

    def add(self, name, parts):
        return self.layer("Eltwise", name, parts, "eltwise_param { operation: SUM }")

    def softmax(self, x):
        return self.layer("Softmax", "prob", x)


def alexnet():
    n = Net("AlexNet", (1, 3, 227, 227))
    x = n.lrn("norm1", n.relu(n.conv("conv1", "data", 96, 11, 4)))
    x = n.conv("conv2", n.pool("pool1", x, 3, 2), 256, 5, pad=2, group=2)
    x = n.pool("pool2", n.lrn("norm2", n.relu(x)), 3, 2)
    x = n.relu(n.conv("conv3", x, 384, 3, pad=1))
    x = n.relu(n.conv("conv4", x, 384, 3, pad=1, group=2))
    x = n.pool("pool5", n.relu(n.conv("conv5", x, 256, 3, pad=1, group=2)), 3, 2)
    x = n.drop(n.relu(n.dense("fc6", x, 4096)))
    x = n.drop(n.relu(n.dense("fc7", x, 4096)))
    n.softmax(n.dense("fc8", x, 1000, 1.0))
    return n


def googlenet():
    n = Net("GoogleNet", (1, 3, 224, 224), 1)
    x = n.pool("pool1/3x3_s2", n.relu(n.conv("conv1/7x7_s2", "data", 64, 7, 2, 3)), 3, 2)
    x = n.relu(n.conv("conv2/3x3_reduce", n.lrn("pool1/norm1", x), 64, 1))
    x = n.pool("pool2/3x3_s2", n.lrn("conv2/norm2", n.relu(n.conv("conv2/3x3", x, 192, 3, pad=1))), 3, 2)
    sizes = {"3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64), "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64),
             "4c": (128, 128, 256, 24, 64, 64), "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128), "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}
    for label, (a, b1, b, c1, c, d) in sizes.items():
        at = f"inception_{label}"
        one = n.relu(n.conv(f"{at}/1x1", x, a, 1))
        three = n.relu(n.conv(f"{at}/3x3", n.relu(n.conv(f"{at}/3x3_reduce", x, b1, 1)), b, 3, pad=1))
        five = n.relu(n.conv(f"{at}/5x5", n.relu(n.conv(f"{at}/5x5_reduce", x, c1, 1)), c, 5, pad=2))
        four = n.relu(n.conv(f"{at}/pool_proj", n.pool(f"{at}/pool", x, 3, 1, 1), d, 1))
        x = n.concat(f"{at}/output", [one, three, five, four])
        if label in ("3b", "4e"):
            x = n.pool(f"pool{label[0]}/3x3_s2", x, 3, 2)
    x = n.drop(n.pool("pool5/7x7_s1", x, 7, 1, kind="AVE"))
    n.softmax(n.dense("loss3/classifier", x, 1000, 1.0))
    return n


def resnet50():
    n = Net("ResNet-50", (1, 3, 224, 224), 2)
    x = n.pool("pool1", n.relu(n.norm(n.conv("conv1", "data", 64, 7, 2, 3), factor=999.98)), 3, 2)
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 2):
        for block in range(blocks):
            at, stride = f"res{stage}{chr(97 + block)}", 2 if block == 0 and stage > 2 else 1
            y = n.relu(n.norm(n.conv(f"{at}_branch2a", x, width, 1, stride, bias=False)))
            y = n.relu(n.norm(n.conv(f"{at}_branch2b", y, width, 3, pad=1, bias=False)))
            y = n.norm(n.conv(f"{at}_branch2c", y, width * 4, 1, bias=False, gain=0.5))
            if block == 0:
                x = n.norm(n.conv(f"{at}_branch1", x, width * 4, 1, stride, bias=False, gain=1.0))
            x = n.relu(n.add(at, [x, y]))
    n.softmax(n.dense("fc1000", n.pool("pool5", x, 7, 1, kind="AVE"), 1000, 0.1))
    return n


def vgg16():
    n = Net("VGG_ILSVRC_16_layers", (1, 3, 224, 224), 3)
    x = "data"
    for stage, (count, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for i in range(count):
            x = n.relu(n.conv(f"conv{stage}_{i + 1}", x, width, 3, pad=1))
        x = n.pool(f"pool{stage}", x, 2, 2)
    x = n.drop(n.relu(n.dense("fc6", x, 4096)))
    x = n.drop(n.relu(n.dense("fc7", x, 4096)))
    n.softmax(n.dense("fc8", x, 1000, 1.0))
    return n


def squeezenet():
    n = Net("SqueezeNet_v1.1", (1, 3, 227, 227), 4)
    x = n.pool("pool1", n.relu(n.conv("conv1", "data", 64, 3, 2)), 3, 2)
    for i, (s, e) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)), 2):
        at = f"fire{i}"
        y = n.relu(n.conv(f"{at}/squeeze1x1", x, s, 1))
        x = n.concat(f"{at}/concat", [n.relu(n.conv(f"{at}/expand1x1", y, e, 1)), n.relu(n.conv(f"{at}/expand3x3", y, e, 3, pad=1))])
        if i in (3, 5):
            x = n.pool(f"pool{i}", x, 3, 2)
    x = n.relu(n.conv("conv10", n.drop(x), 1000, 1))
    n.softmax(n.pool("pool10", x, kind="AVE", whole=True))
    return n


def separable(n, at, x, width, stride, kind="Convolution", gain=2.0):
    c = n.shapes[x][1]
    x = n.relu(n.norm(n.conv(f"{at}/dw", x, c, 3, stride, 1, group=c, bias=False, kind=kind)))
    return n.relu(n.norm(n.conv(f"{at}/sep", x, width, 1, bias=False, gain=gain)))


def mobilenet_v1():
    n = Net("MOBILENET", (1, 3, 224, 224), 5)
    x = n.relu(n.norm(n.conv("conv1", "data", 32, 3, 2, 1, bias=False)))
    for i, (width, stride) in enumerate(((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)), 2):
        x = separable(n, f"conv{i}", x, width, stride)
    x = n.conv("fc7", n.pool("pool6", x, kind="AVE", whole=True), 1000, 1)
    n.softmax(x)
    return n


def mobilenet_v2():
    n = Net("MOBILENET_V2", (1, 3, 224, 224), 6)
    x = n.relu(n.norm(n.conv("conv1", "data", 32, 3, 2, 1, bias=False)))
    i = 0
    for grow, width, count, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for j in range(count):
            i += 1
            at, c = f"conv{i}", n.shapes[x][1]
            y = n.relu(n.norm(n.conv(f"{at}/expand", x, c * grow, 1, bias=False)))
            y = n.relu(n.norm(n.conv(f"{at}/dwise", y, c * grow, 3, first if j == 0 else 1, 1, group=c * grow, bias=False)))
            y = n.norm(n.conv(f"{at}/linear", y, width, 1, bias=False, gain=1.0))
            x = n.add(f"block{i}", [x, y]) if j else y
    x = n.relu(n.norm(n.conv("conv_last", x, 1280, 1, bias=False)))
    # Untrained sums of blocks are large, and a softmax of large numbers is 0 and 1.
    n.softmax(n.conv("fc7", n.pool("pool6", x, kind="AVE", whole=True), 1000, 1, gain=1.5e-4))
    return n


def densenet121():
    n = Net("DENSENET_121", (1, 3, 224, 224), 7)
    x = n.pool("pool1", n.relu(n.norm(n.conv("conv1", "data", 64, 7, 2, 3, bias=False))), 3, 2, 1)

    def fresh(name, x):
        """BatchNorm beside the blob, since others read it too."""
        c, r = n.shapes[x][1], n.rng
        y = n.layer("BatchNorm", f"{name}/bn", x, "batch_norm_param { eps: 1e-5 }", blobs=[r.normal(size=c, scale=0.1), 0.6 + r.random(c) * 0.8, [1.0]])
        n.layer("Scale", f"{name}/scale", y, "scale_param { bias_term: true }", blobs=[0.8 + r.random(c) * 0.4, r.normal(size=c, scale=0.1)], top=y)
        return n.relu(y)

    for stage, count in enumerate((6, 12, 24, 16), 2):
        for i in range(count):
            at = f"conv{stage}_{i + 1}"
            y = n.conv(f"{at}/x1", fresh(f"{at}/pre", x), 128, 1, bias=False, gain=1.0)
            y = n.conv(f"{at}/x2", n.relu(n.norm(y)), 32, 3, pad=1, bias=False, gain=1.0)
            x = n.concat(f"concat_{stage}_{i + 1}", [x, y])
        x = fresh(f"conv{stage}_blk", x)
        if stage < 5:
            x = n.conv(f"conv{stage}_trans", x, n.shapes[x][1] // 2, 1, bias=False, gain=1.0)
            x = n.pool(f"pool{stage}", x, 2, 2, kind="AVE")
    n.softmax(n.conv("fc6", n.pool("pool5", x, kind="AVE", whole=True), 1000, 1))
    return n


def mobilenet_ssd():
    n = Net("MobileNet-SSD", (1, 3, 300, 300), 8)
    x = n.relu(n.norm(n.conv("conv0", "data", 32, 3, 2, 1, bias=False)))
    heads = []
    for i, (width, stride) in enumerate(((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)), 1):
        x = separable(n, f"conv{i}", x, width, stride)
        heads += [x] if i in (11, 13) else []
    for i, (small, width) in enumerate(((256, 512), (128, 256), (128, 256), (64, 128)), 14):
        y = n.relu(n.norm(n.conv(f"conv{i}_1", x, small, 1, bias=False)))
        x = n.relu(n.norm(n.conv(f"conv{i}_2", y, width, 3, 2, 1, bias=False)))
        heads.append(x)
    classes, sizes = 21, ((60, 0), (105, 150), (150, 195), (195, 240), (240, 285), (285, 300))
    places, scores, priors = [], [], []
    for i, (x, (least, most)) in enumerate(zip(heads, sizes)):
        boxes = 6 if most else 3
        for kind, width, into in (("loc", 4, places), ("conf", classes, scores)):
            y = n.conv(f"{x}_mbox_{kind}", x, boxes * width, 1, gain=0.5 if kind == "loc" else 3.0)
            b, c, h, w = n.shapes[y]
            y = n.layer("Permute", f"{y}_perm", y, "permute_param { order: 0 order: 2 order: 3 order: 1 }", (b, h, w, c))
            into.append(n.layer("Flatten", f"{y[:-5]}_flat", y, "flatten_param { axis: 1 }", (b, c * h * w)))
        b, c, h, w = n.shapes[x]
        ratios = "aspect_ratio: 2.0" + (f" aspect_ratio: 3.0 max_size: {most}" if most else "")
        params = f"prior_box_param {{ min_size: {least} {ratios} flip: true clip: false variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 offset: 0.5 }}"
        priors.append(n.layer("PriorBox", f"{x}_mbox_priorbox", [x, "data"], params, (1, 2, h * w * boxes * 4)))
    loc, conf, prior = n.concat("mbox_loc", places), n.concat("mbox_conf", scores), n.concat("mbox_priorbox", priors, 2)
    n.layer("Reshape", "mbox_conf_reshape", conf, f"reshape_param {{ shape {{ dim: 0 dim: -1 dim: {classes} }} }}", (1, n.shapes[conf][1] // classes, classes))
    n.layer("Softmax", "mbox_conf_softmax", "mbox_conf_reshape", "softmax_param { axis: 2 }")
    n.layer("Flatten", "mbox_conf_flatten", "mbox_conf_softmax", "flatten_param { axis: 1 }", n.shapes[conf])
    params = f"detection_output_param {{ num_classes: {classes} share_location: true background_label_id: 0 nms_param {{ nms_threshold: 0.45 top_k: 100 }} code_type: CENTER_SIZE keep_top_k: 100 confidence_threshold: 0.25 }}"
    n.layer("DetectionOutput", "detection_out", [loc, "mbox_conf_flatten", prior], params, (1, 1, 100, 7))
    return n


def segmentation():
    n = Net("Segmentation", (1, 3, 256, 256), 9)
    x, kept = "data", []
    for stage, width in enumerate((32, 64, 96, 128), 1):
        x = n.relu(n.norm(n.conv(f"conv{stage}_1", x, width, 3, pad=1)))
        x = n.relu(n.norm(n.conv(f"conv{stage}_2", x, width, 3, pad=1)))
        kept.append(x)
        x = n.pool(f"pool{stage}", x, 2, 2)
    for stage, width in ((4, 96), (3, 64), (2, 32), (1, 32)):
        x = n.deconv(f"up{stage}", x, n.shapes[x][1], 4, 2, 1, group=n.shapes[x][1] if stage % 2 else 1)
        like = n.shapes[kept[stage - 1]]
        x = n.layer("Crop", f"crop{stage}", [x, kept[stage - 1]], "crop_param { axis: 2 offset: 0 }", (1, n.shapes[x][1], *like[2:]))
        x = n.relu(n.norm(n.conv(f"dec{stage}", n.concat(f"skip{stage}", [x, kept[stage - 1]]), width, 3, pad=1)))
    x = n.layer("PReLU", "prelu", n.conv("score", x, 11, 1, gain=0.3), "", blobs=[n.rng.random(11)])
    n.softmax(x)
    return n


NETS = {"alexnet": alexnet, "googlenet": googlenet, "resnet50": resnet50, "vgg16": vgg16, "squeezenet1.1": squeezenet, "mobilenet_v1": mobilenet_v1, "mobilenet_v2": mobilenet_v2,
        "mobilenet_ssd": mobilenet_ssd, "densenet121": densenet121, "segmentation": segmentation}
