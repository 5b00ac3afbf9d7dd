"""Carafe runs trained models. The names are those of OpenVINO's Python API."""

from carafe._native import (
    Core,
    Dimension,
    Layout,
    PartialShape,
    Symbol,
    Tensor,
    Type,
    get_version,
)
from carafe._graph.custom import Op
from carafe._graph.model import Model
from carafe._graph.node import Node
from carafe._graph.ports import Input, Output
from carafe._graph.rt_info import OVAny, RTMap
from carafe._graph.type_info import DiscreteTypeInfo
from carafe._values import AxisSet, AxisVector, Coordinate, CoordinateDiff, Shape, Strides

__version__ = get_version()
