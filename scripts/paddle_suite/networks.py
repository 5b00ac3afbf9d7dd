"""Networks of paddle.vision and some of our own, each with inputs. Weights are random, from a fixed seed."""

import numpy as np
import paddle
from paddle import nn
from paddle.vision import models


def networks():
    def picture(size=224):
        return [("image", np.random.RandomState(1).uniform(-1, 1, (1, 3, size, size)).astype("float32"), (None, 3, size, size))]

    class Recurrent(nn.Layer):
        def __init__(self, kind):
            super().__init__()
            self.first = getattr(nn, kind)(16, 24, 2, direction="bidirect")
            self.last = nn.Linear(48, 10)

        def forward(self, x):
            return nn.functional.softmax(self.last(self.first(x)[0]))

    class Loop(nn.Layer):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(8, 8)

        def forward(self, x):
            i = paddle.zeros([1], "int64")
            y = x
            while i < 5:
                y = paddle.tanh(self.step(y)) + x
                i = i + 1
            return y

    class Choice(nn.Layer):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(8, 4), nn.Linear(8, 4)

        def forward(self, x):
            if paddle.mean(x) > 0:
                y = self.up(x)
            else:
                y = nn.functional.relu(self.down(x))
            return y * 2.0

    class Transformer(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(100, 32)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64), 2)

        def forward(self, ids):
            return self.encoder(self.embedding(ids))

    vector = [("x", np.random.RandomState(2).uniform(-1, 1, (3, 8)).astype("float32"), (None, 8))]
    sequence = [("x", np.random.RandomState(2).uniform(-1, 1, (2, 7, 16)).astype("float32"), (None, None, 16))]
    ids = [("ids", np.random.RandomState(2).randint(0, 100, (2, 9)).astype("int64"), (None, None))]
    small = [("image", np.random.RandomState(1).uniform(-1, 1, (2, 1, 28, 28)).astype("float32"), (None, 1, 28, 28))]
    return {
        "lenet": (models.LeNet, small),
        "resnet18": (models.resnet18, picture()),
        "resnet50": (models.resnet50, picture()),
        "resnext50": (models.resnext50_32x4d, picture()),
        "mobilenet_v1": (models.mobilenet_v1, picture()),
        "mobilenet_v2": (models.mobilenet_v2, picture()),
        "mobilenet_v3_small": (models.mobilenet_v3_small, picture()),
        "mobilenet_v3_large": (models.mobilenet_v3_large, picture()),
        "shufflenet_v2": (models.shufflenet_v2_x1_0, picture()),
        "shufflenet_v2_swish": (models.shufflenet_v2_swish, picture()),
        "densenet121": (models.densenet121, picture()),
        "googlenet": (models.googlenet, picture()),
        "inception_v3": (models.inception_v3, picture(299)),
        "squeezenet": (models.squeezenet1_1, picture()),
        "alexnet": (models.alexnet, picture()),
        "vgg11": (models.vgg11, picture()),
        "lstm": (lambda: Recurrent("LSTM"), sequence),
        "gru": (lambda: Recurrent("GRU"), sequence),
        "while": (Loop, vector),
        "cond": (Choice, vector),
        "cond_other": (Choice, [("x", -np.abs(vector[0][1]), (None, 8))]),
        "transformer": (Transformer, ids),
    }


def export(name, prefix):
    """Saves a network and gives its inputs."""
    paddle.seed(5)
    make, inputs = networks()[name]
    net = make()
    net.eval()
    specs = [paddle.static.InputSpec([-1 if d is None else d for d in shape], str(a.dtype), key) for key, a, shape in inputs]
    paddle.jit.save(net, prefix, input_spec=specs)
    return {key: a for key, a, _ in inputs}
