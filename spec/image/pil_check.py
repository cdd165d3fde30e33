"""spec/image/pil_check.py: 200 odd images, read and resized by PIL and by ltrain.

    python spec/image/pil_check.py LTRAIN [SEED]

Modes, depths, palettes, progressive and odd sampling, comments and profiles, 1 x N and N x 1. PNG
must be equal, JPEG within 1; what is resized must be equal to PIL's, and within 1 (bicubic: 2, its
weights have 16 bits) of torchvision's for tensors, where that is installed. Prints what differs;
exits with 1 then.
"""
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
MODES = {"rgb": "RGB", "grey": "L", "rgba": "RGBA"}


def pixels(h, w, channels):
    kind = random.random()
    if kind < 0.2:
        return np.random.randint(0, 256, (h, w, channels), dtype=np.uint8)
    if kind < 0.3:
        return np.full((h, w, channels), random.randrange(256), np.uint8)
    y, x = np.mgrid[0:h, 0:w]
    waves = [127 + 120 * np.sin(x / random.uniform(2, 30) + y / random.uniform(2, 30) + k) for k in range(channels)]
    return np.stack(waves, 2).astype(np.uint8)


def picture():
    h, w = random.choice([(random.randint(1, 150), random.randint(1, 150)), (1, random.randint(1, 90)), (random.randint(1, 90), 1)])
    mode = random.choice(["RGB", "RGB", "RGB", "L", "RGBA", "LA", "P", "1", "CMYK"])
    if mode == "P":
        return Image.fromarray(pixels(h, w, 3)).quantize(random.choice([2, 3, 16, 100, 256]))
    if mode == "1":
        return Image.fromarray(pixels(h, w, 1)[:, :, 0]).convert("1")
    channels = {"RGB": 3, "L": 1, "RGBA": 4, "LA": 2, "CMYK": 4}[mode]
    a = pixels(h, w, channels)
    return Image.fromarray(a[:, :, 0] if channels == 1 else a, mode)


def write(image, path):
    if image.mode in ("RGB", "L", "CMYK") and random.random() < 0.6 or image.mode == "CMYK":
        options = {"quality": random.randint(20, 100), "progressive": random.random() < 0.4,
                   "optimize": random.random() < 0.3, "subsampling": random.choice([0, 1, 2])}
        if random.random() < 0.2:
            options["comment"] = b"a comment"
        if random.random() < 0.2:
            options["restart_marker_blocks"] = random.randint(1, 5)
        image.save(path + ".jpg", **options)
        return path + ".jpg"
    options = {"optimize": random.random() < 0.3, "compress_level": random.randint(0, 9)}
    if image.mode == "P" and random.random() < 0.5:
        options["transparency"] = 0
    image.save(path + ".png", **options)
    return path + ".png"


def planes(image):
    a = np.asarray(image)
    return a[None] if a.ndim == 2 else a.transpose(2, 0, 1)


def expected(path, mode):
    image = Image.open(path)
    if mode == "grey" and image.mode not in ("L", "1"):
        image = image.convert("RGB")
    return image.convert(MODES[mode])


def across_first(image, size, filter):
    """Newer PILs choose which side comes first; ours is the order of all others."""
    return image.resize((size[1], image.height), filter).resize((size[1], size[0]), filter)


def torchvision_resize(a, size, filter):
    try:
        import torch
        from torchvision.transforms.v2 import InterpolationMode, functional
    except ImportError:
        return None
    name = getattr(InterpolationMode, filter.upper())
    return functional.resize(torch.from_numpy(a.copy()), list(size), name, antialias=True).numpy()


def differ(what, got, wanted, apart):
    if got.shape != wanted.shape:
        print(f"{what}: {got.shape} for {wanted.shape}")
        return 1
    far = int(np.abs(got.astype(int) - wanted.astype(int)).max())
    if far > apart:
        print(f"{what}: {far} apart")
    return int(far > apart)


def main():
    ltrain, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    random.seed(seed)
    np.random.seed(seed)
    folder, cases = tempfile.mkdtemp(), []
    for k in range(200):
        path = write(picture(), f"{folder}/{k}")
        size = (random.randint(1, 120), random.randint(1, 120))
        cases.append((path, random.choice(list(MODES)), size, random.choice(["bilinear", "bicubic"])))
    with open(f"{folder}/list", "w") as file:
        for path, mode, (h, w), filter in cases:
            file.write(f"{path} {mode} {h} {w} {filter}\n")
    subprocess.run([ltrain, f"{HERE}/pil_check.lua", f"{folder}/list"], check=True)
    faults = 0
    for path, mode, size, filter in cases:
        image = expected(path, mode)
        a, what = planes(image), f"{os.path.basename(path)} {image.size} {mode}"
        got = np.fromfile(path + ".raw", np.uint8).reshape(a.shape)
        faults += differ(what, got, a, 1 if path.endswith(".jpg") else 0)
        resized = np.fromfile(path + ".resized", np.uint8).reshape(a.shape[0], *size)
        if mode != "rgba":  # which PIL multiplies by the alpha first
            ours = Image.fromarray(got[0] if mode == "grey" else got.transpose(1, 2, 0))
            name = getattr(Image, filter.upper())
            faults += differ(f"{what} {filter} {size}", resized, planes(across_first(ours, size, name)), 0)
        theirs = torchvision_resize(got, size, filter)
        if theirs is not None:
            faults += differ(f"{what} {filter} {size} torchvision", resized, theirs, 1 if filter == "bilinear" else 2)
    print(f"{len(cases)} images, {faults} differ")
    sys.exit(faults > 0)


main()
