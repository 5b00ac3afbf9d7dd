"""Factories of nodes: every one of every opset is there, and how they are called."""

import importlib
import inspect

import numpy as np
import pytest

import carafe as ov
from carafe import opset1, opset8, opset13, opset15
from carafe._graph.factories import _table, names
from carafe.utils.node_factory import NodeFactory


@pytest.mark.parametrize(("opset", "count"), [(1, 107), (8, 165), (13, 184), (16, 201), (17, 2)])
def test_an_opset_offers_what_it_and_older_ones_brought(opset, count):
    module = importlib.import_module(f"carafe.opset{opset}")
    assert len(dir(module)) == count
    assert all(callable(getattr(module, name)) for name in dir(module))


def test_every_line_of_the_table_names_an_operation_and_arguments_of_its_factory():
    for line in _table().values():
        kind, opset, inputs, attributes = line.parts
        assert ov._native.GraphOp.find_type(kind, opset) is not None, line.name
        known = set(inspect.signature(eval(f"lambda {line.signature}: None")).parameters)
        used = {i.lstrip("*").partition("|")[0] for i in inputs} | {a[1].lstrip("*") for a in attributes}
        assert used <= known, line.name


def test_an_unknown_factory_is_an_attribute_error():
    with pytest.raises(AttributeError, match="opset1 has no 'erfinv'"):
        opset1.erfinv  # noqa: B018
    assert "erfinv" in names(17)


def test_a_factory_of_an_opset_makes_its_version_of_the_operation():
    data = opset1.parameter([1, 3, 8, 8], np.float32)
    versions = [
        opset1.max_pool(data, [2, 2], [0, 0], [0, 0], [2, 2]),
        opset8.max_pool(data, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]),
        opset15.max_pool(data, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]),
    ]
    assert [v.get_type_info().version_id for v in versions] == ["opset1", "opset8", "opset14"]


def test_arguments_have_names_and_defaults():
    parameters = inspect.signature(opset13.convolution).parameters
    assert list(parameters)[:3] == ["data", "filters", "strides"]
    assert parameters["auto_pad"].default == "EXPLICIT"


def test_an_input_left_out_in_the_middle_is_refused():
    table, indices = opset13.parameter([5, 2], np.float32), opset13.parameter([4], np.int64)
    with pytest.raises(TypeError, match="needs 'default_index'"):
        opset13.embedding_bag_offsets_sum(table, indices, indices, per_sample_weights=np.ones(4, np.float32))


def test_an_attribute_of_the_wrong_kind_is_refused_by_name():
    with pytest.raises(TypeError, match="attribute 'axis'"):
        opset13.softmax(opset13.parameter([2], np.float32), object())


def test_a_node_is_made_by_the_name_of_its_type():
    data = opset13.parameter([2, 10], np.float32)
    factory = NodeFactory("opset1")
    node = factory.create("TopK", [data, opset13.constant(3)], {"axis": 1, "mode": "max", "sort": "value"})
    assert list(node.get_output_shape(0)) == [2, 3]
    with pytest.raises(RuntimeError, match="NoSuchType"):
        factory.create("NoSuchType", [data], {})


def test_a_variable_is_read_and_assigned():
    info = ov.op.util.VariableInfo("v", ov.Type.f32, ov.PartialShape([2]))
    variable = ov.op.util.Variable(info)
    data = opset13.parameter([2], np.float32)
    read = opset13.read_value(data, variable)
    write = opset13.assign(read, variable)
    model = ov.Model([read], [write], [data])
    assert [v.info.variable_id for v in model.get_variables()] == ["v"]
    assert write.get_variable_id() == "v"
