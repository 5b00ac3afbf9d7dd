"""The families of operations. A new family is one module with a `cases()` generator and one entry here."""

from . import (attention, binary, boxes, colour, control, detection, element_types, files, indexing, layout, linear,
               normalize, pooling, randomness, recurrent, reduce, resizing, searching, signals, speech, unary)

FAMILIES = [unary, binary, reduce, linear, pooling, normalize, layout, indexing, searching, resizing, signals, recurrent, speech,
            boxes, detection, attention, colour, randomness, element_types, control, files]


def all_cases():
    """Every case of every family, by name; the order is that of the families."""
    cases = {}
    for family in FAMILIES:
        for case in family.cases():
            case.family = family.__name__.rsplit(".", 1)[-1]
            if case.name in cases:
                raise ValueError(f"two cases are called {case.name}")
            cases[case.name] = case
    return cases
