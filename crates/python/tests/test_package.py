"""The package as it is installed: the command, the stubs, the page about it."""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import carafe


def test_the_command_is_the_same_program():
    for command in ([shutil.which("carafe") or sys.executable, "--version"], [sys.executable, "-m", "carafe", "--version"]):
        if command[0] == sys.executable and "-m" not in command:
            continue
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and "carafe" in done.stdout
    done = subprocess.run([sys.executable, "-m", "carafe", "nonsense"], capture_output=True, text=True)
    assert done.returncode == 2 and "nonsense" in done.stderr


def test_every_public_name_stands_in_the_stub():
    folder = Path(carafe.__file__).parent
    assert (folder / "py.typed").exists()
    stub = (folder / "__init__.pyi").read_text()
    names = [name for name in vars(carafe) if not name.startswith("_") and not inspect.ismodule(getattr(carafe, name))]
    assert [name for name in names if not re.search(rf"\b{name}\b", stub)] == []


def test_blocks_of_the_page_run(tmp_path, monkeypatch):
    page = Path(__file__).parents[3] / "docs" / "python.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIGITS", str(page.parents[1] / "demo" / "digits" / "digits.xml"))
    assert blocks
    space = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), space)


def test_there_is_no_cmake_of_openvino():
    assert carafe.utils.get_cmake_path() == ""


def test_modules_that_come_later_are_there():
    assert all(getattr(carafe, name) for name in carafe._LATER)


def test_a_program_that_infers_imports_no_graph():
    code = "import sys, carafe; print([m for m in ('carafe._graph.model', 'carafe.properties', 'carafe.opset1', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_public_name_is_there():
    for name in carafe.__all__:
        assert getattr(carafe, name) is not None
    assert {"Model", "properties", "Core", "opset13"} <= set(dir(carafe))


def test_the_c_library_is_not_in_the_package_and_can_be_named(tmp_path):
    install = [sys.executable, "-m", "carafe", "c-api", "install", tmp_path / "c"]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode != 0
    for part in ("the Python package comes without it", "cargo build --profile library -p carafe-capi", "--library FILE"):
        assert part in done.stderr
    library = tmp_path / "libopenvino_c.so"
    library.write_bytes(b"a library")
    done = subprocess.run([*install, "--library", library], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c" / "lib" / "libopenvino_c.so").read_bytes() == b"a library"
    assert (tmp_path / "c" / "include" / "openvino" / "c" / "openvino.h").exists()
