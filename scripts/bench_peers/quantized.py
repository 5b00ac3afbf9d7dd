"""Int8 forms of the networks that this tool writes: quantize and dequantize around every layer, by ONNX Runtime's tools.

Activations are u8 with a zero point, weights i8 with a scale for each channel. The calibration data are inputs like those that are
timed, of other seeds, so that every engine gets the same file.
"""

import logging
import os
import tempfile
from pathlib import Path

import numpy as np

# What is said to the tool besides: in a transformer only products with stored weights are quantized, as others do by default.
TRANSFORMER = {"kinds": ["MatMul", "Gemm"], "extra": {"MatMulConstBOnly": True}}
NETS = {"resnet50": {}, "mobilenet_v2": {}, "squeezenet1_1": {}, "efficientnet_b0": {}, "unet_256": {}, "yolov8n_640": {},
        "minilm_l6_128": TRANSFORMER, "bert_base_128": TRANSFORMER}
CALIBRATED = 4  # inputs


class Inputs:
    """Feeds the calibration: the given inputs, then others of the same form."""

    def __init__(self, values, count=CALIBRATED):
        rng = np.random.default_rng(1)
        self.each = iter([values, *({name: like(value, rng) for name, value in values.items()} for _ in range(count - 1))])

    def get_next(self):
        return next(self.each, None)


def like(value, rng):
    if value.dtype.kind == "f":
        return rng.permuted(value, axis=-1)
    return value if len(np.unique(value)) < 3 else rng.permutation(value.reshape(-1)).reshape(value.shape)


def write(file, values, to, kinds=None, extra=None):
    """The int8 form of a model. It appears under its name when it is whole."""
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    logging.disable(logging.WARNING)  # it recommends steps that these networks do not need
    with tempfile.TemporaryDirectory(dir=to.parent) as home:
        made = Path(home) / to.name
        quantize_static(str(file), str(made), Inputs(values), quant_format=QuantFormat.QDQ, per_channel=True, op_types_to_quantize=kinds,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, calibrate_method=CalibrationMethod.MinMax,
                        extra_options=extra or {})
        os.replace(made, to)
