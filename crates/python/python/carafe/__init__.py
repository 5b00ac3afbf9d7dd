"""Carafe runs trained models. The names are those of OpenVINO's Python API."""

from carafe._native import (
    Core,
    Dimension,
    Layout,
    Model,
    PartialShape,
    Symbol,
    Tensor,
    Type,
    get_version,
)
from carafe._values import AxisSet, AxisVector, Coordinate, CoordinateDiff, Shape, Strides

__version__ = get_version()
