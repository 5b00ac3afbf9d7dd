"""What extensions of OpenVINO's Python take from `openvino._pyopenvino.util`."""

import warnings


def deprecation_warning(function_name, version="", message="", stacklevel=2):
    """Warns that a function is deprecated, by when it goes, and what to use instead."""
    text = f"{function_name} is deprecated"
    if version:
        text += f" and will be removed in version {version}"
    if message:
        text += f". {message}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)
