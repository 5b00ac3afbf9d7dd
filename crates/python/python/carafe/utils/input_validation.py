"""Checks of attributes that are given as a dictionary."""

import numpy as np

from ..exceptions import UserInputError


def assert_list_of_ints(value_list, message):
    """An error with this message unless all are whole numbers."""
    try:
        fits = all(isinstance(value, int) for value in value_list)
    except TypeError:
        fits = False
    if not fits:
        raise UserInputError(message, value_list)


def _check_value(op_name, attr_key, value, val_type, cond=None):
    where = f'{op_name} operator attribute "{attr_key}" value'
    if not np.issubdtype(type(value), val_type):
        raise UserInputError(f"{where} must by of type {val_type}.")
    if cond is not None and not cond(value):
        raise UserInputError(f"{where} does not satisfy provided condition.")
    return True


def check_valid_attribute(op_name, attr_dict, attr_key, val_type, cond=None, required=False):
    """An error unless the attribute is of the type and fulfils the condition, each of its elements where it is a list."""
    if attr_key not in attr_dict:
        if required:
            text = f'Provided dictionary is missing {op_name} operator required attribute "{attr_key}"'
            raise UserInputError(text)
        return True
    value = attr_dict[attr_key]
    values = [value] if np.isscalar(value) else value
    return all(_check_value(op_name, attr_key, v, val_type, cond) for v in values)


def check_valid_attributes(op_name, attributes, requirements):
    """Checks attributes by a list of name, whether it is required, type and condition."""
    for name, required, kind, condition in requirements:
        check_valid_attribute(op_name, attributes, name, kind, condition, required)
    return True


def is_positive_value(x):
    """Whether it is above zero."""
    return x > 0


def is_non_negative_value(x):
    """Whether it is zero or above."""
    return x >= 0
