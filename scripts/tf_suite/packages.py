"""Trained models out of public packages: which inputs suit them. The models are not ours and are never committed.

`references(DIR)` writes the .npz beside every model under DIR that has none: SavedModel folders, frozen graphs listed in
GRAPHS, .tflite files. Inputs are a drawn picture, a tone, or text. Those of .tflite files get the outputs of the
interpreter's other kernels too.
"""

from pathlib import Path

import numpy as np

from . import reference

# Frozen graphs, by a part of the path: inputs with their shapes, the largest value of a signal, outputs.
GRAPHS = {
    "graph_opt.pb": ({"image:0": [1, 368, 432, 3]}, 255.0, ["Openpose/concat_stage7:0"]),
    "precise/": ({"net_input:0": [1, 29, 13]}, 1.0, ["net_output:0"]),
}
# SavedModels whose inputs are not signals, by a part of the path.
FEEDS = {"guesslang": lambda: {"inputs": np.array([TEXT.encode()])}}
# Sizes of inputs that a .tflite file leaves open or gives as 1, by its name: {input: shape}.
SIZES = {"melspectrogram.tflite": {"input": [1, 1280]}, "basic-pitch": {"input_2": [1, 43844, 1]}}
SIGNATURES = {}
TEXT = """
use std::collections::HashMap;

fn main() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in std::env::args().skip(1) {
        *counts.entry(word).or_default() += 1;
    }
    println!("{counts:?}");
}
"""


def references(folder):
    """Writes what is missing; prints what TensorFlow itself cannot run."""
    folder = Path(folder)
    for file in sorted(folder.rglob("*.hdf5")):
        export(file, file.with_suffix(""))
    jobs = [(p.parent, saved_model) for p in sorted(folder.rglob("saved_model.pb"))]
    jobs += [(p, graph) for p in sorted(folder.rglob("*.pb")) if hint(GRAPHS, p) and p.is_file()]
    jobs += [(p, tflite) for p in sorted(folder.rglob("*.tflite")) if p.is_file()]
    for model, job in jobs:
        try:
            if not reference.npz_of(model).exists():
                reference.write(model, *job(model))
            elif job is not tflite or reference.others(model):
                continue
            if job is tflite:
                reference.add_others(model)
            print(f"{model.relative_to(folder)}: reference written", flush=True)
        except Exception as problem:  # what the peer refuses is reported, the others go on
            print(f"{model.relative_to(folder)}: {type(problem).__name__}: {str(problem).strip().splitlines()[0][:200]}", flush=True)


def export(keras, target):
    """A Keras file as the SavedModel that this Keras makes of it."""
    if not target.exists():
        import tensorflow as tf
        tf.keras.models.load_model(keras, compile=False).export(str(target), verbose=False)


def hint(table, model):
    return next((v for part, v in table.items() if part in str(model)), None)


def sized(sizes, high=1.0):
    return {n: reference.signal(shape, high).astype(np.float32) for n, shape in sizes.items()}


def saved_model(model):
    feed, sizes = hint(FEEDS, model), hint(SIZES, model)
    return reference.saved_model(model, feed() if feed else sized(sizes) if sizes else None,
                                 signature=hint(SIGNATURES, model) or "serving_default")


def graph(model):
    inputs, high, outputs = hint(GRAPHS, model)
    return reference.graph(model, sized(inputs, high), list(inputs), outputs)


def tflite(model):
    sizes = SIZES.get(model.name)
    return reference.tflite(model, {"": next(iter(sized(sizes).values()))} if sizes else None)
