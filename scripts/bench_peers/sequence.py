"""Transformers and recurrent networks, by their published sizes."""

import numpy as np

from .nets import Net


def attention(net, x, length, width, heads, mask=None, past=None):
    """Self-attention written with matrix products; returns its result, keys and values."""
    size = width // heads

    def split(x, *order):
        return net.op("Transpose", net.op("Reshape", x, net.ints(1, length, heads, size)), perm=order)
    q = split(net.linear(x, width, width), 0, 2, 1, 3)
    k = split(net.linear(x, width, width), 0, 2, 1, 3)
    v = split(net.linear(x, width, width), 0, 2, 1, 3)
    if past:
        k, v = net.op("Concat", past[0], k, axis=2), net.op("Concat", past[1], v, axis=2)
    scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = net.op("Div", scores, net.const(np.sqrt(size)))
    if mask:
        scores = net.op("Add", scores, mask)
    y = net.op("MatMul", net.op("Softmax", scores, axis=-1), v)
    y = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), net.ints(1, length, width))
    return net.linear(y, width, width), k, v


def block(net, x, length, width, heads, norm_first, tanh=False, mask=None, past=None):
    def forward(x):
        return net.linear(net.gelu(net.linear(x, width, 4 * width), tanh), 4 * width, width)
    given = net.layer_norm(x, width) if norm_first else x
    y, k, v = attention(net, given, length, width, heads, mask, past)
    x = net.op("Add", x, y)
    if norm_first:
        return net.op("Add", x, forward(net.layer_norm(x, width))), k, v
    x = net.layer_norm(x, width)
    return net.layer_norm(net.op("Add", x, forward(x)), width), k, v


def encoder(width, layers, length=128, words=30522):
    net = Net()
    ids = net.input("input_ids", net.rng.integers(0, words, [1, length]))
    seen = net.input("attention_mask", np.ones([1, length], np.int64))
    kinds = net.input("token_type_ids", np.zeros([1, length], np.int64))
    x = net.op("Gather", net.normal([words, width], 0.5), ids)
    x = net.op("Add", x, net.normal([1, length, width], 0.5))
    x = net.op("Add", x, net.op("Gather", net.normal([2, width], 0.5), kinds))
    x = net.layer_norm(x, width)
    hidden = net.op("Sub", net.const(1), net.op("Cast", net.op("Unsqueeze", seen, net.ints(1, 2)), to=1))
    mask = net.op("Mul", hidden, net.const(-10000))
    for _ in range(layers):
        x, _, _ = block(net, x, length, width, 12, norm_first=False, mask=mask)
    net.output("last_hidden_state", x)
    first = net.op("Gather", x, net.const(0, np.int64), axis=1)
    net.output("pooler_output", net.op("Tanh", net.classifier(first, width, width)))
    return net, net.values


def bert_base_128():
    return encoder(768, 12)


def minilm_l6_128():
    return encoder(384, 6)


def vit_b_16():
    net, width = Net(), 768
    x = net.input("input", net.rng.standard_normal([1, 3, 224, 224]).astype(np.float32))
    x = net.conv(x, 3, width, 16, 16, pad=0)
    x = net.op("Transpose", net.op("Reshape", x, net.ints(1, width, 196)), perm=[0, 2, 1])
    x = net.op("Concat", net.normal([1, 1, width], 0.5), x, axis=1)
    x = net.op("Add", x, net.normal([1, 197, width], 0.02))
    for _ in range(12):
        x, _, _ = block(net, x, 197, width, 12, norm_first=True)
    x = net.op("Gather", net.layer_norm(x, width), net.const(0, np.int64), axis=1)
    net.output("output", net.classifier(x, width))
    return net, net.values


def decoder(length, past, words=50257, width=768, layers=6, heads=12):
    """Half of GPT-2's layers, at the width of its smallest size."""
    net = Net()
    ids = net.input("input_ids", net.rng.integers(0, words, [1, length]))
    table = net.normal([words, width], 1 / np.sqrt(width))
    x = net.op("Gather", table, ids)
    places = net.normal([1024, width], 0.01)
    if past:
        place = net.input("position_ids", np.full([1, length], past))
        cache = net.input("past", net.rng.standard_normal([layers, 2, 1, heads, past, width // heads]).astype(np.float32))
        x, mask = net.op("Add", x, net.op("Gather", places, place)), None
    else:
        x = net.op("Add", x, net.op("Slice", places, net.ints(0), net.ints(length), net.ints(0)))
        mask = net.const(np.triu(np.full([length, length], -10000), 1))
    present = []
    for i in range(layers):
        old = None
        if past:
            own = net.op("Gather", cache, net.const(i, np.int64), axis=0)
            old = [net.op("Gather", own, net.const(j, np.int64), axis=0) for j in (0, 1)]
        x, k, v = block(net, x, length, width, heads, norm_first=True, tanh=True, mask=mask, past=old)
        if past:
            pair = [net.op("Unsqueeze", t, net.ints(0)) for t in (k, v)]
            present.append(net.op("Unsqueeze", net.op("Concat", *pair, axis=0), net.ints(0)))
    x = net.layer_norm(x, width)
    net.output("logits", net.op("MatMul", x, net.op("Transpose", table, perm=[1, 0])))
    if past:
        net.output("present", net.op("Concat", *present, axis=0))
    return net, net.values


def gpt2_6l_prefill_128():
    return decoder(128, 0)


def gpt2_6l_step_past128():
    return decoder(1, 128)


def recurrent(kind, gates, directions, hidden=256, steps=100, features=80):
    net = Net()
    x = net.input("input", net.rng.standard_normal([steps, 1, features]).astype(np.float32))
    both = {"direction": "bidirectional"} if directions == 2 else {}
    if kind == "GRU":
        both["linear_before_reset"] = 1
    cin = features
    for _ in range(2):
        deviation = 1 / np.sqrt(hidden)
        w = net.normal([directions, gates * hidden, cin], deviation)
        r = net.normal([directions, gates * hidden, hidden], deviation)
        y = net.op(kind, x, w, r, net.normal([directions, 2 * gates * hidden], deviation), hidden_size=hidden, **both)
        cin = directions * hidden
        x = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]), net.ints(steps, 1, cin))
    net.output("output", net.linear(x, cin, 128))
    return net, net.values


def lstm_bi2_100():
    return recurrent("LSTM", 4, 2)


def gru_2_100():
    return recurrent("GRU", 3, 1)


NETS = {f.__name__: f for f in (bert_base_128, minilm_l6_128, vit_b_16, gpt2_6l_prefill_128, gpt2_6l_step_past128, lstm_bi2_100, gru_2_100)}
