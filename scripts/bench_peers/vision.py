"""Standard networks for images, by their published layer tables."""

import numpy as np

from .nets import Net


def start(size):
    net = Net()
    image = net.rng.standard_normal([1, 3, size, size]).astype(np.float32)
    return net, net.input("input", image)


def finish(net, x, name="output"):
    net.output(name, x)
    return net, net.values


def resnet50():
    net, x = start(224)
    x = net.op("MaxPool", net.conv(x, 3, 64, 7, 2, act="relu"), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    cin = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            s = stride if i == 0 else 1
            y = net.conv(net.conv(x, cin, width, act="relu"), width, width, 3, s, act="relu")
            y = net.conv(y, width, 4 * width, scale=0.3)
            if i == 0:
                x = net.conv(x, cin, 4 * width, s=s)
            x, cin = net.act(net.op("Add", y, x), "relu"), 4 * width
    return finish(net, net.classifier(net.pooled(x), cin))


def mobilenet_v2():
    net, x = start(224)
    x, cin = net.conv(x, 3, 32, 3, 2, act="relu6"), 32
    for t, cout, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(blocks):
            s, wide = stride if i == 0 else 1, cin * t
            y = net.conv(x, cin, wide, act="relu6") if t > 1 else x
            y = net.conv(y, wide, wide, 3, s, groups=wide, act="relu6")
            y = net.conv(y, wide, cout, scale=0.5 if s == 1 and cin == cout else 1)
            x, cin = (net.op("Add", x, y) if s == 1 and cin == cout else y), cout
    x = net.conv(x, cin, 1280, act="relu6")
    return finish(net, net.classifier(net.pooled(x), 1280))


def mobilenet_v3_large():
    net, x = start(224)
    x, cin = net.conv(x, 3, 16, 3, 2, act="hswish"), 16
    table = ((3, 16, 16, 0, "relu", 1), (3, 64, 24, 0, "relu", 2), (3, 72, 24, 0, "relu", 1), (5, 72, 40, 24, "relu", 2),
             (5, 120, 40, 32, "relu", 1), (5, 120, 40, 32, "relu", 1), (3, 240, 80, 0, "hswish", 2), (3, 200, 80, 0, "hswish", 1),
             (3, 184, 80, 0, "hswish", 1), (3, 184, 80, 0, "hswish", 1), (3, 480, 112, 120, "hswish", 1),
             (3, 672, 112, 168, "hswish", 1), (5, 672, 160, 168, "hswish", 2), (5, 960, 160, 240, "hswish", 1),
             (5, 960, 160, 240, "hswish", 1))
    for k, wide, cout, squeezed, act, s in table:
        y = net.conv(x, cin, wide, act=act) if wide != cin else x
        y = net.conv(y, wide, wide, k, s, groups=wide, act=act)
        if squeezed:
            y = net.squeeze_excite(y, wide, squeezed, "relu", "hard")
        same = s == 1 and cin == cout
        y = net.conv(y, wide, cout, scale=0.5 if same else 1.5)
        x, cin = (net.op("Add", x, y) if same else y), cout
    x = net.pooled(net.conv(x, cin, 960, act="hswish"))
    return finish(net, net.classifier(net.classifier(x, 960, 1280, act="hswish"), 1280))


def efficientnet_b0():
    net, x = start(224)
    x, cin = net.conv(x, 3, 32, 3, 2, act="silu"), 32
    for t, k, stride, cout, blocks in ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
                                       (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)):
        for i in range(blocks):
            s, wide = stride if i == 0 else 1, cin * t
            y = net.conv(x, cin, wide, act="silu") if t > 1 else x
            y = net.conv(y, wide, wide, k, s, groups=wide, act="silu")
            y = net.squeeze_excite(y, wide, cin // 4, "silu", "sigmoid")
            same = s == 1 and cin == cout
            y = net.conv(y, wide, cout, scale=0.5 if same else 1.5)
            x, cin = (net.op("Add", y, x) if same else y), cout
    x = net.conv(x, cin, 1280, act="silu")
    return finish(net, net.classifier(net.pooled(x), 1280))


def vgg16():
    net, x = start(224)
    cin = 3
    for cout, layers in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(layers):
            x, cin = net.conv(x, cin, cout, 3, act="relu"), cout
        x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = net.op("Flatten", x)
    for cin, cout, act in ((25088, 4096, "relu"), (4096, 4096, "relu"), (4096, 1000, None)):
        x = net.classifier(x, cin, cout, act)
    return finish(net, x)


def squeezenet1_1():
    net, x = start(224)

    def pool(x):
        return net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    x, cin = pool(net.conv(x, 3, 64, 3, 2, pad=0, act="relu")), 64
    for i, (squeezed, wide) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))):
        x = pool(x) if i in (2, 4) else x
        x = net.conv(x, cin, squeezed, act="relu")
        x = net.op("Concat", net.conv(x, squeezed, wide, act="relu"), net.conv(x, squeezed, wide, 3, act="relu"), axis=1)
        cin = 2 * wide
    return finish(net, net.pooled(net.conv(x, cin, 1000, act="relu")))


def unet_256():
    net, x = start(256)
    width = (32, 64, 128, 256, 512)

    def twice(x, cin, cout):
        return net.conv(net.conv(x, cin, cout, 3, act="relu"), cout, cout, 3, act="relu")
    kept, cin = [], 3
    for i, cout in enumerate(width):
        x, cin = twice(x, cin, cout), cout
        if i < 4:
            kept.append(x)
            x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    for cout in reversed(width[:4]):
        weight = net.normal([2 * cout, cout, 2, 2], 1 / np.sqrt(2 * cout))
        x = net.op("ConvTranspose", x, weight, net.normal([cout], 0.02), kernel_shape=[2, 2], strides=[2, 2])
        x = twice(net.op("Concat", kept.pop(), x, axis=1), 2 * cout, cout)
    return finish(net, net.conv(x, 32, 2))


def yolov8n_640():
    """Backbone, neck and decoupled head of the smallest YOLOv8, boxes decoded."""
    net, x = start(640)

    def cbs(x, cin, cout, k=1, s=1):
        return net.conv(x, cin, cout, k, s, act="silu")

    def c2f(x, cin, cout, blocks, shortcut):
        half = cout // 2
        parts = net.op("Split", cbs(x, cin, cout), net.ints(half, half), outputs=2, axis=1)
        for _ in range(blocks):
            y = cbs(cbs(parts[-1], half, half, 3), half, half, 3)
            parts.append(net.op("Add", parts[-1], y) if shortcut else y)
        return cbs(net.op("Concat", *parts, axis=1), (2 + blocks) * half, cout)

    def join(x, other):
        scales = net.const([1, 1, 2, 2])
        x = net.op("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        return net.op("Concat", x, other, axis=1)

    x = c2f(cbs(cbs(x, 3, 16, 3, 2), 16, 32, 3, 2), 32, 32, 1, True)
    a = c2f(cbs(x, 32, 64, 3, 2), 64, 64, 2, True)
    b = c2f(cbs(a, 64, 128, 3, 2), 128, 128, 2, True)
    x = c2f(cbs(b, 128, 256, 3, 2), 256, 256, 1, True)
    pools = [cbs(x, 256, 128)]
    for _ in range(3):
        pools.append(net.op("MaxPool", pools[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2] * 4))
    c = cbs(net.op("Concat", *pools, axis=1), 512, 256)
    t = c2f(join(c, b), 384, 128, 1, False)
    small = c2f(join(t, a), 192, 64, 1, False)
    middle = c2f(net.op("Concat", cbs(small, 64, 64, 3, 2), t, axis=1), 192, 128, 1, False)
    large = c2f(net.op("Concat", cbs(middle, 128, 128, 3, 2), c, axis=1), 384, 256, 1, False)
    boxes, classes, anchors, strides = [], [], [], []
    for x, cin, stride in ((small, 64, 8), (middle, 128, 16), (large, 256, 32)):
        box = net.conv(cbs(cbs(x, cin, 64, 3), 64, 64, 3), 64, 64)
        score = net.conv(cbs(cbs(x, cin, 80, 3), 80, 80, 3), 80, 80)
        boxes.append(net.op("Reshape", box, net.ints(1, 64, -1)))
        classes.append(net.op("Reshape", score, net.ints(1, 80, -1)))
        cells = np.arange(640 // stride) + 0.5
        anchors.append(np.stack(np.meshgrid(cells, cells)).reshape(2, -1))
        strides.append(np.full([1, cells.size ** 2], stride))
    split = net.op("Reshape", net.op("Concat", *boxes, axis=2), net.ints(1, 4, 16, -1))
    share = net.op("Softmax", net.op("Transpose", split, perm=[0, 2, 1, 3]), axis=1)
    sides = net.op("Conv", share, net.const(np.arange(16).reshape(1, 16, 1, 1)), kernel_shape=[1, 1])
    sides = net.op("Reshape", sides, net.ints(1, 4, -1))
    near, far = net.op("Split", sides, net.ints(2, 2), outputs=2, axis=1)
    middle = net.const(np.concatenate(anchors, 1)[None])
    first, last = net.op("Sub", middle, near), net.op("Add", middle, far)
    centre = net.op("Div", net.op("Add", first, last), net.const(2))
    box = net.op("Concat", centre, net.op("Sub", last, first), axis=1)
    box = net.op("Mul", box, net.const(np.concatenate(strides, 1)))
    return finish(net, net.op("Concat", box, net.op("Sigmoid", net.op("Concat", *classes, axis=2)), axis=1), "boxes")


NETS = {f.__name__: f for f in (resnet50, mobilenet_v2, mobilenet_v3_large, efficientnet_b0, vgg16, squeezenet1_1, unet_256, yolov8n_640)}
