"""Runs models in OpenVINO: `python peer_openvino.py < lines`, a line `MODEL IN.npz OUT.npz` answered by `ok` or an error.

IN.npz has the inputs in order as `NAME`; OUT.npz gets `0`, `1`, ... and `names`.
"""

import sys

import numpy as np
import openvino as ov

# Activations in front of int8 weights stay floats.
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 2, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}


def main():
    core = ov.Core()
    for line in sys.stdin:
        model, given, out = line.rstrip("\n").split("\t")
        try:
            run(core, model, given, out)
            print("ok", flush=True)
        except Exception as problem:  # the next model has its own turn
            print("error: " + " ".join(str(problem).split())[-300:], flush=True)


def run(core, model, given, out):
    compiled = core.compile_model(core.read_model(model), "CPU", CONFIG)
    request = compiled.create_infer_request()
    with np.load(given, allow_pickle=False) as file:
        feed = {n: file[n] for n in file.files}
    for i, (name, value) in enumerate(feed.items()):
        port = next((p for p in compiled.inputs if plain(name) in map(plain, p.get_names())), compiled.inputs[min(i, len(compiled.inputs) - 1)])
        if value.dtype.kind in "SU":
            tensor = ov.Tensor(ov.Type.string, ov.Shape(list(value.shape)))
            tensor.str_data = value.astype(str)
        else:
            tensor = ov.Tensor(value.dtype, ov.Shape(list(value.shape)))
            tensor.data[...] = value
        request.set_tensor(port, tensor)
    request.infer()
    arrays, names = {}, []
    for i, port in enumerate(compiled.outputs):
        tensor = request.get_output_tensor(i)
        arrays[str(i)] = np.array(tensor.str_data, str) if tensor.element_type == ov.Type.string else np.array(tensor.data)
        names.append(min(port.get_names(), default=f"output{i}", key=len))
    np.savez(out, names=np.array(names), **arrays)


def plain(name):
    return name.removesuffix(":0")


if __name__ == "__main__":
    main()
