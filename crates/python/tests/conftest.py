"""What the tests share: small models, built by hand as IR."""

import numpy as np
import pytest

import carafe as ov
from carafe import opset13 as ops


@pytest.fixture(scope="session")
def core():
    return ov.Core()


@pytest.fixture
def relu():
    """A model `relu(data)` of two by three floats."""
    data = ops.parameter([2, 3], np.float32, name="data")
    return ov.Model([ops.relu(data, name="relu")], [data], "relu")


@pytest.fixture
def dynamic():
    """A model `x + x` of any vector."""
    data = ops.parameter([-1], np.float32, name="x")
    return ov.Model([ops.add(data, data)], [data], "twice")


@pytest.fixture
def compiled(core, relu):
    return core.compile_model(relu, "CPU")


@pytest.fixture
def image():
    return np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
