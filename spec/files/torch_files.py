"""Writes spec/files/*.pt: run with a Python that has PyTorch (2.15.0 wrote these).

    python3 spec/files/torch_files.py
"""

import argparse
import collections
import os

import numpy
import torch

here = os.path.dirname(os.path.abspath(__file__))


def save(name, value, **options):
    torch.save(value, os.path.join(here, name), **options)


class Model(torch.nn.Linear):
    pass


class Ordered(collections.OrderedDict):
    pass


torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
net[0].weight.data.copy_(torch.arange(6.0).view(2, 3))
net[0].bias.data.copy_(torch.tensor([0.5, -0.5]))
base = torch.arange(24.0).view(2, 3, 4)
save("state_dict.pt", net.state_dict())
save("values.pt", {
    "names": ["a", "b", None, "é\0"], "shape": torch.Size([2, 3]), "betas": (0.9, 0.999),
    "lr": 1e-3, "steps": 7, "big": -(2**62), "ok": True, "off": False, "nothing": None,
    "groups": [{"params": [0, 1], "lr": 0.1}], "state": {0: {"step": torch.tensor(3.0)}},
    "ordered": collections.OrderedDict(b=1, a=2), "tuple": ((), (1,), (1, 2, 3, 4)),
    "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])), "bytes": b"raw",
}, pickle_protocol=4)
save("views.pt", {
    "base": base, "transposed": base.transpose(0, 2), "row": base[1, 2], "step": base[0, 0, ::2],
    "expanded": base[0, 0, :1].expand(3), "empty": base[:0], "scalar": base[1, 1, 1],
    "tied": base, "large": torch.arange(8300, dtype=torch.int64)[1:],
})
save("dtypes.pt", {str(d)[6:]: torch.tensor([0, 1, 1], dtype=d) for d in [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.uint16, torch.uint8, torch.int8, torch.bool]})
save("float8.pt", torch.tensor([1.0]).to(torch.float8_e4m3fn))
save("complex.pt", torch.tensor([1j]))
save("model.pt", {"net": Model(2, 2)})
old = {"_use_new_zipfile_serialization": False}
save("old.pt", net.state_dict(), **old)
save("old_views.pt", {
    "base": base, "transposed": base.transpose(0, 2), "row": base[1, 2], "tied": base,
    "empty": torch.zeros(0), "uint16": torch.tensor([1, 2], dtype=torch.uint16),
}, pickle_protocol=4, **old)
save("objects.pt", {
    "args": argparse.Namespace(lr=0.5, weight=torch.ones(2), inner=argparse.Namespace(n=[1])),
    "numbers": [numpy.float32(2.5), numpy.int64(3), numpy.bool_(True), numpy.float64(0.1)],
    "array": numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)), "bytes": b"\xff\0",
    "size": torch.Size([2, 3]), "dtype": torch.float32, "devices": [
        torch.device("cpu"), torch.device("cuda:1")],
    "counter": collections.Counter("aab"), "set": {7}, "ordered": Ordered(b=1),
    "default": collections.defaultdict(list, x=[1]), "deque": collections.deque([1, 2]),
    "left": [1j, torch.complex64, numpy.array(["a"]), Model, 4], "w": torch.arange(3.0),
})
torch.serialization.set_crc32_options(False)
save("no_crc.pt", torch.ones(2))
