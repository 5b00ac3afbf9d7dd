"""What a device is, and which devices one that is made of others uses."""

from carafe._enums import enumeration as _enumeration
from carafe.properties._property import Property as _Property
from carafe.properties._property import of as _of
from carafe.properties._property import text as _text


class Capability:
    """Words in the list of a device's capabilities."""

    FP32 = "FP32"
    BF16 = "BF16"
    FP16 = "FP16"
    INT8 = "INT8"
    INT16 = "INT16"
    BIN = "BIN"
    WINOGRAD = "WINOGRAD"
    EXPORT_IMPORT = "EXPORT_IMPORT"


Type = _enumeration("Type", {"INTEGRATED": 0, "DISCRETE": 1}, __name__)


def _priorities(*names):
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Incorrect passed value: {name} , expected string values.")
    return "".join(name if name.endswith(",") else name + "," for name in names)


architecture = _Property("DEVICE_ARCHITECTURE")
capabilities = _Property("OPTIMIZATION_CAPABILITIES")
full_name = _Property("FULL_DEVICE_NAME")
gops = _Property("DEVICE_GOPS")
luid = _Property("DEVICE_LUID")
pci_info = _Property("DEVICE_PCI_INFO")
thermal = _Property("DEVICE_THERMAL")
type = _Property("DEVICE_TYPE")
uuid = _Property("DEVICE_UUID")

id = _Property("DEVICE_ID", _text)
priorities = _Property("MULTI_DEVICE_PRIORITIES", _priorities)
properties = _Property("DEVICE_PROPERTIES", _of(dict))
