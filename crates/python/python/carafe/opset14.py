"""Factories of nodes of opset14, with those of older opsets where they still hold."""

from ._graph.factories import opset_module

__getattr__, __dir__ = opset_module(14)
