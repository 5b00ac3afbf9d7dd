"""Fourier transforms."""

from ..case import const, dynamic, one, uniform


def cases():
    for name, opset in (("DFT", 7), ("IDFT", 7)):
        data = uniform("f32", 2, 4, 5, 2)
        for tag, axes, size in [("one-axis", [2], None), ("two-axes", [1, 2], None), ("negative", [-1], None), ("longer", [1, 2], [6, 7]),
                                ("shorter", [1, 2], [3, -1]), ("power-of-two", [1], [8]), ("three", [0, 1, 2], None)]:
            ins = [data, const("i64", axes)] + ([const("i64", size)] if size else [])
            yield one(name, opset, ins, tag=tag, fixture=tag in ("one-axis", "longer"))
        yield one(name, opset, [dynamic(data), const("i64", [1])], tag="dynamic")
        yield one(name, opset, [uniform("f16", 4, 2), const("i64", [0])], tag="f16")
    for tag, axes, size in [("one-axis", [1], None), ("two-axes", [0, 1], None), ("negative", [-1], None), ("longer", [1], [8]), ("odd", [0], None),
                            ("shorter", [0, 1], [2, 4])]:
        ins = [uniform("f32", 3, 6), const("i64", axes)] + ([const("i64", size)] if size else [])
        yield one("RDFT", 9, ins, tag=tag, fixture=tag in ("two-axes", "longer"))
        half = [uniform("f32", 3, 4, 2), const("i64", axes)] + ([const("i64", size)] if size else [])
        yield one("IRDFT", 9, half, tag=tag, fixture=tag in ("two-axes", "longer"))
    yield one("IRDFT", 9, [uniform("f32", 4, 2), const("i64", [0]), const("i64", [7])], tag="odd-size")
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
