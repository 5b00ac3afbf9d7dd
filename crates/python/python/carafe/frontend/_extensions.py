"""Extensions of front ends, for every format or for one."""

import functools

from carafe import _native
from carafe._extensions import Extension
from carafe.frontend import _context


class ConversionExtension(Extension):
    """Converts nodes of one type by a function from a `NodeContext` to outputs: a list, or lists by names of ports.

    ``ConversionExtension(type, function)``, ``ConversionExtension(type, domain, function)``.
    """

    _framework = None

    def __init__(self, op_type, *rest, converter=None, domain=None):
        if len(rest) == 2:
            domain, converter = rest
        elif rest:
            (converter,) = rest
        if not callable(converter):
            raise TypeError(f"a conversion is a function, found {type(converter).__name__}")
        self._op_type, self._converter, self._domain = str(op_type), converter, domain

    def _native(self):
        run = functools.partial(_context.run, self._converter)
        return [_native.NativeExtension.conversion(self._framework, self._domain, self._op_type, run)]


class OpExtension(Extension):
    """Maps nodes of one type to one operation, without code.

    ``OpExtension(type)``, ``OpExtension(operation, type)``, ``OpExtension(operation, type, domain)``, each followed by names of inputs and outputs (two lists) or not, then by names
    of attributes (ours to theirs) and values of attributes.
    """

    _framework = None

    def __init__(self, *arguments, **named):
        words, lists, maps = [], [], []
        for argument in (*arguments, *named.values()):
            kind = words if isinstance(argument, str) else maps if isinstance(argument, dict) else lists
            kind.append(argument)
        if not 1 <= len(words) <= 3 or len(lists) not in (0, 2) or len(maps) > 2:
            raise TypeError("OpExtension takes one or two types and a domain, then two lists of names or none, then up to two dictionaries")
        self._operation, self._op_type = words[0], words[min(len(words) - 1, 1)]
        self._domain = words[2] if len(words) == 3 else None
        self._inputs, self._outputs = [list(names) for names in lists] or [[], []]
        self._names, self._values = (*maps, {}, {})[:2]

    def _native(self):
        names = [(str(ours), str(theirs)) for ours, theirs in self._names.items()]
        from_where, ports = (self._framework, self._domain, self._op_type), (self._inputs, self._outputs)
        return [_native.NativeExtension.mapping(from_where, self._operation, ports, names, self._values)]


class DecoderTransformationExtension(Extension):
    """Edits the graph of a file as it was decoded, before its nodes are converted: a function of a `Model`."""

    def __init__(self, transformation):
        self._transformation = transformation

    def _native(self):
        return [_native.NativeExtension.decoded(self._transformation)]


class ProgressReporterExtension(Extension):
    """Hears how far reading is: a function of the part that is done, the number of steps, and the steps done."""

    def __init__(self, callback=None):
        self._callback = callback

    def report_progress(self, progress, total_steps, completed_steps):
        """Tells the function."""
        if completed_steps > total_steps:
            raise RuntimeError(f"Cannot report {completed_steps} of {total_steps} steps")
        if self._callback is not None:
            self._callback(progress, total_steps, completed_steps)

    def _native(self):
        return [_native.NativeExtension.progress(self.report_progress)]


class TelemetryExtension(Extension):
    """Hears of events, errors and stack traces; each function gets the group first."""

    def __init__(self, event_group, send_event, send_error, send_stack_trace):
        self._group, self._event, self._error, self._trace = event_group, send_event, send_error, send_stack_trace

    def send_event(self, action, label, value=1):
        """Tells of an event."""
        self._event(self._group, action, label, value)

    def send_error(self, message):
        """Tells of an error."""
        self._error(self._group, message)

    def send_stack_trace(self, message):
        """Tells of a stack trace."""
        self._trace(self._group, message)

    def _hear(self, kind, _category, action, label, value):
        if kind == "error":
            self.send_error(label)
        elif kind == "stack_trace":
            self.send_stack_trace(label)
        else:
            self.send_event(action, label, value)

    def _native(self):
        return [_native.NativeExtension.telemetry(self._hear)]


def for_format(framework):
    """`ConversionExtension` and `OpExtension` for one format alone."""
    return tuple(type(base.__name__, (base,), {"_framework": framework, "__doc__": base.__doc__}) for base in (ConversionExtension, OpExtension))
