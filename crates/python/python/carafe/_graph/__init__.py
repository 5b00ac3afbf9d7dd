"""The free graph behind `Model`, `Node`, `Output` and `Input`: nodes are objects of Python, their operations the engine's."""
