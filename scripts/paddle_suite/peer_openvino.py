"""Runs an IR by OpenVINO in a process of its own, so that a crash of it is a row of the table and not the end.

    peer_openvino.py MODEL.xml INPUTS.npz OUTPUTS.npz
"""

import sys

import numpy as np
import openvino


def main(xml, inputs, outputs):
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(xml), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    with np.load(inputs) as arrays:
        found = compiled([arrays[key] for key in arrays.files])
    np.savez(outputs, *[found[o] for o in compiled.outputs])


main(*sys.argv[1:])
