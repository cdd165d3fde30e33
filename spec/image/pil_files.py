"""spec/image/pil_files.py: writes spec/image/recorded.lua: small image files of all kinds, and the
pixels that PIL reads of them (those of 16 bits and of palettes' ids: that were written).

    python spec/image/pil_files.py > spec/image/recorded.lua
"""
import io
import struct
import zlib

import numpy as np
from PIL import Image, __version__

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


def saved(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def planes(image):
    a = np.asarray(image)
    return a[None] if a.ndim == 2 else a.transpose(2, 0, 1)


def emit(name, file, mode, pixels):
    shape = ", ".join(map(str, pixels.shape))
    kind = "i32" if pixels.max() > 255 else "u8"
    raw = pixels.astype("<i4" if kind == "i32" else np.uint8).tobytes()
    print(f'  {{ name = "{name}", mode = "{mode}", dtype = "{kind}", shape = {{ {shape} }},')
    for field, data in (("file", file), ("pixels", raw)):
        text = data.hex()
        lines = [text[k : k + 84] for k in range(0, len(text), 84)]
        joined = '"\n      .. "'.join(lines)
        print(f'    {field} = "{joined}",')
    print("  },")


def emit_png(name, file, modes=("rgb", "grey", "rgba")):
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
        emit_png(f"grey {bits} bits", file, ("rgb", "grey"))
        emit(f"grey {bits} bits", file, "as_is", (grey * (255 // ((1 << bits) - 1)))[:, :, 0][None])
        palette = random.integers(0, 256, (1 << bits, 3))
        file = png(grey, bits, 3, interlaced=bits == 4, palette=palette, transparent=[0, 100][: 1 << bits])
        emit_png(f"palette {bits} bits", file)
        emit(f"palette {bits} bits", file, "as_is", grey[:, :, 0][None])
    for kind, channels, name in ((2, 3, "rgb"), (4, 2, "grey alpha"), (6, 4, "rgba")):
        for interlaced in (False, True):
            pixels = random.integers(0, 256, (H, W, channels))
            file = png(pixels, 8, kind, interlaced)
            emit_png(f"{name} {'interlaced' if interlaced else '8 bits'}", file)
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


def main():
    random = np.random.default_rng(1)
    print(f"-- Written by spec/image/pil_files.py: what PIL {__version__} reads.")
    print("-- luacheck: no max line length\n")
    print("return {")
    pngs(random)
    jpegs(random)
    print("}")


main()
