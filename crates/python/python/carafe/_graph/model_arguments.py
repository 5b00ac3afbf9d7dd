"""What a model may be made of."""

from .node import Node
from .ops import Parameter, Result
from .ports import Output
from .variable import Variable


def position(items, is_it):
    return next((i for i, item in enumerate(items) if is_it(item)), -1)


def as_results(value):
    if isinstance(value, Result):
        return [value]
    if isinstance(value, Output):
        return [value.get_node()] if isinstance(value.get_node(), Result) else [Result(value)]
    if isinstance(value, Node):
        return [Result(o) for o in value.outputs()]
    raise TypeError(f"a model is made of nodes and outputs, found {type(value).__name__}")


def arguments_of(args, kwargs):
    """Results, sinks, parameters, variables and name out of the forms that a model can be made with."""
    args, known = list(args), {"result", "results", "sinks", "parameters", "variables", "name"}
    unknown = set(kwargs) - known
    if unknown:
        raise TypeError(f"Model() got an unexpected argument '{unknown.pop()}'")
    name = kwargs.get("name", "")
    if args and isinstance(args[-1], str):
        name = args.pop()
    results = kwargs.get("results", kwargs.get("result"))
    if results is None:
        if not args:
            raise TypeError(
                "Model() takes results and parameters. The following argument types are supported: results, sinks, "
                "parameters, variables and a name"
            )
        results = args.pop(0)
    if isinstance(results, (Node, Output)):
        results = [results]
    found = {"sinks": kwargs.get("sinks"), "parameters": kwargs.get("parameters"), "variables": kwargs.get("variables")}
    lists = [list(a) for a in args]
    if found["parameters"] is None:
        at = len(lists) - 1
        if len(lists) > 1 and found["variables"] is None:
            if lists[-1] and all(isinstance(v, Variable) for v in lists[-1]):
                at -= 1
            elif not lists[-1] and lists[-2] and all(isinstance(p, Parameter) for p in lists[-2]):
                at -= 1
        if at < 0:
            raise TypeError("Model() needs parameters")
        found["parameters"] = lists.pop(at)
        if at < len(lists):
            found["variables"] = lists.pop(at)
    if lists and found["sinks"] is None:
        found["sinks"] = lists.pop(0)
    if lists or not all(isinstance(p, Parameter) for p in found["parameters"]):
        raise TypeError("Model() takes results, sinks, parameters, variables and a name")
    return results, found["sinks"] or [], found["parameters"], found["variables"] or [], name
