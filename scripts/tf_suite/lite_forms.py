"""Writes networks of `nets` in the other forms of TFLite, beside what `make` writes:

    DIR/NET/dynamic.tflite        int8 weights, float activations that kernels quantize while they run
    DIR/NET/f16.tflite            half-precision weights
    DIR/NET/uint8.tflite          all in int8, inputs and outputs in uint8
    DIR/NET/int16.tflite          int8 weights, int16 activations, float inputs and outputs
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

from . import make, reference
from .nets import NETS, NO_INT8, SEED


def write(name, folder):
    build, inputs = NETS[name]
    place = Path(folder) / name
    place.mkdir(parents=True, exist_ok=True)
    tf.keras.utils.set_random_seed(SEED)
    model, feed = build(), inputs(make.BATCH)
    for form, setup in FORMS.items():
        target = place / f"{form}.tflite"
        if reference.npz_of(target).exists() or (name in NO_INT8 and form in ("uint8", "int16")):
            continue
        converter = make.converter(model, feed)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        setup(converter, feed, inputs)
        try:
            target.write_bytes(converter.convert())
            reference.write(target, *reference.tflite(target, feed))
        except Exception as problem:  # a form that the converter cannot write leaves the others alone
            print(f"{name}/{target.name}: {type(problem).__name__}: {str(problem).splitlines()[0][:300]}", flush=True)
            continue
        print(f"{name}/{target.name}: written", flush=True)


def samples(inputs):
    drawn = inputs(4)[""]
    return lambda: ([drawn[i:i + 1]] for i in range(len(drawn)))


def dynamic(converter, feed, inputs):
    pass


def f16(converter, feed, inputs):
    converter.target_spec.supported_types = [tf.float16]


def uint8(converter, feed, inputs):
    converter.representative_dataset = samples(inputs)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if feed[""].dtype == np.float32:
        converter.inference_input_type = tf.uint8
    converter.inference_output_type = tf.uint8


def int16(converter, feed, inputs):
    converter.representative_dataset = samples(inputs)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8, tf.lite.OpsSet.TFLITE_BUILTINS]


FORMS = {"dynamic": dynamic, "f16": f16, "uint8": uint8, "int16": int16}
