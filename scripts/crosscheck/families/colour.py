"""YUV to RGB."""

from ..case import dynamic, one, uniform


def cases():
    for name in ("NV12toRGB", "NV12toBGR"):
        for kind in ("u8", "f32"):
            plane = dict(lo=0, hi=255)
            yield one(name, 8, [uniform(kind, 1, 6, 4, 1, **plane)], tag=f"one-plane-{kind}", fixture=kind == "u8")
            yield one(name, 8, [uniform(kind, 2, 4, 6, 1, **plane), uniform(kind, 2, 2, 3, 2, **plane)], tag=f"two-planes-{kind}", fixture=kind == "f32")
        yield one(name, 8, [dynamic(uniform("u8", 1, 6, 4, 1, lo=0, hi=255))], tag="dynamic")
    for name in ("I420toRGB", "I420toBGR"):
        for kind in ("u8", "f32"):
            plane = dict(lo=0, hi=255)
            yield one(name, 8, [uniform(kind, 1, 6, 4, 1, **plane)], tag=f"one-plane-{kind}", fixture=kind == "f32")
            yield one(name, 8, [uniform(kind, 2, 4, 6, 1, **plane), uniform(kind, 2, 2, 3, 1, **plane), uniform(kind, 2, 2, 3, 1, **plane)],
                      tag=f"three-planes-{kind}", fixture=kind == "u8")
