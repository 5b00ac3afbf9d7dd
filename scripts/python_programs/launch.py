"""Runs a program with openvino or with Carafe under its name: launch.py openvino|carafe PROGRAM ARGUMENTS.

Both round to bf16 by themselves on processors that have it, each in its own places, which moves results by more than they are compared with: the
default is set to f32 here. The program does not change.
"""

import os
import runpy
import sys

if sys.argv[1] == "carafe":
    import carafe.openvino_compat

    carafe.openvino_compat.install()
import openvino

first = openvino.Core.__init__


def exact(self, *arguments, **named):
    first(self, *arguments, **named)
    self.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})


openvino.Core.__init__ = exact
sys.argv[:] = sys.argv[2:]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
