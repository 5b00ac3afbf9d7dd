"""OpenVINO's answers: the CPU device first, constant folding as the second opinion.

Everything here runs in forked worker processes (`workers`), because a bad kernel may end the process it runs
in; the parent only imports OpenVINO and never compiles a model. A worker that dies costs one case,
which is recorded with the stage it died in.

The second opinion: all inputs of the model are replaced by constants and OpenVINO's own constant
folding evaluates the graph with the reference kernels that the operations carry. Not every
operation carries one; then there is no second opinion, unless the case brings its own.

The CPU device is asked twice, the second time with new memory filled with a pattern. An answer that
changes is no answer: some kernels leave rows unwritten or read past their input.
"""

import ctypes
import shutil
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.passes

from . import dtypes, store
from .case import Graph, ov_type
from .compare import difference
from .workers import first_words

# The default precision of the CPU device may be bf16; the comparison wants f32 everywhere.
CPU_CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}

_core = None


def version():
    return ov.get_version()


def core():
    global _core
    if _core is None:
        _core = ov.Core()
    return _core


# ---------------------------------------------------------------------------------------------
# Tensors in and out
# ---------------------------------------------------------------------------------------------

def to_tensor(dtype, value):
    """A .npy array to an OpenVINO tensor of the declared element type."""
    if dtype == "bf16":
        return ov.Tensor(dtypes.bf16_bits(value).reshape(value.shape), ov.Shape(list(value.shape)), ov.Type.bf16)
    if dtypes.travels_as_f32(dtype):
        raise ValueError(f"inputs of element type {dtype} are not supported")
    return ov.Tensor(np.array(value, order="C"))


def from_tensor(tensor):
    """(element type, array as it travels in .npy) of an OpenVINO tensor."""
    dtype = tensor.get_element_type().get_type_name()
    shape = tuple(tensor.get_shape())
    if dtype == "string":
        return dtype, np.array(tensor.str_data, dtype=np.str_).reshape(shape)
    if dtypes.travels_as_f32(dtype):
        return dtype, dtypes.decode(dtype, raw_bytes(tensor), shape)
    return dtype, np.array(tensor.data, copy=True).reshape(shape)


def raw_bytes(tensor):
    if tensor.get_byte_size() == 0:
        return b""
    return np.ascontiguousarray(tensor.data).view(np.uint8).tobytes()


# ---------------------------------------------------------------------------------------------
# The work of a worker
# ---------------------------------------------------------------------------------------------

def write_model(case, folder):
    """Builds the model of a case, saves it as IR and writes the inputs; returns {name: (dtype, file)}."""
    xml = folder / "model.xml"
    if case.text:
        text, weights, inputs = case.text(case.rng())
        xml.write_text(text)
        (folder / "model.bin").write_bytes(weights)
    else:
        graph = Graph(case.rng())
        model = graph.model(case.build(graph))
        ov.save_model(model, str(xml), compress_to_fp16=case.fp16)
        inputs = graph.inputs
        if case.rewrite:
            xml.write_text(case.rewrite(xml.read_text()))
    files = store.save_arrays(folder, "in", [(n, v) for n, (_, v) in inputs.items()])
    return {name: (dtype, file) for (name, (dtype, _)), file in zip(inputs.items(), files)}


def run_cpu(xml, inputs, repeat):
    """Runs an IR on the CPU device; `inputs` is {name: (dtype, array)}. Returns [(name, dtype, array)]."""
    compiled = core().compile_model(str(xml), "CPU", CPU_CONFIG)
    request = compiled.create_infer_request()
    tensors = {name: to_tensor(dtype, value) for name, (dtype, value) in inputs.items()}
    for _ in range(repeat):
        request.infer(tensors)
    out = []
    for i, port in enumerate(compiled.outputs):
        names = sorted(port.get_names())
        dtype, array = from_tensor(request.get_output_tensor(i))
        out.append((names[0] if names else f"output{i}", dtype, array))
    return out


def run_folding(xml, inputs):
    """The same by constant folding; None when some operation has no reference evaluation."""
    model = core().read_model(str(xml))
    if model.get_sinks():
        return None
    for parameter in model.get_parameters():
        names = parameter.output(0).get_names()
        dtype, value = next(v for n, v in inputs.items() if n in names or n == parameter.get_friendly_name())
        constant = ov.op.Constant(to_tensor(dtype, value))
        for target in parameter.output(0).get_target_inputs():
            target.replace_source_output(constant.output(0))
    model.validate_nodes_and_infer_types()
    manager = ov.passes.Manager()
    manager.register_pass(ov.passes.ConstantFolding())
    manager.run_passes(model)
    out = []
    for result in model.get_results():
        node = result.input_value(0).get_node()
        if node.get_type_name() != "Constant":
            return None
        dtype, array = from_tensor(node.get_tensor_view())
        names = sorted(result.output(0).get_names())
        out.append((names[0] if names else f"output{len(out)}", dtype, array))
    return out


def expect(case, folder, key, tell, cpu_problem=None):
    """Writes the whole directory of a case; returns the record kept in case.json.

    `key` is stored with it to tell later whether the directory is still valid. With `cpu_problem` (the CPU device
    ended the process before) only the reference is asked.
    """
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tell("build")
    inputs = write_model(case, folder)
    loaded = {n: (d, np.load(folder / f, allow_pickle=False)) for n, (d, f) in inputs.items()}
    record = {
        "op": case.op, "version": case.version, "name": case.name, "family": case.family,
        "inputs": {n: f for n, (_, f) in inputs.items()},
        "input_types": {n: d for n, (d, _) in inputs.items()},
        "outputs": [], "rtol": case.rtol, "atol": case.atol, "repeat": case.repeat, "judge": case.judge,
        "cpu": cpu_problem or ("ok" if case.cpu else "not asked"), "known": case.known, "trust": case.trust, "fixture": case.fixture, "key": key,
    }
    tell("cpu")
    cpu = None
    try:
        if cpu_problem is None and case.cpu:
            cpu = run_cpu(folder / "model.xml", loaded, case.repeat)
            fill_new_memory(0x5A)
            change = difference(record, cpu, run_cpu(folder / "model.xml", loaded, case.repeat))
            if change:
                cpu, record["cpu"] = None, f"unstable, depends on what was in memory: {change}"
    except Exception as problem:  # a refusal of OpenVINO is a result, not a failure of this program
        record["cpu"] = f"error: {first_words(problem)}"
    if cpu is not None:
        record["outputs"] = entries(folder, "out", cpu)
    else:
        record["readable"] = is_readable(folder / "model.xml")
    store.write_json(folder / "case.json", record)
    tell("reference")
    reference = None
    try:
        if case.reference:
            reference = own_reference(case, loaded, cpu)
        elif case.repeat == 1:
            reference = run_folding(folder / "model.xml", loaded)
    except Exception as problem:
        record["folding"] = f"error: {first_words(problem)}"
    if reference is not None:
        record["reference"] = entries(folder, "ref", reference)
        if cpu is not None:
            record["cpu_leaves_reference"] = difference(record, reference, cpu)
    store.write_json(folder / "case.json", record)
    return record


def fill_new_memory(byte):
    """Makes the C library fill what it allocates: a kernel that reads what it never wrote gives itself away."""
    try:
        ctypes.CDLL(None).mallopt(-6, byte)  # M_PERTURB
    except (AttributeError, OSError):
        pass  # not the GNU C library


def is_readable(xml):
    """OpenVINO writes a few files that it cannot read itself: constants without elements, for one."""
    try:
        core().read_model(str(xml))
    except Exception:
        return False
    return True


def own_reference(case, inputs, cpu):
    arrays = case.reference(*[v for _, v in inputs.values()])
    if cpu is None:
        arrays = [narrow(a) for a in arrays]
        return [(f"y{i}", dtypes.name_of(a.dtype), a) for i, a in enumerate(arrays)]
    return [(n, d, np.asarray(a).astype(c.dtype)) for (n, d, c), a in zip(cpu, arrays)]


def narrow(array):
    """numpy computes in f64 what the cases ask for in f32."""
    array = np.asarray(array)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def entries(folder, prefix, outputs):
    files = store.save_arrays(folder, prefix, [(f"{i}_{n}", a) for i, (n, _, a) in enumerate(outputs)])
    return [{"name": n, "file": f, "element_type": d} for (n, d, _), f in zip(outputs, files)]


def rerun(record, folder, xml):
    """Direction B: runs another IR on the inputs of a case; None when it can only be read."""
    folder = Path(folder)
    if not record["outputs"]:
        # OpenVINO could not run the original either; that it reads the file is all there is to check.
        if record["readable"]:
            core().read_model(str(xml))
        return None
    inputs = {n: (record["input_types"][n], np.load(folder / f, allow_pickle=False))
              for n, f in record["inputs"].items()}
    return run_cpu(xml, inputs, record["repeat"])
