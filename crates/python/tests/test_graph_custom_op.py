"""Operations that are written in Python."""

import pickle

import numpy as np
import pytest

import carafe as ov
from carafe import opset13 as ops


class Scaled(ov.Op):
    class_type_info = ov.DiscreteTypeInfo("Scaled", "extension")

    def __init__(self, inputs=None, factor=2.0):
        super().__init__(self)
        self._attrs = {"factor": factor}
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self):
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, new_inputs):
        return Scaled(new_inputs, self._attrs["factor"])

    def visit_attributes(self, visitor):
        visitor.on_attributes(self._attrs)
        return True

    def has_evaluate(self):
        return True

    def evaluate(self, outputs, inputs):
        ov.Tensor(inputs[0].data * np.float32(self._attrs["factor"])).copy_to(outputs[0])
        return True


def scaled_model():
    data = ops.parameter([1, 3], np.float32, name="data")
    return ov.Model([Scaled([data], 3.0)], [data], "model")


def test_an_operation_of_python_says_its_type_and_shape():
    node = scaled_model().get_ordered_ops()[1]
    assert node.get_type_name() == "Scaled"
    assert list(node.get_output_shape(0)) == [1, 3]
    assert node.get_attributes() == {"factor": 3.0}


def test_an_operation_of_python_runs_inside_of_a_model():
    result = ov.Tensor(np.zeros((1, 3), np.float32))
    scaled_model().evaluate([result], [ov.Tensor(np.ones((1, 3), np.float32))])
    assert result.data.tolist() == [[3, 3, 3]]


def test_an_operation_of_python_follows_a_reshape():
    model = scaled_model()
    model.reshape([5, 3])
    assert list(model.output().get_shape()) == [5, 3]


def test_an_exception_of_an_operation_names_it():
    class Broken(Scaled):
        def clone_with_new_inputs(self, new_inputs):
            return Broken(new_inputs)

        def evaluate(self, outputs, inputs):
            raise ValueError("no luck today")

    data = ops.parameter([1], np.float32)
    model = ov.Model([Broken([data])], [data])
    with pytest.raises(RuntimeError, match="no luck today"):
        model.evaluate([ov.Tensor(np.zeros(1, np.float32))], [ov.Tensor(np.zeros(1, np.float32))])


def test_attributes_that_files_cannot_keep_hinder_only_files(core, tmp_path):
    data = ops.parameter([1, 3], np.float32, name="data")
    model = ov.Model([Scaled([data], 3.0)], [data], "model")
    model.get_ordered_ops()[1]._attrs["odd"] = {}
    np.testing.assert_array_equal(core.compile_model(model, "CPU")(np.ones((1, 3), np.float32))[0], [[3, 3, 3]])
    with pytest.raises(TypeError, match="Unsupported attribute type: <class 'dict'>"):
        ov.save_model(model, tmp_path / "model.xml")
    with pytest.raises(TypeError, match="Unsupported attribute type"):
        pickle.dumps(model)


def test_an_array_of_attributes_becomes_a_list():
    attributes = {"values": np.array([1.5, 2.5], np.float32)}
    visitor = ov.AttributeVisitor()
    visitor.on_attributes(attributes)
    assert attributes == {"values": [1.5, 2.5]} == visitor.attributes
