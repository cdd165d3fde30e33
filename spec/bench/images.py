"""spec/bench/images.py: files for images.sh, and torchvision's side of it."""
import os
import resource
import sys
import time

import numpy as np
import torch
from PIL import Image
from torchvision import datasets, transforms


def make(root):
    """Smooth colours and a little noise: files of photographs' size."""
    random = np.random.default_rng(0)
    for label in range(2):
        os.makedirs(f"{root}/{label}")
        for i in range(200):
            small = Image.fromarray(random.integers(0, 256, (24, 32, 3), dtype=np.uint8))
            pixels = np.asarray(small.resize((500, 375), Image.BICUBIC)).astype(int)
            pixels = (pixels + random.integers(-12, 13, pixels.shape)).clip(0, 255)
            Image.fromarray(pixels.astype(np.uint8)).save(f"{root}/{label}/{i}.jpg", quality=90)


def cpu():
    """Seconds of the processor, of this process and of children that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


def read(root, workers):
    torch.set_num_threads(1)
    transform = transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])
    data = datasets.ImageFolder(root, transform)
    loader = torch.utils.data.DataLoader(data, 50, shuffle=True, num_workers=workers, persistent_workers=True)
    before, total = cpu(), 0
    for _ in range(3):
        start, n = time.time(), 0
        for images, _ in loader:
            n += len(images)
        rate, total = n / (time.time() - start), total + n
    del loader  # its workers end, and their time is known
    print(f"torchvision {rate:.0f} {1000 * (cpu() - before) / total:.2f}", flush=True)


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    read(sys.argv[2], int(sys.argv[3]))
