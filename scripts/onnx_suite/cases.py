"""The tests that the `onnx` package carries, written out once as folders.

::

    <name>/model.onnx
    <name>/case.json      name, kind, op, opset, rtol, atol and
                          sets: [{inputs: {name: value}, outputs: [[name, value], ...]}, ...]
    <name>/*.npy          the tensors that the values name

`index.json` beside the folders lists them and says which `onnx` they came from; another version writes them anew.
"""

import json
import re
import shutil
import warnings
from pathlib import Path

import onnx
import onnx.backend.test as backend_test
from onnx import numpy_helper
from onnx.backend.test import loader
from onnx.backend.test.runner import Runner

from . import values

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "light")
FORM = 1  # of the folders; another number writes them anew


def collect(keep):
    """{name: case} of all tests, from `keep` where they lie there already."""
    index = keep / "index.json"
    wanted = {"onnx": onnx.__version__, "form": FORM}
    if index.exists():
        found = json.loads(index.read_text())
        if found["from"] == wanted:
            return found["cases"]
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    cases = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests overflow and divide by zero on purpose
        for kind in KINDS:
            for name, model, sets, rtol, atol in light() if kind == "light" else packaged(kind):
                cases[name] = write(keep / name, name, kind, model, sets, rtol, atol)
    for name, case in cases.items():
        origin = cases.get(re.sub(r"_expanded.*$", "", name), case)
        case["op"] = origin["nodes"][0] if len(origin["nodes"]) == 1 else f"({case['kind']})"
    index.write_text(json.dumps({"from": wanted, "cases": cases}))
    return cases


def packaged(kind):
    """(name, model, data sets, rtol, atol) of one kind of tests."""
    for test in loader.load_model_tests(kind=kind):
        if test.model is not None:
            infos = fed(test.model, len(test.data_sets[0][0]))
            sets = [({i.name: values.value(v) for i, v in zip(infos, ins)},
                     [(o.name, values.value(v)) for o, v in zip(test.model.graph.output, outs)]) for ins, outs in test.data_sets]
            yield test.name, test.model, sets, test.rtol, test.atol
        elif test.model_dir:
            folder = Path(test.model_dir)
            model = onnx.load(folder / "model.onnx")
            sets = [read_set(model, data) for data in sorted(folder.glob("test_data_set_*"))]
            yield test.name, model, sets, test.rtol, test.atol


def read_set(model, folder):
    count = len(list(folder.glob("input_*.pb")))
    inputs = {i.name: values.read_proto(folder / f"input_{k}.pb", i) for k, i in enumerate(fed(model, count))}
    outputs = [(o.name, values.read_proto(folder / f"output_{k}.pb", o)) for k, o in enumerate(model.graph.output)]
    return inputs, outputs


def light():
    """Whole networks whose weights are filled by ConstantOfShape; the inputs are generated."""
    for file in sorted((Path(backend_test.__file__).parent / "data" / "light").glob("*.onnx")):
        model = onnx.load(file)
        inputs = {i.name: values.tensor(Runner.generate_dummy_data(i, seed=0, name=file.stem, random=False))
                  for i in fed(model, None)}
        outputs = []
        for k, o in enumerate(model.graph.output):
            raw = (file.parent / f"{file.stem}_output_{k}.pb").read_bytes()
            outputs.append((o.name, values.tensor(numpy_helper.to_array(onnx.TensorProto.FromString(raw)))))
        yield f"test_{file.stem}", model, [(inputs, outputs)], 2e-3, 1e-5


def fed(model, count):
    """The inputs a caller gives: old models declare their weights as inputs as well."""
    weights = {w.name for w in model.graph.initializer} | {w.values.name for w in model.graph.sparse_initializer}
    free = [i for i in model.graph.input if i.name not in weights]
    return list(model.graph.input) if count == len(model.graph.input) else free


def write(folder, name, kind, model, sets, rtol, atol):
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    entries = []
    for s, (inputs, outputs) in enumerate(sets):
        entries.append({
            "inputs": {n: values.save(folder, f"in_{s}_{i}", v) for i, (n, v) in enumerate(inputs.items())},
            "outputs": [[n, values.save(folder, f"out_{s}_{i}", v)] for i, (n, v) in enumerate(outputs)]})
    versions = [v.version for v in model.opset_import if v.domain in ("", "ai.onnx")]
    case = {"name": name, "kind": kind, "nodes": [n.op_type for n in model.graph.node][:2],
            "opset": max(versions, default=None), "rtol": rtol, "atol": atol, "sets": entries}
    (folder / "case.json").write_text(json.dumps(case, indent=1))
    return case
