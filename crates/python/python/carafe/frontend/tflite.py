"""Extensions for TensorFlow Lite alone, under its short name."""

from carafe.frontend.tensorflow_lite import ConversionExtension, OpExtension  # noqa: F401
