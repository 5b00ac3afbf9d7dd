"""What the axes of a value mean, as its runtime information keeps it."""

from .rt_info import RtAttribute

_KEY = "layout_0"


def get_layout(port):
    """The layout of an output; an empty one when none was set."""
    from carafe._native import Layout

    info = port.get_rt_info()
    return Layout(str(info[_KEY].value["layout"])) if _KEY in info else Layout()


def set_layout(port, layout):
    """Sets the layout of an output; an empty one takes it away."""
    text = layout if isinstance(layout, str) else layout.to_string()
    info = port.get_rt_info()
    if text not in ("", "...", "[...]"):
        info[_KEY] = RtAttribute("layout", "0", [("layout", text)])
    elif _KEY in info:
        del info[_KEY]
