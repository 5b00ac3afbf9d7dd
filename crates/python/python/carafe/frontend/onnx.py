"""Extensions for ONNX alone."""

from carafe.frontend._extensions import for_format

ConversionExtension, OpExtension = for_format("onnx")
