"""Keras networks with seeded weights: the applications, recurrent nets, a transformer.

Batch normalization gets the statistics of a seeded batch, so that activations stay bounded through deep networks. The
pictures differ in light and shape: noise would look alike everywhere, and normalization would blow up its small differences,
rounding errors among them.
"""

import numpy as np
import tensorflow as tf

SEED = 7


def rng():
    return np.random.default_rng(SEED)


def application(name, size):
    def build():
        return settled(getattr(tf.keras.applications, name)(weights=None, input_shape=(size, size, 3)))
    return build, lambda n: {"": pictures(n, size) * 2 - 1}


def picture(name, size):
    """As `application`, for networks that scale pixels of 0..255 themselves."""
    build, _ = application(name, size)
    return build, lambda n: {"": pictures(n, size) * 255}


def pictures(n, size):
    """Soft shapes of different colours and light, values in 0..1."""
    random = rng()
    y, x = np.mgrid[0:1:size * 1j, 0:1:size * 1j][..., None]
    found = []
    for _ in range(n):
        waves = 0
        for scale in (2, 4, 8, 16):
            direction = random.normal(size=(2, 1, 1, 3)) * scale
            waves = waves + np.sin(2 * np.pi * (direction[0] * x + direction[1] * y + random.random(3))) * random.uniform(0.2, 1, 3)
        light, contrast = random.uniform(0.25, 0.75, 3), random.uniform(0.05, 0.3)
        found.append(np.clip(light + contrast * waves + random.normal(0, 0.02, waves.shape), 0, 1))
    return np.stack(found).astype(np.float32)


def settled(model):
    """Random scales and shifts, and the statistics of a batch that went through."""
    random = rng()
    norms = [layer for layer in layers_of(model) if isinstance(layer, tf.keras.layers.BatchNormalization)]
    for layer in norms:
        if layer.scale:
            layer.gamma.assign(random.uniform(0.6, 1.2, layer.gamma.shape))
        if layer.center:
            layer.beta.assign(random.uniform(-0.2, 0.3, layer.beta.shape))
        layer.momentum = 0.0
    if norms:
        batch = pictures(8, model.inputs[0].shape[1])
        scales = any(isinstance(layer, tf.keras.layers.Rescaling) for layer in model.layers)
        model(batch * 255 if scales else batch * 2 - 1, training=True)
    for layer in norms:
        layer.momentum = 0.99
    for layer in layers_of(model):
        if type(layer).__name__ == "LayerScale":  # starts at 1e-6, which hides the block
            layer.gamma.assign(random.uniform(0.2, 0.6, layer.gamma.shape))
    return model


def layers_of(model):
    for layer in model.layers:
        yield layer
        if isinstance(layer, tf.keras.Model):
            yield from layers_of(layer)


def sequence(body, time=40, features=24):
    """`time` steps in a loop."""
    def build():
        x = tf.keras.Input((time, features))
        return tf.keras.Model(x, body(x))
    return build, lambda n: {"": rng().normal(0, 1, (n, time, features)).astype(np.float32)}


def lstm(x, unroll=False):
    from tensorflow.keras import layers as k
    x = k.LSTM(48, return_sequences=True, unroll=unroll)(x)
    return k.Dense(10, activation="softmax")(k.LSTM(32, unroll=unroll)(x))


def gru(x):
    from tensorflow.keras import layers as k
    x = k.GRU(48, return_sequences=True)(x)
    x = k.GRU(32, reset_after=False)(x)
    return k.Dense(10, activation="softmax")(x)


def bidirectional(x):
    from tensorflow.keras import layers as k
    x = k.Bidirectional(k.LSTM(32, return_sequences=True))(x)
    x = k.Bidirectional(k.GRU(24, return_sequences=True), merge_mode="sum")(x)
    x = k.SimpleRNN(20)(x)
    return k.Dense(10, activation="softmax")(x)


def transformer():
    from tensorflow.keras import layers as k
    words, width, heads = 1000, 128, 4

    def build():
        tokens = tf.keras.Input((32,), dtype="int32", name="tokens")
        x = k.Embedding(words, width)(tokens)
        x = x + k.Embedding(32, width)(tf.range(32))
        for _ in range(3):
            y = k.MultiHeadAttention(heads, width // heads)(x, x)
            x = k.LayerNormalization(epsilon=1e-6)(x + y)
            y = k.Dense(width)(k.Dense(4 * width, activation="gelu")(x))
            x = k.LayerNormalization(epsilon=1e-6)(x + y)
        x = k.GlobalAveragePooling1D()(x)
        return tf.keras.Model(tokens, k.Dense(16, activation="softmax")(x))
    return build, lambda n: {"": rng().integers(0, words, (n, 32)).astype(np.int32)}


# name: (build, inputs of a batch)
NETS = {
    "resnet50": application("ResNet50", 224),
    "mobilenet_v2": application("MobileNetV2", 224),
    "mobilenet_v3_small": picture("MobileNetV3Small", 224),
    "mobilenet_v3_large": picture("MobileNetV3Large", 224),
    "efficientnet_b0": picture("EfficientNetB0", 224),
    "inception_v3": application("InceptionV3", 299),
    "densenet121": application("DenseNet121", 224),
    "nasnet_mobile": application("NASNetMobile", 224),
    "convnext_tiny": picture("ConvNeXtTiny", 224),
    "lstm": sequence(lstm),
    "gru": sequence(gru),
    "bidirectional": sequence(bidirectional),
    "transformer": transformer(),
    "lstm_unrolled": sequence(lambda x: lstm(x, unroll=True), time=8),
}
# The quantizer of TFLite dies on their loops.
NO_INT8 = ("lstm", "gru", "bidirectional")
