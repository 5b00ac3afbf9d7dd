"""How much a device tells."""

from carafe._enums import enumeration as _enumeration
from carafe.properties._property import Property as _Property
from carafe.properties._property import of as _of

Level = _enumeration("Level", {"NO": -1, "ERR": 0, "WARNING": 1, "INFO": 2, "DEBUG": 3, "TRACE": 4}, __name__)

level = _Property("LOG_LEVEL", _of(Level))
