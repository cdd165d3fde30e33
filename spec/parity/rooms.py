"""spec/parity/rooms.py: calls of lt.linalg and lt.fft in PyTorch; complex numbers become pairs."""
import torch

PAIRS = {"fft.fft", "fft.ifft", "fft.irfft", "fft.fft2", "fft.ifft2", "fft.irfft2", "fft.istft"}
WINDOWS = {"fft.hann_window", "fft.hamming_window"}


def at(d):
    return [at(k) for k in d] if isinstance(d, list) else d - 1 if d > 0 else d


def diagonal(x, by):
    m, n = x.shape[-2:]
    return torch.diag(torch.arange(1, max(m, n) + 1).to(x.dtype) * by)[:m, :n]


MADE = {"apart": lambda x: x + diagonal(x, 8),
        "positive": lambda x: x @ x.mT + diagonal(x, 1),
        "symmetric": lambda x: x + x.mT + diagonal(x, 8)}


def joined(u, vh):
    k = min(u.shape[-1], vh.shape[-2])
    return (u[..., :k] * torch.arange(1, k + 1).to(u.dtype)) @ vh[..., :k, :]


SIGNLESS = {"linalg.eigh": lambda r: [joined(r[1], r[1].mT), r[0]],
            "linalg.svd": lambda r: [joined(r[0], r[2]), r[1]]}


def options_of(case):
    o = dict(case["options"] or {})
    for name in ("dim", "dims", "dim1", "dim2"):
        if name in o:
            o["dim" if name == "dims" else name] = at(o.pop(name))
    if "dtype" in o:
        o["dtype"] = torch.float64
    return o


def called(case, inputs):
    name, args, o = case["room"], case["args"] or [], options_of(case)
    args = [float(a) if isinstance(a, str) and a.endswith("inf") else a for a in args]
    if name in ("fft.stft", "fft.istft"):
        more = {"return_complex": True} if name == "fft.stft" else {}
        return getattr(torch, name[4:])(inputs[0], *args, window=inputs[1], **o, **more)
    if name in WINDOWS:
        return getattr(torch, name[4:])(*args, **o)
    if name == "linalg.lstsq":
        o["driver"] = "gelsd"
    if case.get("list"):
        inputs = [inputs]
    room, last = name.split(".")
    return getattr(getattr(torch, room), last)(*inputs, *args, **o)


def run(case, inputs):
    """The results of a call."""
    inputs = list(inputs)
    if case.get("made"):
        inputs[0] = MADE[case["made"]](inputs[0])
    if case["room"] in PAIRS:
        inputs[0] = torch.view_as_complex(inputs[0].contiguous())
    y = called(case, inputs)
    if torch.is_tensor(y):
        y = [y]
    y = [torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in y]
    return SIGNLESS[case["room"]](y) if case["room"] in SIGNLESS else y
