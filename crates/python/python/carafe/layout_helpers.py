"""Questions to layouts, and layouts of ports."""

from carafe._native import Layout

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


def get_layout(port):
    """The layout of a port; an empty one when none was set."""
    info = port.get_rt_info()
    found = info["layout"] if "layout" in info else None
    found = getattr(found, "value", found)
    if isinstance(found, dict):
        found = getattr(found.get("layout"), "value", found.get("layout"))
    return found if isinstance(found, Layout) else Layout(str(found)) if found is not None else Layout()


def set_layout(port, layout):
    """Sets the layout of a port."""
    port.get_rt_info()["layout"] = layout if isinstance(layout, Layout) else Layout(layout)
