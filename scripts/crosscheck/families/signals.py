"""Fourier transforms."""

import numpy as np

from ..case import const, dynamic, one, uniform

OVERREAD = "the CPU kernel reads past the signal when it must be lengthened"


def transform(function, axes, size, real_input, real_output):
    """The same transform by numpy, with OpenVINO's trailing pair of real and imaginary parts."""
    def reference(data):
        values = data if real_input else data[..., 0] + 1j * data[..., 1]
        at = [a % values.ndim for a in axes]
        sizes = size and [values.shape[a] if n == -1 else n for a, n in zip(at, size)]
        result = function(values.astype(np.float64 if real_input else np.complex128), s=sizes, axes=at)
        return [result if real_output else np.stack([result.real, result.imag], -1)]
    return reference


def cases():
    for name, opset, function in (("DFT", 7, np.fft.fftn), ("IDFT", 7, np.fft.ifftn)):
        data = uniform("f32", 2, 4, 5, 2)
        for tag, axes, size in [("one-axis", [2], None), ("two-axes", [1, 2], None), ("negative", [-1], None), ("longer", [1, 2], [6, 7]),
                                ("shorter", [1, 2], [3, -1]), ("power-of-two", [1], [8]), ("three", [0, 1, 2], None)]:
            ins = [data, const("i64", axes)] + ([const("i64", size)] if size else [])
            yield one(name, opset, ins, tag=tag, reference=transform(function, axes, size, False, False), fixture=tag in ("one-axis", "longer"))
        yield one(name, opset, [dynamic(data), const("i64", [1])], tag="dynamic")
        yield one(name, opset, [uniform("f16", 4, 2), const("i64", [0])], tag="f16")
    for tag, axes, size in [("one-axis", [1], None), ("two-axes", [0, 1], None), ("negative", [-1], None), ("longer", [1], [8]), ("odd", [0], None),
                            ("shorter", [0, 1], [2, 4])]:
        ins = [uniform("f32", 3, 6), const("i64", axes)] + ([const("i64", size)] if size else [])
        longer = tag == "longer"
        yield one("RDFT", 9, ins, tag=tag, reference=transform(np.fft.rfftn, axes, size, True, False), fixture=tag in ("two-axes", "longer"),
                  cpu=not longer, known=OVERREAD if longer else "")
        half = [uniform("f32", 3, 4, 2), const("i64", axes)] + ([const("i64", size)] if size else [])
        yield one("IRDFT", 9, half, tag=tag, reference=transform(np.fft.irfftn, axes, size, False, True), fixture=tag in ("two-axes", "longer"),
                  cpu=not longer, known=OVERREAD if longer else "")
    yield one("IRDFT", 9, [uniform("f32", 4, 2), const("i64", [0]), const("i64", [7])], tag="odd-size",
              reference=transform(np.fft.irfftn, [0], [7], False, True))
    yield one("RDFT", 9, [dynamic(uniform("f32", 3, 6)), const("i64", [1])], tag="dynamic")
    yield one("IRDFT", 9, [dynamic(uniform("f32", 3, 4, 2)), const("i64", [1])], tag="dynamic")
    yield from frames()


def frames():
    size, step = const("i64", 8), const("i64", 3)
    window = const("f32", uniform("f32", 8, lo=0.2, hi=1))
    for transposed in (False, True):
        yield one("STFT", 15, [uniform("f32", 2, 24), window, size, step], {"transpose_frames": transposed}, tag=f"batch-t{int(transposed)}", fixture=True)
        yield one("STFT", 15, [uniform("f32", 24), window, size, step], {"transpose_frames": transposed}, tag=f"signal-t{int(transposed)}")
        yield one("STFT", 15, [uniform("f32", 1, 20), const("f32", uniform("f32", 5)), size, const("i64", 4)], {"transpose_frames": transposed},
                  tag=f"short-window-t{int(transposed)}")
    yield one("STFT", 15, [dynamic(uniform("f32", 2, 24)), window, size, step], {"transpose_frames": True}, tag="dynamic")
    for center in (False, True):
        for normalized in (False, True):
            attrs = {"center": center, "normalized": normalized}
            mark = f"center{int(center)}-norm{int(normalized)}"
            yield one("ISTFT", 16, [uniform("f32", 1, 5, 6, 2), window, size, step], attrs, tag=f"{mark}-batch", fixture=center)
            yield one("ISTFT", 16, [uniform("f32", 5, 6, 2), window, size, step], attrs, tag=f"{mark}-signal")
            yield one("ISTFT", 16, [uniform("f32", 1, 5, 6, 2), window, size, step, const("i64", 20)], attrs, tag=f"{mark}-length")
    yield one("ISTFT", 16, [uniform("f32", 1, 5, 6, 2), const("f32", uniform("f32", 5, lo=0.2, hi=1)), size, step],
              {"center": False, "normalized": False}, tag="short-window")
