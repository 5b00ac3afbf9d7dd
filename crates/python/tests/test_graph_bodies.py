"""If, Loop and TensorIterator: bodies, their ports, and what they compute."""

import numpy as np

import carafe as ov
from carafe import opset13 as ops


def run(model, *arrays):
    shape = [d.get_length() for d in model.output().get_partial_shape()]
    result = ov.Tensor(model.output().get_element_type(), ov.Shape(shape))
    model.evaluate([result], [ov.Tensor(np.array(a)) for a in arrays])
    return result.data


def summing_loop():
    total, step = ops.parameter([1], np.float32), ops.parameter([1], np.float32)
    added = ops.add(total, step)
    body = ov.Model([ops.constant(np.array([True])), added], [total, step])
    loop = ops.loop(ops.constant(3), ops.constant(True))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    data = ops.parameter([1], np.float32, name="data")
    loop.set_merged_input(total, ops.constant(np.zeros(1, np.float32)).output(0), added.output(0))
    loop.set_invariant_input(step, data.output(0))
    last = loop.get_iter_value(added.output(0), -1)
    every = loop.get_concatenated_slices(added.output(0), 0, 1, 1, -1, 0)
    return data, loop, last, every


def test_a_loop_carries_a_value_and_joins_the_steps():
    data, loop, last, every = summing_loop()
    assert run(ov.Model([last], [data]), np.array([2], np.float32)).tolist() == [6]
    assert run(ov.Model([every], [data]), np.array([2], np.float32)).tolist() == [2, 4, 6]
    assert loop.get_num_iterations() == 3


def test_a_body_comes_back_from_the_engine_with_its_ports():
    data, _, last, _ = summing_loop()
    model = ov.Model._of_engine(ov.Model([last], [data])._engine())
    loop = next(n for n in model.get_ordered_ops() if n.get_type_name() == "Loop")
    assert isinstance(loop, ov.op.loop)
    kinds = [type(d).__name__ for d in loop.get_input_descriptions()]
    assert sorted(kinds) == ["InvariantInputDescription", "MergedInputDescription"]
    assert loop.get_special_body_ports() == [-1, 0]
    assert "Add" in [n.get_type_name() for n in loop.get_function().get_ops()]


def test_an_iterator_cuts_its_input_along_an_axis():
    part = ops.parameter([1, 2], np.float32)
    twice = ops.add(part, part)
    iterator = ops.tensor_iterator()
    iterator.set_body(ov.Model([twice], [part]))
    data = ops.parameter([3, 2], np.float32)
    iterator.set_sliced_input(part, data.output(0), 0, 1, 1, -1, 0)
    joined = iterator.get_concatenated_slices(twice.output(0), 0, 1, 1, -1, 0)
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert run(ov.Model([joined], [data]), array).tolist() == (array * 2).tolist()


def test_an_if_runs_the_body_that_its_condition_chooses():
    condition = ops.parameter([], bool)
    data = ops.parameter([2], np.float32)
    ends = []
    for factory in (ops.relu, ops.negative):
        inner = ops.parameter([2], np.float32)
        ends.append((inner, ops.result(factory(inner))))
    node = ops.if_op(condition)
    node.set_then_body(ov.Model([ends[0][1]], [ends[0][0]]))
    node.set_else_body(ov.Model([ends[1][1]], [ends[1][0]]))
    node.set_input(data.output(0), ends[0][0], ends[1][0])
    chosen = node.set_output(ends[0][1], ends[1][1])
    model = ov.Model([chosen], [condition, data])
    array = np.array([-1, 2], np.float32)
    assert run(model, np.array(True), array).tolist() == [0, 2]
    assert run(model, np.array(False), array).tolist() == [1, -2]


def test_a_clone_has_bodies_of_its_own():
    data, _, last, _ = summing_loop()
    model = ov.Model([last], [data])
    bodies = [n.get_function() for m in (model, model.clone()) for n in m.get_ops() if n.get_type_name() == "Loop"]
    assert bodies[0] is not bodies[1]
    assert bodies[0].get_ops()[0] is not bodies[1].get_ops()[0]
