"""Passes and what runs them."""

from collections import deque

from .._graph.model import Model


class PassBase:
    """What every pass has: a name."""

    _name = None

    def __init__(self):
        pass

    def get_name(self):
        """Name of the pass; that of its class unless it was set."""
        return self._name if self._name is not None else type(self).__name__

    def set_name(self, name):
        """Sets the name."""
        self._name = name

    def _run(self, model):
        raise TypeError(f"{type(self).__name__} cannot be run on a model")

    def __repr__(self):
        return f"<{type(self).__name__}: '{self.get_name()}'>"


class ModelPass(PassBase):
    """A pass over a whole model: a subclass writes `run_on_model`."""

    def run_on_model(self, model):
        """Changes the model; whether it did."""
        raise NotImplementedError(f"{type(self).__name__} does not write run_on_model")

    def _run(self, model):
        return bool(self.run_on_model(model))


class MatcherPass(PassBase):
    """A pattern and what is done where it matches."""

    def __init__(self, matcher=None, callback=None):
        super().__init__()
        self._matcher, self._callback, self._new = None, None, []
        if matcher is not None:
            self.register_matcher(matcher, callback)

    def register_matcher(self, matcher, callback):
        """Sets pattern and callback; the callback says whether it changed the matched root."""
        self._matcher, self._callback = matcher, callback
        if self._name is None:
            self._name = matcher.get_name()

    def register_new_node(self, node):
        """Lets a node that the callback made be matched too."""
        self._new.append(node)
        return node

    def apply(self, node):
        """Matches a node and calls the callback; whether that changed something."""
        if self._matcher is None or node.get_output_size() == 0:
            return False
        return bool(self._matcher.match(node.output(0)) and self._callback(self._matcher))

    def _run(self, model):
        return _rewrite(model, [self], backward=False)


class GraphRewrite(PassBase):
    """Several patterns, tried on each node in turn."""

    _backward = False

    def __init__(self):
        super().__init__()
        self.passes_list = []

    def add_matcher(self, transformation):
        """Adds a pattern at the end."""
        if not isinstance(transformation, MatcherPass):
            raise TypeError(f"a MatcherPass is expected, found {type(transformation).__name__}")
        self.passes_list.append(transformation)
        return transformation

    def _run(self, model):
        return _rewrite(model, self.passes_list, self._backward)


class BackwardGraphRewrite(GraphRewrite):
    """As `GraphRewrite`, from outputs to inputs."""

    _backward = True


def _rewrite(model, matchers, backward):
    changed = False
    order = model.get_ordered_ops()
    todo = deque(reversed(order) if backward else order)
    while todo:
        node = todo.popleft()
        for body in node._bodies():
            changed |= _rewrite(body, matchers, backward)
        for matcher in matchers:
            done = matcher.apply(node)
            todo.extendleft(reversed(matcher._new))
            matcher._new.clear()
            if done:
                changed = True
                break
    return changed


class Manager:
    """Runs passes in the order in which they were registered."""

    def __init__(self, name="Manager"):
        self.passes_list = []
        self._validate, self._name = True, name

    def register_pass(self, transformation):
        """Adds a pass at the end; gives it back."""
        if not isinstance(transformation, PassBase):
            raise TypeError(f"a pass is expected, found {transformation!r}")
        self.passes_list.append(transformation)
        return transformation

    def run_passes(self, model):
        """Runs all passes; whether the model changed."""
        if not isinstance(model, Model):
            raise TypeError(f"a Model is expected, found {type(model).__name__}")
        changed = False
        for step in self.passes_list:
            if step._run(model):
                changed = True
                if self._validate:
                    model.validate_nodes_and_infer_types()
        return changed

    def set_per_pass_validation(self, new_state):
        """Whether the model is validated after each pass that changed it."""
        self._validate = bool(new_state)

    def __repr__(self):
        return f"<Manager: '{self._name}'>"
