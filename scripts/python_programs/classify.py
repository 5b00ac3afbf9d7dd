"""Model API: a classifier with preprocessing inside of the model, one picture at a time and in the background."""

import json
import os
import sys
import tempfile
import time

import numpy as np
import onnx
from model_api.models import ClassificationModel
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)
weight = lambda name, *shape: numpy_helper.from_array((random.standard_normal(shape) / 8).astype(np.float32), name)
nodes = [
    helper.make_node("Conv", ["image", "w1"], ["a"], strides=[2, 2], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["a"], ["b"]),
    helper.make_node("Conv", ["b", "w2"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
    helper.make_node("Relu", ["c"], ["d"]),
    helper.make_node("GlobalAveragePool", ["d"], ["e"]),
    helper.make_node("Flatten", ["e"], ["f"]),
    helper.make_node("Gemm", ["f", "w3"], ["logits"]),
]
graph = helper.make_graph(
    nodes,
    "classifier",
    [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 96, 96])],
    [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
    [weight("w1", 16, 3, 3, 3), weight("w2", 32, 16, 3, 3), weight("w3", 32, 10)],
)
path = os.path.join(tempfile.mkdtemp(), "classifier.onnx")
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)

picture = random.integers(0, 255, (120, 160, 3), np.uint8)
options = {"labels": [f"class{i}" for i in range(10)], "topk": 5, "mean_values": [127.5] * 3, "scale_values": [127.5] * 3, "output_raw_scores": True}
model = ClassificationModel.create_model(path, configuration=options, preload=True, device="CPU", model_type="Classification")
found = model(picture)
labels = found.top_labels
times = []
for _ in range(int(sys.argv[1])):
    start = time.perf_counter()
    model(picture)
    times.append(time.perf_counter() - start)
values = [[float(label.confidence) for label in labels], list(map(float, np.ravel(found.raw_scores)))]
print("RESULT" + json.dumps({"texts": [label.name for label in labels], "values": values, "ms": 1000 * min(times)}))
