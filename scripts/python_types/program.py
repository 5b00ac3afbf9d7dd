"""A program that `mypy --strict` must find nothing wrong with; scripts/python-test runs it through mypy only."""

import numpy as np

import carafe as ov
from carafe import opset13 as ops


def build() -> ov.Model:
    data = ops.parameter([2, 3], np.float32, name="data")
    return ov.Model([ops.relu(ops.add(data, 1.0))], [data], "relu")


def run(path: str) -> float:
    core = ov.Core()
    core.set_property("CPU", {"PERF_COUNT": True})
    compiled: ov.CompiledModel = core.compile_model(path, "CPU", {"NUM_STREAMS": 2})
    image = np.zeros((2, 3), np.float32)
    found = compiled({"data": image})[0]
    request: ov.InferRequest = compiled.create_infer_request()
    request.set_input_tensor(ov.Tensor(image, shared_memory=True))
    request.infer()
    names: set[str] = compiled.input(0).get_names()
    shape: ov.PartialShape = compiled.output(0).partial_shape
    assert shape.is_static and "data" in names
    return float(found.sum() + request.get_output_tensor(0).data.sum())


def in_background(compiled: ov.CompiledModel) -> int:
    queue = ov.AsyncInferQueue(compiled, 2)
    sums: dict[int, float] = {}

    def ended(request: ov.InferRequest, number: int) -> None:
        sums[number] = float(request.get_output_tensor().data.sum())

    queue.set_callback(ended)
    for number in range(4):
        queue.start_async({0: np.ones((2, 3), np.float32)}, number)
    queue.wait_all()
    return len(sums)


def with_pictures(model: ov.Model) -> ov.Model:
    steps = ov.preprocess.PrePostProcessor(model)
    steps.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
    steps.input().preprocess().convert_element_type(ov.Type.f32).scale(255.0)
    return steps.build()


def describe(model: ov.Model) -> list[str]:
    return [f"{node.get_type_name()} {node.get_friendly_name()}" for node in model.get_ordered_ops()]


ov.save_model(build(), "relu.xml", compress_to_fp16=False)
