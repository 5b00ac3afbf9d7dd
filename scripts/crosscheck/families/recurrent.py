"""Recurrent cells and sequences."""

from ..case import Dyn, const, literal, one, uniform

SMALL = dict(lo=-0.7, hi=0.7)
# By number of gates. OpenVINO's sequences have no default here: a file without the attribute does not compile.
ACTIVATIONS = {1: ["tanh"], 3: ["sigmoid", "tanh"], 4: ["sigmoid", "tanh", "tanh"]}


def weights(*shape, kind="f32"):
    return const(kind, uniform(kind, *shape, **SMALL))


def cases():
    yield from cells()
    yield from sequences()


def cells():
    n, i, h = 2, 3, 4
    x, state, memory = uniform("f32", n, i), uniform("f32", n, h, **SMALL), uniform("f32", n, h, **SMALL)
    yield one("RNNCell", 1, [x, state, weights(h, i), weights(h, h), weights(h)], {"hidden_size": h}, tag="tanh", fixture=True)
    yield one("RNNCell", 3, [x, state, weights(h, i), weights(h, h), weights(h)], {"hidden_size": h, "activations": ["relu"]}, tag="relu-opset3")
    yield one("RNNCell", 1, [x, state, weights(h, i), weights(h, h), weights(h)], {"hidden_size": h, "clip": 0.4, "activations": ["sigmoid"]}, tag="clip")
    for linear in (False, True):
        bias = weights((4 if linear else 3) * h)
        attrs = {"hidden_size": h, "linear_before_reset": linear}
        yield one("GRUCell", 3, [x, state, weights(3 * h, i), weights(3 * h, h), bias], attrs, tag=f"linear{int(linear)}", fixture=True)
        yield one("GRUCell", 3, [x, state, weights(3 * h, i), weights(3 * h, h), bias], dict(attrs, activations=["sigmoid", "relu"], clip=0.5),
                  tag=f"linear{int(linear)}-relu-clip")
    lstm = [x, state, memory, weights(4 * h, i), weights(4 * h, h)]
    yield one("LSTMCell", 4, [*lstm, weights(4 * h)], {"hidden_size": h}, tag="plain", fixture=True)
    yield one("LSTMCell", 4, [*lstm, weights(4 * h)], {"hidden_size": h, "activations": ["sigmoid", "relu", "tanh"], "clip": 0.5}, tag="relu-clip")
    yield one("LSTMCell", 1, [*lstm, weights(4 * h), const("f32", [0.0] * (3 * h))], {"hidden_size": h, "weights_format": "fico"}, tag="fico", fixture=True)
    yield one("LSTMCell", 4, [Dyn(x, "?,3"), Dyn(state, "?,4"), Dyn(memory, "?,4"), weights(4 * h, i), weights(4 * h, h), weights(4 * h)],
              {"hidden_size": h}, tag="dynamic")
    yield one("GRUCell", 3, [Dyn(x, "?,3"), Dyn(state, "?,4"), weights(3 * h, i), weights(3 * h, h), weights(3 * h)], {"hidden_size": h}, tag="dynamic")
    half = [uniform("f16", n, i), uniform("f16", n, h, **SMALL), uniform("f16", n, h, **SMALL)] + \
           [weights(*s, kind="f16") for s in ((4 * h, i), (4 * h, h), (4 * h,))]
    yield one("LSTMCell", 4, half, {"hidden_size": h}, tag="f16")


def sequences():
    n, t, i, h = 2, 5, 3, 4
    x = uniform("f32", n, t, i)
    for name, gates, states in (("RNNSequence", 1, 1), ("GRUSequence", 3, 1), ("LSTMSequence", 4, 2)):
        usual = {"hidden_size": h, "activations": ACTIVATIONS[gates]}
        for direction in ("forward", "reverse", "bidirectional"):
            d = 2 if direction == "bidirectional" else 1
            carried = [uniform("f32", n, d, h, **SMALL) for _ in range(states)]
            for mark, lengths in (("full", [t, t]), ("ragged", [2, 4])):
                ins = [x, *carried, const("i32", lengths), weights(d, gates * h, i), weights(d, gates * h, h), weights(d, gates * h)]
                yield one(name, 5, ins, {**usual, "direction": direction}, tag=f"{direction}-{mark}",
                          fixture=direction != "reverse" and mark == "ragged")
        carried = [uniform("f32", n, 1, h, **SMALL) for _ in range(states)]
        parts = [weights(1, gates * h, i), weights(1, gates * h, h), weights(1, gates * h)]
        yield one(name, 5, [x, *carried, literal("i64", [t, 3]), *parts], {**usual, "direction": "forward"}, tag="run-time-lengths")
        yield one(name, 5, [Dyn(x, "?,?,3"), *[Dyn(s, "?,1,4") for s in carried], Dyn(literal("i32", [t, t]), "?"), *parts],
                  {**usual, "direction": "forward"}, tag="dynamic")
        functions = {1: ["relu"], 3: ["sigmoid", "relu"], 4: ["sigmoid", "relu", "tanh"]}[gates]
        yield one(name, 5, [x, *carried, const("i32", [t, t]), *parts], {"hidden_size": h, "direction": "forward", "clip": 0.5, "activations": functions},
                  tag="relu-clip")
        yield one(name, 5, [x, *carried, const("i32", [0, t]), *parts], {**usual, "direction": "forward"}, tag="zero-length")
    for direction in ("forward", "bidirectional"):
        d = 2 if direction == "bidirectional" else 1
        ins = [x, uniform("f32", n, d, h, **SMALL), const("i32", [t, 3]), weights(d, 3 * h, i), weights(d, 3 * h, h), weights(d, 4 * h)]
        yield one("GRUSequence", 5, ins, {"hidden_size": h, "activations": ACTIVATIONS[3], "direction": direction, "linear_before_reset": True}, tag=f"linear-{direction}", fixture=True)
