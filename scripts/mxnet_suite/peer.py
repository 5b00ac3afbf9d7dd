"""What OpenVINO gives for a network that Carafe wrote: `python -m mxnet_suite.peer WORK`."""

import sys
from pathlib import Path

import numpy as np
import openvino as ov


def main(work):
    work = Path(work)
    arrays = np.load(work / "reference.npz")
    inputs = {k[3:]: arrays[k] for k in arrays.files if k.startswith("in:")}
    core = ov.Core()
    compiled = core.compile_model(core.read_model(work / "net.xml"), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    by_port = {p: v for p in compiled.inputs for n, v in inputs.items() if n in p.get_names() or p.get_node().get_friendly_name() == n}
    done = compiled(by_port)
    np.savez(work / "openvino.npz", **{f"{i}": done[o] for i, o in enumerate(compiled.outputs)})


if __name__ == "__main__":
    main(sys.argv[1])
