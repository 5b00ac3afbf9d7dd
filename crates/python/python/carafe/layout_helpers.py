"""Questions to layouts, and layouts of ports."""

from carafe._graph.layout import get_layout, set_layout

def has_batch(layout):
    """Whether an axis is the batch."""
    return layout.has_name("N")


def batch_idx(layout):
    """Which axis is the batch."""
    return layout.get_index_by_name("N")


def has_channels(layout):
    """Whether an axis is the channels."""
    return layout.has_name("C")


def channels_idx(layout):
    """Which axis is the channels."""
    return layout.get_index_by_name("C")


def has_depth(layout):
    """Whether an axis is the depth."""
    return layout.has_name("D")


def depth_idx(layout):
    """Which axis is the depth."""
    return layout.get_index_by_name("D")


def has_height(layout):
    """Whether an axis is the height."""
    return layout.has_name("H")


def height_idx(layout):
    """Which axis is the height."""
    return layout.get_index_by_name("H")


def has_width(layout):
    """Whether an axis is the width."""
    return layout.has_name("W")


def width_idx(layout):
    """Which axis is the width."""
    return layout.get_index_by_name("W")
