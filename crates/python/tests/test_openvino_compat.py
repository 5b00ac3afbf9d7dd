"""Carafe under the name of OpenVINO. Each check runs in an interpreter of its own: what is imported stays."""

import subprocess
import sys
import textwrap


def run(code, *words):
    """What a program printed; `words` stand between the interpreter and it."""
    done = subprocess.run([sys.executable, *words, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


INSTALL = "import carafe.openvino_compat as compat; compat.install(); compat.install()\n"


def test_openvino_is_carafe():
    text = run(INSTALL + "import openvino as ov, carafe\nprint(ov.Core is carafe.Core, ov.__name__, ov.__version__.split('-')[0])")
    assert text.split()[:2] == ["True", "openvino"] and text.split()[2].startswith("2026.4")


def test_its_modules_are_there():
    names = "opset8 opset16 op properties properties.hint preprocess passes frontend frontend.onnx utils exceptions runtime runtime.opset8".split()
    code = INSTALL + "import importlib\nfor name in %r: importlib.import_module('openvino.' + name)\n" % names
    run(code + "from openvino.runtime import Core, opset8\nimport openvino.properties.hint as hints\nfrom openvino.frontend.onnx import OpExtension")


def test_the_distribution_has_a_version():
    assert run(INSTALL + "import importlib.metadata as m; print(m.version('openvino'), m.distribution('openvino').name)").split() == ["2026.4.0", "openvino"]


def test_what_is_missing_is_named():
    code = """
        import openvino as ov
        for what in (lambda: ov.VAContext, lambda: __import__("openvino.torch"), lambda: ov.opset8.no_such_op):
            try:
                what()
            except NotImplementedError as error:
                print(error)
        try:
            import openvino.torch
        except ImportError:
            print("no torch")
        print(hasattr(ov, "no_such_name"))
        """
    text = run(INSTALL + textwrap.dedent(code)).splitlines()
    assert "openvino.VAContext" in text[0] and "openvino.torch" in text[1] and "no_such_op" in text[2]
    assert text[3:] == ["no torch", "False"]


def test_it_refuses_when_the_original_is_there():
    code = """
        import sys, types
        sys.modules["openvino"] = types.ModuleType("openvino")
        import carafe.openvino_compat
        try:
            carafe.openvino_compat.install()
        except RuntimeError as error:
            print(error)
        """
    assert "already imported" in run(code)


def test_a_script_runs_unchanged(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import sys, helper\nfrom openvino import Core\nprint(__name__, sys.argv[1:], helper.VALUE, Core.__module__.split('.')[0])\n")
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    words = [sys.executable, "-m", "carafe.openvino_compat", str(script), "a", "--b"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[0] == "__main__ ['a', '--b'] 7 carafe", done.stderr


def test_a_script_that_fails_fails(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("import sys; sys.exit(3)\n")
    assert subprocess.run([sys.executable, "-m", "carafe.openvino_compat", str(script)], check=False).returncode == 3
