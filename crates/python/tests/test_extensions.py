"""Extensions that are written in Python."""

import threading

import numpy as np
import pytest

import carafe as ov
from carafe import frontend, opset13
from carafe.frontend import kaldi, onnx

X = np.array([[-2.0, 0.5, 3.0]], np.float32)


class Shift(ov.Op):
    """Adds an attribute to its input."""

    class_type_info = ov.DiscreteTypeInfo("Shift", "acme")

    def __init__(self, inputs=None, **attributes):
        self.attributes = {"by": 1.0, **attributes}
        super().__init__(self, inputs)

    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, new_inputs):
        return Shift(new_inputs, **self.attributes)

    def visit_attributes(self, visitor):
        visitor.on_attributes(self.attributes)
        return True

    def has_evaluate(self):
        return True

    def evaluate(self, outputs, inputs):
        outputs[0].shape = inputs[0].shape
        outputs[0].data[...] = inputs[0].data + self.attributes["by"]
        return True


def onnx_model(path, body, shape="1,3", opsets='"": 17, "acme": 1'):
    path.write_text(f"<ir_version: 8, opset_import: [{opsets}]>\nnet (float[{shape}] x) => (float[{shape}] y) {{ {body} }}\n")
    return path


def result(core, model, *inputs):
    return list(core.compile_model(model, "CPU")(list(inputs or [X])).values())[0]


def shifted(by=1.0):
    x = opset13.parameter([1, 3], np.float32, name="x")
    node = Shift([x], by=by)
    node.set_friendly_name("the_shift")
    return ov.Model([node], [x], "shifted")


def test_an_operation_runs_in_a_model_that_was_built():
    np.testing.assert_allclose(result(ov.Core(), shifted(2.0)), X + 2)


def test_an_operation_comes_back_from_a_file_with_its_attributes(tmp_path):
    ov.save_model(shifted(0.25), tmp_path / "m.xml", compress_to_fp16=False)
    core = ov.Core()
    core.add_extension(Shift)
    np.testing.assert_allclose(result(core, tmp_path / "m.xml"), X + 0.25)


def test_an_operation_without_an_extension_is_an_error_that_names_it(tmp_path):
    ov.save_model(shifted(), tmp_path / "m.xml")
    with pytest.raises(RuntimeError, match="Shift"):
        ov.Core().read_model(tmp_path / "m.xml")


def test_a_node_of_the_same_type_becomes_the_operation(tmp_path):
    core = ov.Core()
    core.add_extension(ov.OpExtension(Shift))
    model = onnx_model(tmp_path / "m.onnxtxt", "y = acme.Shift <by = 3.0> (x)")
    np.testing.assert_allclose(result(core, model), X + 3)


def test_what_is_no_operation_is_refused():
    class NeedsInputs(Shift):
        def __init__(self, inputs):
            super().__init__(inputs)

    class BadInfo(Shift):
        def get_type_info(self):
            return "BadInfo"

    core = ov.Core()
    for wrong, words in [
        (bool, "Unsupported data type : '<class 'bool'>'"),
        (NeedsInputs, "missing 1 required positional argument: 'inputs'"),
        (BadInfo, "must be an instance of DiscreteTypeInfo"),
    ]:
        with pytest.raises(RuntimeError) as error:
            core.add_extension(wrong)
        assert words in str(error.value)
    for wrong in (7, None):
        with pytest.raises(TypeError, match="is no extension"):
            core.add_extension(wrong)


def test_an_exception_of_an_operation_names_the_node_and_keeps_its_place():
    class Broken(Shift):
        class_type_info = ov.DiscreteTypeInfo("Broken", "acme")

        def clone_with_new_inputs(self, new_inputs):
            return Broken(new_inputs)

        def evaluate(self, outputs, inputs):
            raise ValueError("no numbers today")

    x = opset13.parameter([1, 3], np.float32, name="x")
    node = Broken([x])
    node.set_friendly_name("poor_node")
    with pytest.raises(RuntimeError) as error:
        result(ov.Core(), ov.Model([node], [x]))
    text = str(error.value)
    assert "poor_node" in text and "Broken" in text
    assert "ValueError: no numbers today" in text and "in evaluate" in text


def test_an_exception_in_shapes_names_the_node():
    class Shapeless(Shift):
        def validate_and_infer_types(self):
            raise KeyError("rank")

    with pytest.raises(KeyError):
        Shapeless([opset13.parameter([1, 3], np.float32)])


def test_eight_threads_run_an_operation_at_once():
    compiled = ov.Core().compile_model(shifted(1.0), "CPU")
    failures = []

    def work(k):
        request = compiled.create_infer_request()
        for i in range(20):
            found = list(request.infer([X * k + i]).values())[0]
            if not np.allclose(found, X * k + i + 1):
                failures.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_conversion_builds_what_it_likes(tmp_path):
    seen = []

    def convert(node):
        seen.append((node.get_op_type(), node.get_input_size(), node.get_input(0).get_partial_shape().to_string()))
        alpha = node.get_attribute("alpha", 1.0)
        assert node.get_attribute("absent", 5) == 5 and not node.has_attribute("beta")
        double = opset13.multiply(node.get_input(0), opset13.constant(np.float32(2 * alpha)))
        return [opset13.relu(double).output(0)]

    core = ov.Core()
    core.add_extension(onnx.ConversionExtension("Bend", convert))
    model = onnx_model(tmp_path / "m.onnxtxt", "y = acme.Bend <alpha = 2.0> (x)")
    np.testing.assert_allclose(result(core, model), np.maximum(X * 4, 0))
    assert seen[0] == ("Bend", 1, "[1,3]")


def test_a_conversion_sees_constants_as_values(tmp_path):
    def convert(node):
        assert node.get_input(1).get_node().get_type_name() == "Constant"
        low, high = node.get_values_from_const_input(1), node.get_values_from_const_input(2, dtype=np.float64)
        assert node.get_values_from_const_input(3, "nothing") == "nothing"
        return opset13.clamp(node.get_input(0), low, high).outputs()

    core = ov.Core()
    core.add_extension(frontend.ConversionExtension("Clip", convert))
    body = "low = Constant <value = float {-1.0}> () high = Constant <value = float {1.0}> () y = Clip (x, low, high)"
    np.testing.assert_allclose(result(core, onnx_model(tmp_path / "m.onnxtxt", body)), np.clip(X, -1, 1))


def test_a_conversion_may_use_an_operation_of_python(tmp_path):
    core = ov.Core()
    core.add_extension(frontend.ConversionExtension("Bump", lambda node: Shift([node.get_input(0)], by=9.0).outputs()))
    np.testing.assert_allclose(result(core, onnx_model(tmp_path / "m.onnxtxt", "y = acme.Bump (x)")), X + 9)


def test_a_conversion_may_pass_its_input_on(tmp_path):
    core = ov.Core()
    core.add_extension(frontend.ConversionExtension("Nothing", lambda node: [node.get_input(0)]))
    np.testing.assert_allclose(result(core, onnx_model(tmp_path / "m.onnxtxt", "y = acme.Nothing (x)")), X)


def test_an_exception_of_a_conversion_names_the_node(tmp_path):
    def convert(node):
        return node.get_attribute("gamma")

    core = ov.Core()
    core.add_extension(frontend.ConversionExtension("Bend", convert))
    with pytest.raises(RuntimeError) as error:
        core.read_model(onnx_model(tmp_path / "m.onnxtxt", "y = acme.Bend <alpha = 2.0> (x)"))
    text = str(error.value)
    assert "Bend" in text and "no attribute 'gamma'; it has alpha" in text and "in convert" in text


@pytest.mark.parametrize(
    "extension",
    [
        onnx.ConversionExtension("Bend", "acme", lambda node: opset13.relu(node.get_input(0)).outputs()),
        onnx.ConversionExtension("Bend", lambda node: opset13.relu(node.get_input(0)).outputs(), domain="acme"),
        onnx.OpExtension("opset1.Relu", "Bend", "acme", {}, {}),
    ],
)
def test_an_extension_may_be_for_one_domain(tmp_path, extension):
    core = ov.Core()
    core.add_extension(extension)
    np.testing.assert_allclose(result(core, onnx_model(tmp_path / "m.onnxtxt", "y = acme.Bend (x)")), np.maximum(X, 0))
    other = onnx_model(tmp_path / "o.onnxtxt", "y = other.Bend (x)", opsets='"": 17, "other": 1')
    with pytest.raises(RuntimeError, match="Bend"):
        core.read_model(other)


def test_attributes_come_as_the_type_that_is_asked_for(tmp_path):
    found = []

    def convert(node):
        asked = [("i", float), ("f", int), ("to", ov.Type), ("list", bool), ("list", np.float32)]
        found.extend(node.get_attribute(name, dtype=dtype) for name, dtype in asked)
        return [node.get_input(0)]

    core = ov.Core()
    core.add_extension(frontend.ConversionExtension("Bend", convert))
    core.read_model(onnx_model(tmp_path / "m.onnxtxt", "y = acme.Bend <i = 10, f = 10.0, to = 6, list = [1, 0]> (x)"))
    assert found == [10.0, 10, ov.Type.i32, [True, False], [1.0, 0.0]]
    assert isinstance(found[0], float) and isinstance(found[1], int)


@pytest.mark.parametrize("wrong", [None, 3, [3]])
def test_a_conversion_that_gives_no_outputs_is_an_error(tmp_path, wrong):
    core = ov.Core()
    core.add_extension(frontend.ConversionExtension("Bend", lambda node: wrong))
    with pytest.raises(RuntimeError, match="TypeError"):
        core.read_model(onnx_model(tmp_path / "m.onnxtxt", "y = acme.Bend (x)"))


def test_a_conversion_for_another_format_is_not_asked(tmp_path):
    core = ov.Core()
    core.add_extension(kaldi.ConversionExtension("Bend", lambda node: [node.get_input(0)]))
    with pytest.raises(RuntimeError, match="Bend"):
        core.read_model(onnx_model(tmp_path / "m.onnxtxt", "y = acme.Bend (x)"))


@pytest.mark.parametrize(
    ("extension", "body", "wanted"),
    [
        (frontend.OpExtension("Relu", "MyRelu"), "y = acme.MyRelu (x)", np.maximum(X, 0)),
        (frontend.OpExtension("Relu", "MyRelu", [], []), "y = acme.MyRelu (x)", np.maximum(X, 0)),
        (onnx.OpExtension("Elu", {"alpha": "slope"}), "y = acme.Elu <slope = 2.0> (x)", np.where(X < 0, 2 * np.expm1(X), X)),
        (onnx.OpExtension("Elu", "E", {}, {"alpha": 1.0}), "y = acme.E (x)", np.where(X < 0, np.expm1(X), X)),
        (onnx.OpExtension("opset1::Floor", "F"), "y = acme.F (x)", np.floor(X)),
    ],
)
def test_a_mapping_needs_no_code(tmp_path, extension, body, wanted):
    core = ov.Core()
    core.add_extension([extension])
    np.testing.assert_allclose(result(core, onnx_model(tmp_path / "m.onnxtxt", body)), wanted, rtol=1e-6)


def test_a_mapping_to_nothing_is_an_error(tmp_path):
    core = ov.Core()
    core.add_extension(frontend.OpExtension("NoSuchOperation", "MyRelu"))
    with pytest.raises(RuntimeError, match="NoSuchOperation"):
        core.read_model(onnx_model(tmp_path / "m.onnxtxt", "y = acme.MyRelu (x)"))


def test_a_decoded_graph_is_edited_before_it_is_converted(tmp_path):
    def replace(model):
        for node in model.get_ordered_ops():
            if node.get_friendly_name() == "second":
                node.output(0).replace(node.input_value(0))

    core = ov.Core()
    core.add_extension(frontend.DecoderTransformationExtension(replace))
    model = onnx_model(tmp_path / "m.onnxtxt", "[first] a = Abs (x) [second] b = Neg (a) [third] y = Sqrt (b)")
    np.testing.assert_allclose(result(core, model), np.sqrt(np.abs(X)), rtol=1e-6)


def test_listeners_hear_of_reading(tmp_path):
    steps, events = [], []
    core = ov.Core()
    core.add_extension(frontend.ProgressReporterExtension(lambda part, total, done: steps.append((part, total, done))))
    core.add_extension(frontend.TelemetryExtension("group", lambda *event: events.append(event), lambda *e: None, lambda *e: None))
    core.read_model(onnx_model(tmp_path / "m.onnxtxt", "a = Abs (x) y = Neg (a)"))
    assert [(total, done) for _, total, done in steps] == [(2, 0), (2, 1)]
    assert ("group", "op_count", "onnx_Abs", 1) in events


def test_a_library_that_is_not_there_is_named():
    with pytest.raises(RuntimeError, match="no_such_library"):
        ov.Core().add_extension("/no_such_library.so")


def test_a_front_end_loads_and_converts(tmp_path):
    model = onnx_model(tmp_path / "m.onnxtxt", "a = Abs (x) y = acme.Strange (a)")
    manager = frontend.FrontEndManager()
    assert {"onnx", "tf", "tflite", "paddle", "caffe", "mxnet", "kaldi", "ir"} <= set(manager.get_available_front_ends())
    end = manager.load_by_model(str(model))
    assert end.get_name() == "onnx"
    loaded = end.load(str(model))
    assert [op.get_type_name() for op in end.decode(loaded).get_ordered_ops()][1:3] == ["Abs", "Strange"]
    kept = end.convert_partially(loaded)
    assert "Strange" in {op.get_type_name() for op in kept.get_ordered_ops()} | {op.friendly_name for op in kept.get_ordered_ops()}
    with pytest.raises(RuntimeError, match="Strange"):
        end.convert(loaded)
    end.add_extension(frontend.ConversionExtension("Strange", lambda node: opset13.relu(node.get_input(0)).outputs()))
    converted = end.convert(end.load(str(model)))
    assert [op.get_type_name() for op in converted.get_ordered_ops()][1:3] == ["Abs", "Relu"]


def test_a_front_end_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(frontend.InitializationFailure, match="pytorch"):
        frontend.FrontEndManager().load_by_framework("pytorch")
    end = frontend.FrontEndManager().load_by_framework("kaldi")
    with pytest.raises(frontend.InitializationFailure, match="ONNX"):
        end.load(onnx_model(tmp_path / "m.onnxtxt", "y = Abs (x)"))
    with pytest.raises(frontend.NotImplementedFailure, match="cut_and_add_new_input"):
        frontend.InputModel(end, "x").cut_and_add_new_input(None)
