"""Writes ONNX graphs node by node, in the form that exporters give them: batch norms folded, weights seeded.

Weights are drawn so that values keep their size from layer to layer: numbers that grow or fade away would make sums slow
or outputs useless for comparison.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

OPSET = 18
# How much an activation shrinks values that are normally distributed.
GAIN = {None: 1.0, "relu": 1.41, "relu6": 1.43, "silu": 1.68, "hswish": 1.65}
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}


class Net:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs, self.values = [], {}, [], [], {}
        self.count = 0

    def save(self, file, name):
        weights = [numpy_helper.from_array(array, key) for key, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, weights)
        save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9), file)

    def input(self, name, value):
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[value.dtype], value.shape))
        self.values[name] = value
        return name

    def output(self, name, value):
        self.nodes.append(helper.make_node("Identity", [value], [name], name=f"{name}/Identity"))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Adds a node and returns the name of its output, or of all when there are several."""
        self.count += 1
        name = f"{kind}_{self.count}"
        made = [f"{name}_out{i}" if i else f"{name}_out" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, name=name, **attributes))
        return made[0] if outputs == 1 else made

    def const(self, value, dtype=np.float32):
        return self.keep(np.asarray(value, dtype))

    def keep(self, array):
        name = f"weight_{len(self.weights)}"
        self.weights[name] = array
        return name

    def normal(self, shape, deviation):
        return self.keep((self.rng.standard_normal(shape) * deviation).astype(np.float32))

    def ints(self, *values):
        return self.const(values, np.int64)

    # Layers

    def conv(self, x, cin, cout, k=1, s=1, groups=1, act=None, pad=None, scale=1.0):
        fan_in = cin // groups * k * k
        weight = self.normal([cout, cin // groups, k, k], scale * GAIN[act] / np.sqrt(fan_in))
        pad = k // 2 if pad is None else pad
        y = self.op("Conv", x, weight, self.normal([cout], 0.02), kernel_shape=[k, k], strides=[s, s], pads=[pad] * 4, group=groups)
        return self.act(y, act)

    def act(self, x, kind):
        if kind is None:
            return x
        if kind == "relu":
            return self.op("Relu", x)
        if kind == "relu6":
            return self.op("Clip", x, self.const(0), self.const(6))
        if kind == "hswish":
            return self.op("HardSwish", x)
        return self.op("Mul", x, self.op("Sigmoid", x))

    def squeeze_excite(self, x, channels, inner, inner_act, gate):
        y = self.op("ReduceMean", x, self.ints(2, 3), keepdims=1)
        y = self.conv(self.conv(y, channels, inner, act=inner_act), inner, channels)
        gated = self.op("Sigmoid", y) if gate == "sigmoid" else self.op("HardSigmoid", y, alpha=1 / 6, beta=0.5)
        return self.op("Mul", x, gated)

    def classifier(self, x, channels, classes=1000, act=None):
        weight = self.normal([classes, channels], GAIN[act] / np.sqrt(channels))
        return self.act(self.op("Gemm", x, weight, self.normal([classes], 0.02), transB=1), act)

    def pooled(self, x):
        return self.op("Flatten", self.op("GlobalAveragePool", x))

    def linear(self, x, cin, cout, scale=1.0):
        return self.op("Add", self.op("MatMul", x, self.normal([cin, cout], scale / np.sqrt(cin))), self.normal([cout], 0.02))

    def layer_norm(self, x, width):
        scale, shift = self.const(np.ones(width)), self.const(np.zeros(width))
        return self.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)

    def gelu(self, x, tanh=False):
        if tanh:
            cubed = self.op("Mul", self.op("Pow", x, self.const(3)), self.const(0.044715))
            inner = self.op("Mul", self.op("Add", x, cubed), self.const(np.sqrt(2 / np.pi)))
            return self.op("Mul", self.op("Mul", x, self.const(0.5)), self.op("Add", self.op("Tanh", inner), self.const(1)))
        inner = self.op("Erf", self.op("Div", x, self.const(np.sqrt(2))))
        return self.op("Mul", self.op("Mul", x, self.op("Add", inner, self.const(1))), self.const(0.5))
