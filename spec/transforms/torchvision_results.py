"""spec/transforms/torchvision_results.py: writes recorded.jsonl: what torchvision's transforms make of a small image, where they leave nothing to chance; resizing by PIL.

    python spec/transforms/torchvision_results.py > spec/transforms/recorded.jsonl
"""
import pathlib
import sys

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import recorded  # noqa: E402

ROWS = []
BILINEAR, NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST


def source(h=11, w=14, channels=3):
    """As in the spec: waves that need no random numbers."""
    k, y, x = np.mgrid[0:channels, 0:h, 0:w]
    return torch.from_numpy(((k * 83 + y * 37 + x * 29 + x * y * 5) % 256).astype(np.uint8))


def emit(code, result, apart=0, few=0):
    kind = "f32" if result.dtype == torch.float32 else "u8"
    a = result.contiguous().numpy()
    raw = a.astype("<f4" if kind == "f32" else np.uint8).tobytes().hex()
    ROWS.append({"code": code, "dtype": kind, "shape": list(a.shape), "apart": apart, "few": few, "values": raw})


def pil(image, size, filter):
    out = Image.fromarray(image.permute(1, 2, 0).numpy()).resize((size[1], size[0]), filter)
    return torch.from_numpy(np.asarray(out).copy()).permute(2, 0, 1)


def resizes(u8, f32):
    for size in ((5, 6), (20, 9), (11, 30), (3, 14), (1, 1)):
        for name, filter in (("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC), ("nearest", Image.NEAREST)):
            emit(f'T.Resize({{{size[0]}, {size[1]}}}, {{interpolation = "{name}"}})(u8)', pil(u8, size, filter))
    for size in ((5, 6), (20, 30)):
        emit(f"T.Resize{{{size[0]}, {size[1]}}}(u8)", F.resize(u8, list(size), antialias=True), apart=1)
        for name in ("bilinear", "bicubic"):
            result = F.resize(f32, list(size), getattr(InterpolationMode, name.upper()), antialias=True)
            emit(f'T.Resize({{{size[0]}, {size[1]}}}, {{interpolation = "{name}"}})(f32)', result, 2e-6)
    emit("T.Resize(8)(u8)", F.resize(u8, [8]), apart=1)
    emit("T.Resize(8, {max_size = 9})(u8)", F.resize(u8, [8], max_size=9), apart=1)


def places(u8):
    emit("T.CenterCrop(6)(u8)", F.center_crop(u8, [6, 6]))
    emit("T.CenterCrop{15, 5}(u8)", F.center_crop(u8, [15, 5]))
    emit("T.CenterCrop{20, 21}(u8)", F.center_crop(u8, [20, 21]))
    emit("T.RandomHorizontalFlip{p = 1}(u8)", F.horizontal_flip(u8))
    emit("T.RandomVerticalFlip{p = 1}(u8)", F.vertical_flip(u8))
    for mode in ("constant", "edge", "reflect", "symmetric"):
        emit(f'T.Pad({{1, 2, 3, 4}}, {{padding_mode = "{mode}"}})(u8)', F.pad(u8, [1, 2, 3, 4], padding_mode=mode))
    emit("T.Pad(2, {fill = {9, 8, 7}})(u8)", F.pad(u8, [2], fill=[9, 8, 7]))
    emit("T.Pad({-1, -2, 3, -4})(u8)", F.pad(u8, [-1, -2, 3, -4]))


def warps(u8, f32):
    for name, mode in (("nearest", NEAREST), ("bilinear", BILINEAR)):
        far = 0 if mode == NEAREST else 1
        few = 0.02 if mode == NEAREST else 0
        for angle in (30, -133):
            emit(f'T.RandomRotation({{{angle}, {angle}}}, {{interpolation = "{name}"}})(u8)',
                 F.rotate(u8, angle, mode, fill=0), far, few)
        for angle in (90, -90, 180):
            emit(f'T.RandomRotation({{{angle}, {angle}}}, {{interpolation = "{name}", expand = true}})(u8)',
                 F.rotate(u8, angle, mode, expand=True, fill=0))
        emit(f'T.RandomRotation({{25, 25}}, {{interpolation = "{name}", expand = true, fill = 50}})(u8)',
             F.rotate(u8, 25, mode, expand=True, fill=50), far, few)
        emit(f'T.RandomRotation({{25, 25}}, {{interpolation = "{name}", center = {{2, 3}}}})(u8)',
             F.rotate(u8, 25, mode, center=[2, 3], fill=0), far, few)
        options = f'{{scale = {{1.3, 1.3}}, shear = {{10, 10, -5, -5}}, interpolation = "{name}", fill = {{1, 2, 3}}}}'
        emit(f"T.RandomAffine({{20, 20}}, {options})(u8)",
             F.affine(u8, 20, [0, 0], 1.3, [10, -5], mode, fill=[1, 2, 3]), far, few)
    emit('T.RandomAffine({20, 20}, {interpolation = "bilinear"})(f32)',
         F.affine(f32, 20, [0, 0], 1.0, [0, 0], BILINEAR, fill=0), 2e-5)
    emit('T.RandomPerspective{p = 1, distortion_scale = 0}(u8)', u8, 1)


def colours(u8, f32, grey):
    for name, image, apart in (("u8", u8, 1), ("f32", f32, 2e-6), ("grey", grey, 1)):
        for factor in (0.4, 1.7):
            both = f"{{{factor}, {factor}}}"
            emit(f"T.ColorJitter{{brightness = {both}}}({name})", F.adjust_brightness(image, factor), apart)
            emit(f"T.ColorJitter{{contrast = {both}}}({name})", F.adjust_contrast(image, factor), apart)
            emit(f"T.ColorJitter{{saturation = {both}}}({name})", F.adjust_saturation(image, factor), apart)
            emit(f"T.RandomAdjustSharpness({factor}, {{p = 1}})({name})", F.adjust_sharpness(image, factor), apart)
        for turn in (-0.4, 0.1):
            emit(f"T.ColorJitter{{hue = {{{turn}, {turn}}}}}({name})", F.adjust_hue(image, turn), max(apart, 1e-5))
        emit(f"T.RandomInvert{{p = 1}}({name})", F.invert(image))
        emit(f"T.RandomPosterize(3, {{p = 1}})({name})", F.posterize(image, 3))
        threshold = 0.4 if name == "f32" else 100
        emit(f"T.RandomSolarize({threshold}, {{p = 1}})({name})", F.solarize(image, threshold))
        emit(f"T.RandomAutocontrast{{p = 1}}({name})", F.autocontrast(image), apart if apart < 1 else 1)
        emit(f"T.GaussianBlur({{3, 5}}, {{sigma = 1.1}})({name})", F.gaussian_blur(image, [5, 3], [1.1]), apart)
        emit(f"T.Grayscale{{num_output_channels = 3}}({name})", F.rgb_to_grayscale(image, 3), apart)
    emit("T.RandomEqualize{p = 1}(u8)", F.equalize(u8))
    emit("T.Grayscale{}(u8)", F.rgb_to_grayscale(u8), 1)
    emit("T.RandomGrayscale{p = 1}(f32)", F.rgb_to_grayscale(f32, 3), 2e-6)


def types(u8, f32):
    emit('T.ToDtype("f32", {scale = true})(u8)', F.to_dtype(u8, torch.float32, scale=True), 1e-7)
    emit('T.ToDtype("f32")(u8)', F.to_dtype(u8, torch.float32))
    emit('T.ToDtype("u8", {scale = true})(f32)', F.to_dtype(f32, torch.uint8, scale=True))
    emit("T.ToTensor()(u8)", u8 / 255)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    emit("T.Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})(f32)", F.normalize(f32, mean, std), 1e-6)
    emit("T.Compose{T.ToTensor(), T.Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225})}(u8)",
         F.normalize(u8 / 255, mean, std), 1e-6)


def main():
    u8, grey = source(), source(channels=1)
    f32 = u8 / 255
    resizes(u8, f32)
    places(u8)
    warps(u8, f32)
    colours(u8, f32, grey)
    types(u8, f32)
    recorded.write("spec/transforms/torchvision_results.py", torchvision, ROWS)


main()
