"""Networks with seeded weights: those of Gluon's model zoo, and others written with MXNet's own symbols."""

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn
from mxnet.gluon.model_zoo import vision

ZOO = {
    "alexnet": 224, "densenet121": 224, "inceptionv3": 299, "mobilenet0.5": 224, "mobilenetv2_0.5": 224,
    "resnet18_v1": 224, "resnet18_v2": 224, "resnet50_v1": 224, "resnet50_v2": 224, "squeezenet1.0": 224, "squeezenet1.1": 224,
    "vgg11": 224, "vgg11_bn": 224,
}


class Net:
    """A symbol, its arrays by name (auxiliary ones apart) and inputs."""

    def __init__(self, symbol, args, aux, inputs):
        self.symbol, self.args, self.aux, self.inputs = symbol, args, aux, inputs

    def save(self, prefix):
        self.symbol.save(f"{prefix}-symbol.json")
        arrays = {f"arg:{k}": v for k, v in self.args.items()} | {f"aux:{k}": v for k, v in self.aux.items()}
        mx.nd.save(f"{prefix}-0000.params", arrays)

    def run(self, dtype=None):
        values = {k: mx.nd.array(v, dtype=dtype or v.dtype) for k, v in self.inputs.items()}
        cast = lambda arrays: {k: v.astype(dtype) if dtype else v for k, v in arrays.items()}  # noqa: E731
        known, aux = {**values, **cast(self.args)}, cast(self.aux)
        names = self.symbol.list_arguments()
        if any(n not in known for n in names):
            shapes, _, _ = self.symbol.infer_shape_partial(**{k: v.shape for k, v in known.items()})
            known.update({k: mx.nd.zeros(s) for k, s in zip(names, shapes) if k not in known})
        bound = self.symbol.bind(mx.cpu(), args={k: known[k] for k in names}, aux_states=aux, grad_req="null")
        return [o.asnumpy() for o in bound.forward(is_train=False)]


def picture(*shape, seed=1):
    """Soft shapes, not noise."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0, 3, shape[-1])
    base = np.sin(np.add.outer(np.linspace(0, 3, shape[-2]) * 2, grid * 3))
    return (base + 0.1 * rng.normal(size=shape)).astype(np.float32)


class Start(mx.init.Xavier):
    """Vectors have no fans; they are replaced later where they matter."""

    def _init_weight(self, name, array):
        if array.ndim > 1:
            super()._init_weight(name, array)
        else:
            array[:] = 0.5


def of_block(block, inputs, gamma=(0.5, 1.5)):
    block.initialize(Start(), force_reinit=True)
    variables = [mx.sym.var(k) for k in inputs]
    block(*[mx.nd.array(v, dtype=v.dtype) for v in inputs.values()])
    symbol = block(*variables)
    symbol = mx.sym.Group(list(symbol)) if isinstance(symbol, (tuple, list)) else symbol
    rng = np.random.default_rng(7)
    args, aux = {}, {}
    states = set(symbol.list_auxiliary_states())
    for name, parameter in block.collect_params().items():
        value = parameter.data()
        if name.endswith(("running_mean", "moving_mean")):
            value = mx.nd.array(rng.normal(size=value.shape) * 0.1)
        elif name.endswith(("running_var", "moving_var")):
            value = mx.nd.array(rng.uniform(0.5, 1.5, value.shape))
        elif name.endswith("gamma"):
            value = mx.nd.array(rng.uniform(*gamma, value.shape))
        (aux if name in states else args)[name] = value
    return Net(symbol, args, aux, inputs)


def of_symbol(symbol, inputs, scale=0.2):
    """With weights of the shapes that MXNet infers."""
    shapes, _, states = symbol.infer_shape(**{k: v.shape for k, v in inputs.items()})
    rng = np.random.default_rng(5)
    args = {}
    for name, shape in zip(symbol.list_arguments(), shapes):
        if name not in inputs and not name.endswith("label"):
            value = rng.normal(size=shape) * scale
            args[name] = mx.nd.array(1 + value * 0.1 if name.endswith("gamma") else value)
    aux = {}
    for name, shape in zip(symbol.list_auxiliary_states(), states):
        value = rng.uniform(0.5, 1.5, shape) if name.endswith("var") else rng.normal(size=shape) * 0.1
        aux[name] = mx.nd.array(value)
    return Net(symbol, args, aux, inputs)


def zoo(name, size):
    mx.random.seed(3)
    return of_block(vision.get_model(name), {"data": picture(1, 3, size, size)})


def conv(x, name, channels, kernel=3, stride=1, act=True, dilate=1, **kwargs):
    pad = dilate * (kernel - 1) // 2
    x = mx.sym.Convolution(x, name=name, num_filter=channels, kernel=(kernel, kernel), stride=(stride, stride), pad=(pad, pad), dilate=(dilate, dilate), **kwargs)
    if not act:
        return x
    x = mx.sym.BatchNorm(x, name=f"{name}_bn", fix_gamma=False)
    return mx.sym.Activation(x, act_type="relu", name=f"{name}_relu")


def ssd():
    """The head of MXNet's own SSD, of the Module API."""
    data = x = mx.sym.var("data")
    classes, maps = 4, []
    for i, channels in enumerate((8, 16, 24, 32)):
        x = conv(x, f"conv{i}", channels, stride=2)
        maps.append(x)
    scores, offsets, anchors = [], [], []
    for i, x in enumerate(maps[1:]):
        sizes, ratios = (0.2 + 0.2 * i, 0.3 + 0.2 * i), (1, 2, 0.5)
        n = len(sizes) + len(ratios) - 1
        score = conv(x, f"cls{i}", n * (classes + 1), act=False)
        offset = conv(x, f"loc{i}", n * 4, act=False)
        scores.append(mx.sym.Flatten(mx.sym.transpose(score, axes=(0, 2, 3, 1))))
        offsets.append(mx.sym.Flatten(mx.sym.transpose(offset, axes=(0, 2, 3, 1))))
        prior = mx.sym.contrib.MultiBoxPrior(x, sizes=sizes, ratios=ratios, clip=False, name=f"anchors{i}")
        anchors.append(mx.sym.Flatten(prior))
    offset = mx.sym.Concat(*offsets, dim=1, name="multibox_loc_pred")
    score = mx.sym.Reshape(mx.sym.Concat(*scores, dim=1), shape=(0, -1, classes + 1))
    score = mx.sym.transpose(score, axes=(0, 2, 1))
    prior = mx.sym.Reshape(mx.sym.Concat(*anchors, dim=1), shape=(0, -1, 4))
    probability = mx.sym.SoftmaxActivation(score, mode="channel", name="cls_prob")
    out = mx.sym.contrib.MultiBoxDetection(probability, offset, prior, name="detection", nms_threshold=0.5, nms_topk=60)
    assert data is not None
    return of_symbol(out, {"data": picture(1, 3, 64, 96)}, 0.08)


class GluonSSD(gluon.HybridBlock):
    """As GluonCV writes it: anchors are constants that are cut to the feature map."""

    def __init__(self, classes=3):
        super().__init__(prefix="ssd_")
        self.classes = classes
        rng = np.random.default_rng(0)
        with self.name_scope():
            self.stages, self.scores, self.offsets = [], [], []
            for i, channels in enumerate((8, 16, 24)):
                stage = nn.HybridSequential(prefix=f"stage{i}_")
                stage.add(nn.Conv2D(channels, 3, 2, 1), nn.BatchNorm(), nn.Activation("relu"))
                score, offset = nn.Conv2D(4 * (classes + 1), 3, 1, 1), nn.Conv2D(16, 3, 1, 1)
                for name, block, into in (("stage", stage, self.stages), ("cls", score, self.scores), ("loc", offset, self.offsets)):
                    setattr(self, f"{name}{i}", block)
                    into.append(block)
                anchors = rng.uniform(0.1, 0.9, (1, 1, 64, 64, 16)).astype("float32")
                setattr(self, f"anchors{i}", self.params.get_constant(f"anchors{i}", anchors))

    def hybrid_forward(self, F, x, **anchors):
        scores, offsets, priors = [], [], []
        for i, (stage, score, offset) in enumerate(zip(self.stages, self.scores, self.offsets)):
            x = stage(x)
            scores.append(F.flatten(F.transpose(score(x), axes=(0, 2, 3, 1))))
            offsets.append(F.flatten(F.transpose(offset(x), axes=(0, 2, 3, 1))))
            a = F.slice_like(anchors[f"anchors{i}"], x * 0, axes=(2, 3))
            priors.append(F.reshape(F.reshape(a, (1, -1, 4)), (1, -1)))
        score = F.softmax(F.reshape(F.concat(*scores, dim=1), (0, -1, self.classes + 1)), axis=-1)
        offset = F.reshape(F.concat(*offsets, dim=1), (0, -1, 4))
        prior = F.reshape(F.concat(*priors, dim=1), (1, -1, 4))
        px, py, pw, ph = F.split(offset, axis=-1, num_outputs=4)
        ax, ay, aw, ah = F.split(prior, axis=-1, num_outputs=4)
        ox, oy = F.broadcast_add(F.broadcast_mul(px * 0.1, aw), ax), F.broadcast_add(F.broadcast_mul(py * 0.1, ah), ay)
        ow, oh = F.broadcast_mul(F.exp(pw * 0.2), aw) / 2, F.broadcast_mul(F.exp(ph * 0.2), ah) / 2
        boxes = F.concat(ox - ow, oy - oh, ox + ow, oy + oh, dim=-1)
        rows = []
        for c in range(self.classes):
            s = F.slice_axis(score, axis=-1, begin=c + 1, end=c + 2)
            mask = s > 0.01
            rows.append(F.concat(F.where(mask, F.ones_like(s) * c, F.ones_like(s) * -1), F.where(mask, s, F.zeros_like(s)), boxes, dim=-1))
        found = F.contrib.box_nms(F.concat(*rows, dim=1), overlap_thresh=0.45, topk=100, valid_thresh=0.01, id_index=0, score_index=1, coord_start=2, force_suppress=False)
        found = F.slice_axis(found, axis=1, begin=0, end=50)
        return F.slice_axis(found, axis=2, begin=0, end=1), F.slice_axis(found, axis=2, begin=1, end=2), F.slice_axis(found, axis=2, begin=2, end=6)


class Yolo(gluon.HybridBlock):
    """An output of YOLOv3, as GluonCV writes it, and box_nms over all classes."""

    def __init__(self, classes=3):
        super().__init__(prefix="yolo_")
        self.classes = classes
        anchors = np.array([[10, 13], [16, 30], [33, 23]], "float32").reshape(1, 1, 3, 2)
        grid = np.stack(np.meshgrid(np.arange(32), np.arange(32)), -1)[None, None].astype("float32")
        with self.name_scope():
            self.body = nn.HybridSequential()
            self.body.add(nn.Conv2D(16, 3, 2, 1), nn.BatchNorm(), nn.LeakyReLU(0.1), nn.Conv2D(32, 3, 2, 1), nn.LeakyReLU(0.1))
            self.head = nn.Conv2D(3 * (classes + 5), 1)
            self.anchors = self.params.get_constant("anchors", anchors)
            self.grid = self.params.get_constant("offsets", grid)

    def hybrid_forward(self, F, x, anchors, grid):
        x = self.body(x)
        x = F.concat(F.UpSampling(x, scale=2, sample_type="nearest"), F.contrib.BilinearResize2D(x, scale_height=2.0, scale_width=2.0), dim=1)
        x = F.slice_axis(x, axis=1, begin=0, end=32)
        p = F.transpose(self.head(x).reshape((0, 3 * (self.classes + 5), -1)), axes=(0, 2, 1)).reshape((0, -1, 3, self.classes + 5))
        centre, size = p.slice_axis(axis=-1, begin=0, end=2), p.slice_axis(axis=-1, begin=2, end=4)
        objness, cls = p.slice_axis(axis=-1, begin=4, end=5), p.slice_axis(axis=-1, begin=5, end=None)
        o = F.slice_like(grid, x * 0, axes=(2, 3)).reshape((1, -1, 1, 2))
        centre = F.broadcast_mul(F.broadcast_add(F.sigmoid(centre), o), F.ones((1,)) * 4)
        size = F.broadcast_mul(F.exp(size * 0.1), anchors)
        confidence = F.broadcast_mul(F.sigmoid(cls), F.sigmoid(objness))
        half = size / 2.0
        boxes = F.concat(centre - half, centre + half, dim=-1)
        boxes = F.tile(boxes, reps=(self.classes, 1, 1, 1, 1))
        scores = F.transpose(confidence, axes=(3, 0, 1, 2)).expand_dims(axis=-1)
        ids = F.broadcast_add(scores * 0, F.arange(0, self.classes).reshape((0, 1, 1, 1, 1)))
        rows = F.reshape(F.concat(ids, scores, boxes, dim=-1).transpose((1, 0, 2, 3, 4)), (0, -3, -1, 6))
        rows = F.reshape(rows, (0, -1, 6))
        return F.contrib.box_nms(rows, overlap_thresh=0.45, valid_thresh=0.01, topk=100, id_index=0, score_index=1, coord_start=2, force_suppress=False)


def rcnn():
    """A small Faster R-CNN: proposals, regions, two heads."""
    data, info = mx.sym.var("data"), mx.sym.var("im_info")
    x = data
    for i, channels in enumerate((8, 16, 16, 16)):
        x = conv(x, f"conv{i}", channels, stride=2)
    rpn = conv(x, "rpn", 16)
    score = conv(rpn, "rpn_cls", 18, kernel=1, act=False)
    score = mx.sym.SoftmaxActivation(mx.sym.Reshape(score, shape=(0, 2, -1, 0)), mode="channel")
    score = mx.sym.Reshape(score, shape=(0, 18, -1, 0))
    delta = conv(rpn, "rpn_box", 36, kernel=1, act=False) * 0.1
    rois = mx.sym.contrib.Proposal(score, delta, info, name="rois", feature_stride=16, scales=(2, 4, 8), ratios=(0.5, 1, 2), rpn_pre_nms_top_n=200, rpn_post_nms_top_n=20, threshold=0.7, rpn_min_size=8)
    pooled = mx.sym.ROIPooling(x, rois, pooled_size=(4, 4), spatial_scale=1.0 / 16, name="pool")
    aligned = mx.sym.contrib.ROIAlign(x, rois, pooled_size=(4, 4), spatial_scale=1.0 / 16, sample_ratio=2)
    flat = mx.sym.Flatten(pooled + aligned)
    hidden = mx.sym.Activation(mx.sym.FullyConnected(flat, num_hidden=32, name="fc"), act_type="relu")
    cls = mx.sym.softmax(mx.sym.FullyConnected(hidden, num_hidden=5, name="cls"))
    box = mx.sym.FullyConnected(hidden, num_hidden=20, name="box")
    return of_symbol(mx.sym.Group([rois, cls, box]), {"data": picture(1, 3, 128, 160), "im_info": np.array([[128, 160, 1]], np.float32)})


def deeplab():
    data = x = mx.sym.var("data")
    for i, channels in enumerate((8, 16, 24)):
        x = conv(x, f"conv{i}", channels, stride=2)
    branches = [conv(x, "a0", 16, kernel=1)] + [conv(x, f"a{d}", 16, dilate=d) for d in (2, 4)]
    pooled = conv(mx.sym.contrib.AdaptiveAvgPooling2D(x, output_size=1), "pool", 16, kernel=1)
    branches.append(mx.sym.contrib.BilinearResize2D(pooled, like=x, mode="like"))
    branches.append(mx.sym.contrib.BilinearResize2D(conv(mx.sym.contrib.AdaptiveAvgPooling2D(x, output_size=3), "psp", 16, kernel=1), like=x, mode="like"))
    x = conv(mx.sym.Concat(*branches, dim=1), "join", 24)
    x = mx.sym.Deconvolution(x, num_filter=24, kernel=(4, 4), stride=(2, 2), pad=(1, 1), name="up", no_bias=True)
    x = conv(x, "classes", 6, kernel=1, act=False)
    x = mx.sym.contrib.BilinearResize2D(x, like=data, mode="like")
    return of_symbol(mx.sym.Group([x, mx.sym.argmax(x, axis=1)]), {"data": picture(1, 3, 64, 80)})


class LanguageModel(gluon.HybridBlock):
    def __init__(self, words=50, size=16):
        super().__init__(prefix="lm_")
        with self.name_scope():
            self.embedding = nn.Embedding(words, size)
            self.rnn = gluon.rnn.LSTM(24, num_layers=2, dropout=0.2)
            self.gru = gluon.rnn.GRU(16, bidirectional=True)
            self.decoder = nn.Dense(words, flatten=False)

    def hybrid_forward(self, F, tokens):
        return F.log_softmax(self.decoder(self.gru(self.rnn(self.embedding(tokens)))))


class Attention(gluon.HybridBlock):
    """A layer of BERT with interleaved projections, and masks by length."""

    def __init__(self, size=32, heads=4):
        super().__init__(prefix="bert_")
        self.heads = heads
        with self.name_scope():
            self.embedding = nn.Embedding(40, size)
            self.qkv = nn.Dense(3 * size, flatten=False)
            self.out = nn.Dense(size, flatten=False)
            self.norm, self.norm2 = nn.LayerNorm(), nn.LayerNorm()
            self.ffn = nn.Dense(2 * size, flatten=False)
            self.ffn2 = nn.Dense(size, flatten=False)
            self.gelu = nn.GELU()

    def hybrid_forward(self, F, tokens, length):
        x = F.transpose(self.embedding(tokens), axes=(1, 0, 2))
        position = F.contrib.arange_like(x, axis=0)
        x = F.broadcast_add(x, F.reshape(F.sin(position * 0.1), (-1, 1, 1)))
        qkv = self.qkv(x)
        scores = F.contrib.interleaved_matmul_selfatt_qk(qkv, heads=self.heads)
        lengths = F.reshape(F.broadcast_axis(F.expand_dims(length, axis=1), axis=1, size=self.heads), (-1,))
        steps = F.contrib.arange_like(scores, axis=1)
        mask = F.broadcast_lesser(F.reshape(steps, (1, -1)), F.reshape(lengths, (-1, 1)))
        mask = F.broadcast_mul(F.expand_dims(mask, axis=1), F.ones_like(scores))
        scores = F.where(mask, scores, F.ones_like(scores) * -1e4)
        weights = F.softmax(scores, axis=-1)
        x = self.norm(x + self.out(F.contrib.interleaved_matmul_selfatt_valatt(qkv, weights, heads=self.heads)))
        x = self.norm2(x + self.ffn2(self.gelu(self.ffn(x))))
        x = F.SequenceMask(x, sequence_length=length, use_sequence_length=True)
        return F.transpose(x, axes=(1, 0, 2)), F.mean(x, axis=0)


def spatial():
    """A spatial transformer in front of a classifier of the Module API, with its training head."""
    data = mx.sym.var("data")
    loc = mx.sym.FullyConnected(mx.sym.Pooling(data, kernel=(8, 8), stride=(8, 8), pool_type="avg"), num_hidden=6, name="loc") * 0.1
    loc = mx.sym.broadcast_add(loc, mx.sym.Reshape(mx.sym.concat(mx.sym.ones((1, 1)), mx.sym.zeros((1, 3)), mx.sym.ones((1, 1)), mx.sym.zeros((1, 1)), dim=1), shape=(1, 6)))
    x = mx.sym.SpatialTransformer(data, loc, target_shape=(24, 24), transform_type="affine", sampler_type="bilinear")
    x = conv(x, "conv", 8, stride=2)
    x = mx.sym.LRN(x, nsize=5)
    x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pool_type="max", pooling_convention="full")
    return of_symbol(mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=10, name="fc"), name="softmax"), {"data": picture(2, 3, 32, 32)})


def tokens(*shape):
    return np.random.default_rng(2).integers(0, 40, shape).astype(np.float32)


NETS = {f"zoo-{name}": (lambda name=name, size=size: zoo(name, size)) for name, size in ZOO.items()}
NETS |= {
    "ssd": ssd,
    "ssd-gluon": lambda: of_block(GluonSSD(), {"data": picture(1, 3, 64, 64)}),
    "yolo": lambda: of_block(Yolo(), {"data": picture(1, 3, 48, 64)}),
    "faster-rcnn": rcnn,
    "deeplab": deeplab,
    "lstm-lm": lambda: of_block(LanguageModel(), {"data": tokens(7, 3)}),
    "bert-layer": lambda: of_block(Attention(), {"data": tokens(2, 9), "length": np.array([9, 5], np.float32)}),
    "spatial": spatial,
}


# Networks of GluonCV, where that is installed: name and size of the picture.
GLUONCV = {
    "ssd_300_vgg16_atrous_voc": (300, 300), "ssd_512_resnet50_v1_voc": (288, 288), "ssd_512_mobilenet1.0_voc": (256, 256),
    "yolo3_darknet53_voc": (224, 224), "yolo3_mobilenet1.0_voc": (224, 224), "center_net_resnet18_v1b_voc": (256, 256),
    "center_net_resnet18_v1b_dcnv2_voc": (256, 256), "faster_rcnn_resnet50_v1b_voc": (224, 256), "fcn_resnet50_voc": (224, 224), "deeplab_resnet50_ade": (224, 224),
    "psp_resnet50_ade": (240, 240), "mobilenetv3_small": (224, 224), "resnest14": (224, 224), "se_resnext50_32x4d": (224, 224),
    "simple_pose_resnet18_v1b": (256, 192), "alpha_pose_resnet101_v1b_coco": (256, 192), "icnet_resnet50_citys": (256, 256), "danet_resnet50_citys": (128, 128),
    "cifar_resnet20_v1": (32, 32), "senet_154": (224, 224), "hrnet_w18_small_v1_c": (224, 224), "googlenet": (224, 224),
}


def of_gluoncv(name, size):
    from gluoncv.model_zoo import get_model

    mx.random.seed(3)
    known = {"pretrained": False}
    if not name.startswith(("mobilenetv3", "resnest", "se_", "cifar", "senet", "hrnet", "googlenet")):
        known["pretrained_base"] = False
    if name.startswith(("fcn", "deeplab", "psp", "icnet", "danet")):
        known |= {"crop_size": size[0], "base_size": size[0]}
    # Scores of CenterNet that are all 1 have no order.
    gamma = (0.4, 0.9) if name.startswith("center_net") else (0.5, 1.5)
    return of_block(get_model(name, **known), {"data": picture(1, 3, *size)}, gamma)


try:
    import gluoncv  # noqa: F401
except ImportError:
    GLUONCV = {}
NETS |= {f"gluoncv-{name}": (lambda name=name, size=size: of_gluoncv(name, size)) for name, size in GLUONCV.items()}
