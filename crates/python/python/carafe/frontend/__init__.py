"""Front ends: extensions that say how nodes of a file become operations, and reading step by step."""

from carafe.frontend._context import NodeContext
from carafe.frontend._extensions import (
    ConversionExtension,
    DecoderTransformationExtension,
    OpExtension,
    ProgressReporterExtension,
    TelemetryExtension,
)
from carafe.frontend._failures import (
    GeneralFailure,
    InitializationFailure,
    NotImplementedFailure,
    OpConversionFailure,
    OpValidationFailure,
)
from carafe.frontend._manager import FrontEnd, FrontEndManager, InputModel, Place

__all__ = [
    "ConversionExtension",
    "DecoderTransformationExtension",
    "FrontEnd",
    "FrontEndManager",
    "GeneralFailure",
    "InitializationFailure",
    "InputModel",
    "NodeContext",
    "NotImplementedFailure",
    "OpConversionFailure",
    "OpExtension",
    "OpValidationFailure",
    "Place",
    "ProgressReporterExtension",
    "TelemetryExtension",
]
