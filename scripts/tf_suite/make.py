"""Writes networks of `nets` in every format, each with its reference outputs:

    DIR/NET/saved_model/          as model.export writes it: functions, captured variables, batch of any size
    DIR/NET/frozen.pb             variables as constants, functions inlined
    DIR/NET/float.tflite          float32
    DIR/NET/int8.tflite           weights, activations, inputs and outputs in int8
    DIR/NET/model.onnx            the twin for speed, through tf2onnx
    DIR/NET/*.npz                 see `reference`
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

from . import reference
from .nets import NETS, NO_INT8, SEED

BATCH = 1


def make(name, folder):
    build, inputs = NETS[name]
    place = Path(folder) / name
    place.mkdir(parents=True, exist_ok=True)
    tf.keras.utils.set_random_seed(SEED)
    model = build()
    feed = inputs(BATCH)
    steps = {"saved_model": saved_model, "frozen.pb": frozen, "float.tflite": lite, "int8.tflite": lite_int8, "model.onnx": onnx_twin}
    for file, step in steps.items():
        target = place / file
        if reference.npz_of(target).exists() or (name in NO_INT8 and step is lite_int8):
            continue
        try:
            step(target, model, feed, inputs)
        except Exception as problem:  # a peer that cannot write a format leaves the others alone
            print(f"{name}/{file}: {type(problem).__name__}: {str(problem).splitlines()[0][:300] if str(problem) else ''}", flush=True)
            continue
        print(f"{name}/{file}: written", flush=True)


def saved_model(target, model, feed, _):
    model.export(str(target), verbose=False)
    reference.write(target, *reference.saved_model(target, feed))


def signature(target):
    return tf.saved_model.load(str(target.with_name("saved_model")))


def frozen(target, model, feed, _):
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
    loaded = signature(target)
    fixed = convert_variables_to_constants_v2(loaded.signatures["serving_default"])
    target.write_bytes(fixed.graph.as_graph_def().SerializeToString())
    names = [t.name for t in fixed.inputs if t.dtype != tf.resource], [t.name for t in fixed.outputs]
    reference.write(target, *reference.graph(target, feed, *names))


def converter(model, feed):
    """Of a function with a batch of fixed size: lists of tensors in loops need one."""
    call = tf.function(lambda x: model(x, training=False)).get_concrete_function(tf.TensorSpec(feed[""].shape, feed[""].dtype, name="x"))
    found = tf.lite.TFLiteConverter.from_concrete_functions([call])
    found._experimental_lower_tensor_list_ops = True
    return found


def lite(target, model, feed, _):
    target.write_bytes(converter(model, feed).convert())
    reference.write(target, *reference.tflite(target, feed))


def lite_int8(target, model, feed, inputs):
    found = converter(model, feed)
    found.optimizations = [tf.lite.Optimize.DEFAULT]
    samples = inputs(4)

    def batches():
        for i in range(4):
            yield [samples[""][i:i + 1]]
    found.representative_dataset = batches
    found.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    if feed[""].dtype == np.float32:
        found.inference_input_type = tf.int8
    found.inference_output_type = tf.int8
    target.write_bytes(found.convert())
    reference.write(target, *reference.tflite(target, feed))


def onnx_twin(target, model, feed, _):
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "saved_model"
        shutil.copytree(target.with_name("saved_model"), source)
        let_inline(source / "saved_model.pb")
        command = [sys.executable, "-m", "tf2onnx.convert", "--saved-model", source, "--output", target, "--opset", "17"]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    wanted, found = reference.read(target.with_name("saved_model"))
    import onnx
    model = onnx.load(str(target))
    net = model.graph
    if spell_erfc(onnx, net):
        onnx.save(model, str(target))
    reference.write(target, dict(zip([i.name for i in net.input], wanted.values(), strict=True)),
                    dict(zip([o.name for o in net.output], found.values(), strict=True)))


def let_inline(file):
    """Calls that XLA compiles are not inlined by tf2onnx; without the mark they are."""
    from tensorflow.core.protobuf import saved_model_pb2
    model = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    for meta in model.meta_graphs:
        library = meta.graph_def.library.function
        for node in [*meta.graph_def.node, *(n for f in library for n in f.node_def), *library]:
            node.attr.pop("_XlaMustCompile", None)
    file.write_bytes(model.SerializeToString())


def spell_erfc(onnx, net):
    """ONNX has no Erfc, which tf2onnx writes nevertheless: 1 - Erf(x)."""
    old = [n for n in net.node if n.op_type == "Erfc"]
    if old:
        net.initializer.append(onnx.numpy_helper.from_array(np.array(1, np.float32), "erfc_one"))
    for node in old:
        at = list(net.node).index(node)
        inner = f"{node.output[0]}/erf"
        made = [onnx.helper.make_node("Erf", node.input, [inner]), onnx.helper.make_node("Sub", ["erfc_one", inner], node.output)]
        net.node.remove(node)
        for i, new in enumerate(made):
            net.node.insert(at + i, new)
    return old
