"""Every case of crates/fe-paddle/tests/fixtures through Carafe's converter and OpenVINO.

    cases.py CARAFE FILE.npz ...

Prints how many agree, and a line for each that does not. One process for a few files: what OpenVINO dies of ends only that one.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import openvino

TOLERANCE = 1e-3  # of the largest value of an output; OpenVINO's own kernels round in other ways than Paddle's


def difference(wanted, found):
    if wanted.shape != found.shape:
        return f"shape {found.shape}, expected {wanted.shape}"
    if wanted.size == 0:
        return None
    limits = dict(nan=0.0, posinf=1e30, neginf=-1e30)
    a, b = (np.nan_to_num(v.astype("float64"), **limits) for v in (wanted, found))
    largest = np.abs(np.where(np.abs(a) < 1e30, a, 0)).max()
    error = np.abs(a - b).max() / max(largest, 1e-9)
    return None if error <= TOLERANCE else f"differs by {error:.1e}"


def run(core, carafe, arrays, name, is_json):
    """What is wrong with a case, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / ("m.json" if is_json else "m.pdmodel")
        program.write_bytes(arrays[f"{name}:model"].tobytes())
        if f"{name}:weights" in arrays.files:
            program.with_suffix(".pdiparams").write_bytes(arrays[f"{name}:weights"].tobytes())
        xml = Path(folder) / "m.xml"
        done = subprocess.run([carafe, "convert", program, "-o", xml, "--compress_to_fp16=False"], capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip()[-200:]
        try:
            model = core.compile_model(core.read_model(xml), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
            found = model([arrays[f"{name}:in:{i}"] for i in range(len(model.inputs))])
        except Exception as e:
            return str(e).replace("\n", " ")[:200]
        pairs = ((arrays[f"{name}:out:{i}"], found[o]) for i, o in enumerate(model.outputs))
        return next((text for text in (difference(w, f) for w, f in pairs) if text), None)


def main(carafe, *files):
    core = openvino.Core()
    total, bad = 0, []
    for file in files:
        arrays = np.load(file)
        for name in sorted({key.split(":")[0] for key in arrays.files}):
            total += 1
            wrong = run(core, carafe, arrays, name, "json" in Path(file).parts)
            bad += [(Path(file).parent.name, Path(file).stem, name, wrong)] if wrong else []
    print(f"{total - len(bad)} of {total} agree")
    for line in bad:
        print("  " + " ".join(map(str, line)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
