"""What TensorFlow and the TFLite interpreter compute for given inputs, and the .npz beside a model.

`X.npz` beside a model X holds `in:NAME` and `out:NAME` for every input and output, by the names that X itself uses: the
signature's for a SavedModel, `node:port` for a frozen graph, the tensor's for TFLite. `xnnpack:NAME` and `plain:NAME` are what
the other kernels of the TFLite interpreter give: how far these are from `out:NAME` is what the model makes of rounding.
"""

import multiprocessing
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from pathlib import Path

import numpy as np

from . import hybrid

# Prefix of entries: name of the kernels.
OTHERS = {"xnnpack:": "AUTO", "plain:": "BUILTIN_REF"}


def npz_of(model):
    """The file of inputs and outputs beside a model file or folder."""
    return model.with_name(model.name + ".npz")


def write(model, feed, found):
    both = {**{f"in:{n}": v for n, v in feed.items()}, **{f"out:{n}": v for n, v in found.items()}}
    np.savez(npz_of(model), **{n: v.astype("S") if v.dtype.kind == "O" else v for n, v in both.items()})


def read(model):
    with np.load(npz_of(model), allow_pickle=False) as file:
        return tuple({n[len(k):]: file[n] for n in file.files if n.startswith(k)} for k in ("in:", "out:"))


def others(model):
    """Outputs of the other kernels of the interpreter, where they were written: a list of {name: array}."""
    with np.load(npz_of(model), allow_pickle=False) as file:
        sets = [{n[len(k):]: file[n] for n in file.files if n.startswith(k)} for k in OTHERS]
    return [s for s in sets if s]


def add_others(model):
    """Writes what the other kernels give for the inputs of a .tflite file."""
    with np.load(npz_of(model), allow_pickle=False) as file:
        arrays = {n: file[n] for n in file.files}
    feed, _ = read(model)
    for prefix, kind in OTHERS.items():
        # Some kernels abort on some models, and the process with them.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                found = pool.submit(tflite, model, feed, kind).result()[1]
            except (BrokenExecutor, RuntimeError, ValueError):
                continue
        arrays |= {prefix + n: v for n, v in found.items()}
    np.savez(npz_of(model), **arrays)


def saved_model(folder, feed=None, signature="serving_default", tags=("serve",)):
    """Inputs and outputs of a signature. `feed` may have a single value under the name ""."""
    import tensorflow as tf
    with tf.Graph().as_default() as g, tf.compat.v1.Session(graph=g) as session:
        meta = tf.compat.v1.saved_model.load(session, list(tags), str(folder))
        chosen = meta.signature_def[signature]

        def spec(info):
            open_rank = info.tensor_shape.unknown_rank
            return [1] if open_rank else [d.size for d in info.tensor_shape.dim], tf.as_dtype(info.dtype).as_numpy_dtype
        feed = named(feed, chosen.inputs, spec)
        outputs = {n: info.name for n, info in sorted(chosen.outputs.items())}
        found = session.run(list(outputs.values()), {chosen.inputs[n].name: v for n, v in feed.items()})
    return feed, dict(zip(outputs, found))


def graph(file, feed, inputs, outputs):
    """A frozen graph; names are `node:port`."""
    import tensorflow as tf
    definition = tf.compat.v1.GraphDef()
    definition.ParseFromString(Path(file).read_bytes())
    with tf.Graph().as_default() as g:
        tf.import_graph_def(definition, name="")
        feed = feed if set(feed) == set(inputs) else dict(zip(inputs, feed.values(), strict=True))
        with tf.compat.v1.Session(graph=g) as session:
            found = session.run(outputs, {n: v for n, v in feed.items()})
    return feed, dict(zip(outputs, found))


def tflite(file, feed=None, kind="BUILTIN_WITHOUT_DEFAULT_DELEGATES"):
    """Inputs and outputs of the main subgraph. A float input of a quantized tensor is quantized first. Unless `kind` says
    which, the built-in kernels run without a delegate: they are the judge of integer models. Weights of operators on floats
    are widened (`hybrid`)."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    kind = OpResolverType[kind]
    run = Interpreter(model_content=hybrid.widened(Path(file).read_bytes()), experimental_op_resolver_type=kind, num_threads=1)
    details = {d["name"]: d for d in run.get_input_details()}
    feed = named(feed, details, lambda d: (list(d["shape_signature"]) if len(d["shape_signature"]) else list(d["shape"]), d["dtype"]))
    for n, d in details.items():
        feed[n] = quantized(feed[n], d)
        if list(d["shape"]) != list(feed[n].shape):
            run.resize_tensor_input(d["index"], feed[n].shape)
    run.allocate_tensors()
    for n, d in details.items():
        run.set_tensor(d["index"], feed[n])
    run.invoke()
    return feed, {d["name"]: run.get_tensor(d["index"]) for d in run.get_output_details()}


def quantized(value, detail):
    scale, zero = detail["quantization"]
    if value.dtype.kind == "f" and np.dtype(detail["dtype"]).kind in "iu" and scale:
        limits = np.iinfo(detail["dtype"])
        return np.clip(np.round(value / scale) + zero, limits.min, limits.max).astype(detail["dtype"])
    return value.astype(detail["dtype"])


def named(feed, wanted, spec):
    """The feed by the model's names; without one, a signal."""
    if feed and set(feed) == {""} and len(wanted) == 1:
        return {n: feed[""] for n in wanted}
    if feed:
        return dict(feed)
    random = np.random.default_rng(7)
    made = {}
    for n, w in wanted.items():
        shape, dtype = spec(w)
        shape = [int(d) if d and d > 0 else 1 for d in shape]
        made[n] = (signal(shape) if np.dtype(dtype).kind in "fiu" and np.prod(shape) > 64 else random.integers(0, 2, shape)).astype(dtype)
    return made


def signal(shape, high=1.0):
    """Something that a trained network has an answer to: a picture of 0..high, or a tone."""
    from onnx_suite.models import picture, tone
    if len(shape) == 4 and shape[3] in (1, 3):
        drawn = picture(*shape[1:3]) * high
        return np.broadcast_to(drawn if shape[3] == 3 else drawn.mean(-1, keepdims=True), shape)
    return tone(int(np.prod(shape))).reshape(shape) * high
