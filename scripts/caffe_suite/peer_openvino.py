"""mo converts, OpenVINO runs."""

import openvino.runtime as ov
from openvino.tools.mo import convert_model

from .peers import serve


def run(task, inputs):
    weights = {"input_model": task["caffemodel"]} if task["caffemodel"] else {}
    model = convert_model(input_proto=task["prototxt"], framework="caffe", silent=True, **weights)
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    given = {}
    for port in compiled.inputs:
        name = next(n for n in inputs if n in port.get_names() or n == port.get_node().get_friendly_name())
        given[port] = inputs[name]
    request = compiled.create_infer_request()
    request.infer(given)
    found = {}
    for i, port in enumerate(compiled.outputs):
        names = port.get_names()
        source = port.get_node().input_value(0).get_node().get_friendly_name()
        blob = next((o[0] for o in task["outputs"] if o[0] in names or f"{o[1]}:{o[2]}" in names), None)
        blob = blob or next((o[0] for o in task["outputs"] if o[1] in names or o[1] == source), f"?{i} {sorted(names)} {source}")
        found[blob] = request.get_output_tensor(i).data.copy()
    return found


if __name__ == "__main__":
    serve(run)
