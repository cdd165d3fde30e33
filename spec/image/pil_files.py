"""spec/image/pil_files.py: writes recorded.jsonl: small image files of all kinds, and the pixels that PIL reads of them (those of 16 bits and of palettes' ids: that were written).

    python spec/image/pil_files.py > spec/image/recorded.jsonl
"""
import io
import pathlib
import struct
import sys
import zlib

import numpy as np
import PIL
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recorded  # noqa: E402

ROWS = []
H, W = 9, 13
ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack(rows, bits):
    """[h, w, channels] as bytes, a zero (no filter) before each row."""
    out = b""
    for row in rows.reshape(rows.shape[0], -1):
        if bits == 16:
            out += b"\0" + row.astype(">u2").tobytes()
        elif bits == 8:
            out += b"\0" + row.astype(np.uint8).tobytes()
        else:
            text = "".join(format(int(v), f"0{bits}b") for v in row)
            text += "0" * (-len(text) % 8)
            out += b"\0" + bytes(int(text[k : k + 8], 2) for k in range(0, len(text), 8))
    return out


def png(pixels, bits, kind, interlaced=False, palette=None, transparent=None):
    h, w = pixels.shape[:2]
    header = struct.pack(">IIBBBBB", w, h, bits, kind, 0, 0, int(interlaced))
    data = pack(pixels, bits)
    if interlaced:
        parts = [pixels[y::dy, x::dx] for y, x, dy, dx in ADAM7]
        data = b"".join(pack(p, bits) for p in parts if p.size > 0)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
    if palette is not None:
        out += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    if transparent is not None:
        out += chunk(b"tRNS", bytes(transparent))
    return out + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def smooth(random, h=H, w=W):
    y, x = np.mgrid[0:h, 0:w]
    waves = [127 + 90 * np.sin(x / 3.1 + k) * np.cos(y / 2.7 - k) + random.normal(0, 6, (h, w)) for k in range(3)]
    return Image.fromarray(np.stack(waves, 2).clip(0, 255).astype(np.uint8))


def saved(image, format="JPEG", **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def planes(image):
    a = np.asarray(image)
    return a[None] if a.ndim == 2 else a.transpose(2, 0, 1)


def emit(name, file, mode, pixels):
    kind = "i32" if pixels.max() > 255 else "u8"
    raw = pixels.astype("<i4" if kind == "i32" else np.uint8).tobytes()
    ROWS.append({"name": name, "mode": mode, "dtype": kind, "shape": list(pixels.shape),
                 "file": file.hex(), "pixels": raw.hex()})


def emit_modes(name, file, modes=("rgb", "grey", "rgba")):
    for mode in modes:
        target = {"rgb": "RGB", "grey": "L", "rgba": "RGBA"}[mode]
        image = Image.open(io.BytesIO(file))
        if mode == "grey" and image.mode not in ("L", "1"):
            image = image.convert("RGB")
        emit(f"{name}", file, mode, planes(image.convert(target)))


def pngs(random):
    for bits in (1, 2, 4, 8):
        grey = random.integers(0, 1 << bits, (H, W, 1))
        file = png(grey, bits, 0, interlaced=bits == 2)
        emit_modes(f"grey {bits} bits", file, ("rgb", "grey"))
        emit(f"grey {bits} bits", file, "as_is", (grey * (255 // ((1 << bits) - 1)))[:, :, 0][None])
        palette = random.integers(0, 256, (1 << bits, 3))
        file = png(grey, bits, 3, interlaced=bits == 4, palette=palette, transparent=[0, 100][: 1 << bits])
        emit_modes(f"palette {bits} bits", file)
        emit(f"palette {bits} bits", file, "as_is", grey[:, :, 0][None])
    for kind, channels, name in ((2, 3, "rgb"), (4, 2, "grey alpha"), (6, 4, "rgba")):
        for interlaced in (False, True):
            pixels = random.integers(0, 256, (H, W, channels))
            file = png(pixels, 8, kind, interlaced)
            emit_modes(f"{name} {'interlaced' if interlaced else '8 bits'}", file)
            emit(f"{name}", file, "as_is", pixels.transpose(2, 0, 1))
        pixels = random.integers(0, 65536, (H, W, channels))
        emit(f"{name} 16 bits", png(pixels, 16, kind, channels == 3), "as_is", pixels.transpose(2, 0, 1))
    pixels = random.integers(0, 65536, (H, W, 1))
    emit("grey 16 bits", png(pixels, 16, 0), "as_is", pixels.transpose(2, 0, 1))


def jpegs(random):
    image = smooth(random)
    kinds = {
        "4:2:0": (image, {}), "4:4:4": (image, {"subsampling": 0}), "4:2:2": (image, {"subsampling": 1}),
        "progressive": (image, {"progressive": True}), "grey": (image.convert("L"), {}),
        "grey progressive": (image.convert("L"), {"progressive": True}),
        "cmyk": (image.convert("CMYK"), {}), "one pixel": (smooth(random, 1, 1), {}),
        "17 x 33": (smooth(random, 17, 33), {"quality": 40}), "column": (smooth(random, 21, 1), {}),
    }
    for name, (source, options) in kinds.items():
        file = saved(source, **{"quality": 90, **options})
        image = Image.open(io.BytesIO(file))
        emit(f"jpeg {name}", file, "rgb", planes(image.convert("RGB")))
        if name in ("4:4:4", "grey"):
            emit(f"jpeg {name}", file, "grey", planes(image.convert("L")))


def bmps(random):
    """Those that PIL does not write are made by hand."""
    image = smooth(random)
    kinds = {
        "24 bits": image, "8 bits": image.quantize(17), "1 bit": image.convert("1"),
        "grey": image.convert("L"), "32 bits": None, "4 bits": None, "16 bits": None, "16 bits 565": None,
        "downwards": None, "32 bits alpha": None, "OS/2": None,
    }
    for name, source in kinds.items():
        file = bmp(name, random) if source is None else saved(source, format="BMP")
        emit_modes(f"bmp {name}", file, ("rgb", "grey", "rgba") if name == "32 bits alpha" else ("rgb",))


def bmp(name, random):
    bits = {"32 bits": 32, "32 bits alpha": 32, "4 bits": 4, "downwards": 24, "OS/2": 8}.get(name, 16)
    row = (W * bits + 31) // 32 * 4
    pixels = random.integers(0, 256, H * row, dtype=np.uint8).tobytes()
    masks, palette, method, core = b"", b"", 0, name == "OS/2"
    if name == "16 bits 565":
        masks, method = struct.pack("<III", 0xF800, 0x7E0, 0x1F), 3
    if name == "32 bits alpha":
        masks, method = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000), 3
    if bits <= 8:
        palette = random.integers(0, 256, (1 << bits, 3 if core else 4), dtype=np.uint8).tobytes()
    size = 12 if core else 108 if name == "32 bits alpha" else 40
    if core:
        header = struct.pack("<IHHHH", size, W, H, 1, bits)
    else:
        height = -H if name == "downwards" else H
        header = struct.pack("<IiiHHIIiiII", size, W, height, 1, bits, method, len(pixels), 0, 0, 0, 0)
        header += masks + b"\0" * max(0, size - 40 - len(masks))
    start = 14 + len(header) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(pixels), 0, 0, start) + header + palette + pixels


def webps(random):
    image = smooth(random)
    alpha = image.copy()
    alpha.putalpha(Image.fromarray(random.integers(0, 256, (H, W), dtype=np.uint8)))
    kinds = {
        "lossless": (image, {"lossless": True}), "lossless alpha": (alpha, {"lossless": True, "exact": True}),
        "lossy": (image, {"quality": 80}), "lossy alpha": (alpha, {"quality": 80}),
    }
    for name, (source, options) in kinds.items():
        file = saved(source, format="WEBP", **options)
        emit_modes(f"webp {name}", file, ("rgb", "grey", "rgba") if name == "lossless alpha" else ("rgb",))
        emit(f"webp {name}", file, "as_is", planes(Image.open(io.BytesIO(file))))


def main():
    random = np.random.default_rng(1)
    pngs(random)
    jpegs(random)
    bmps(random)
    webps(random)
    recorded.write("spec/image/pil_files.py", PIL, ROWS)


main()
