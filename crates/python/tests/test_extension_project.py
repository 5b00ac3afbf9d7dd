"""`carafe extension new --language python` writes a project whose tests pass, for every format."""

import subprocess
import sys

FORMATS = ["onnx", "tf", "tflite", "caffe", "mxnet", "kaldi", "paddle"]


def carafe(*words):
    return subprocess.run([sys.executable, "-m", "carafe", *words], capture_output=True, text=True, check=False)


def test_a_project_for_every_format_passes_its_tests(tmp_path):
    parts = [f"--{name}-ext" for name in FORMATS]
    attributes = ["--attribute", "beta:float=1", "--attribute", "order:int=2", "--attribute", "mode:string=soft"]
    made = carafe("extension", "new", "SoftSwish", *parts, *attributes, "--language", "python", "-o", str(tmp_path / "project"))
    assert made.returncode == 0, made.stderr
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", str(tmp_path / "project")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert f"{len(FORMATS) + 1} passed" in ran.stdout


def test_an_operation_on_whole_tensors_passes_too(tmp_path):
    words = ["Mix", "--whole", "--inputs", "a,b", "--outputs", "y,z", "--onnx-ext", "--domain", "acme", "--language", "python"]
    made = carafe("extension", "new", *words, "-o", str(tmp_path / "project"))
    assert made.returncode == 0, made.stderr
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", str(tmp_path / "project")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_kernels_are_refused(tmp_path):
    made = carafe("extension", "new", "Mix", "--cpu-ext", "--language", "python", "-o", str(tmp_path / "project"))
    assert made.returncode == 2 and "no kernels" in made.stderr
    assert not (tmp_path / "project").exists()
