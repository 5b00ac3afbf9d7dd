"""Passes over models: a manager that runs them, patterns and matchers, and passes that are ready."""

from .manager import BackwardGraphRewrite, GraphRewrite, Manager, MatcherPass, ModelPass, PassBase
from .matcher import Matcher
from .patterns import AnyInput, Optional, Or, PatternSymbolValue, WrapType
from .predicates import (
    Predicate,
    attrs_match,
    consumers_count,
    has_static_dim,
    has_static_dims,
    has_static_rank,
    has_static_shape,
    rank_equals,
    rank_more_than,
    shape_matches,
    type_matches,
    type_matches_any,
)
from .ready import ConstantFolding, ConvertFP32ToFP16, LowLatency2, MakeStateful, Serialize, Version, VisualizeTree

__all__ = [
    "AnyInput",
    "BackwardGraphRewrite",
    "ConstantFolding",
    "ConvertFP32ToFP16",
    "GraphRewrite",
    "LowLatency2",
    "MakeStateful",
    "Manager",
    "Matcher",
    "MatcherPass",
    "ModelPass",
    "Optional",
    "Or",
    "PassBase",
    "PatternSymbolValue",
    "Predicate",
    "Serialize",
    "Version",
    "VisualizeTree",
    "WrapType",
    "attrs_match",
    "consumers_count",
    "has_static_dim",
    "has_static_dims",
    "has_static_rank",
    "has_static_shape",
    "rank_equals",
    "rank_more_than",
    "shape_matches",
    "type_matches",
    "type_matches_any",
]
