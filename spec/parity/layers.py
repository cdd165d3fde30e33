"""spec/parity/layers.py: layers, losses, optimizers and schedulers in PyTorch, for compare.py.

LAYERS, OPTIMIZERS and SCHEDULERS have those whose constructor differs from torch.nn's and
torch.optim's of the same name; dims count from 1 in a case."""
import torch


def at(d):
    return d - 1 if d > 0 else d


class Hardsigmoid(torch.nn.Module):
    """With an exact derivative: PyTorch's sixth is one of f32."""

    def forward(self, x):
        return torch.nn.functional.relu6(x + 3) / 6


class SwiGLU(torch.nn.Module):
    """Not in PyTorch."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        a, b = x.chunk(2, self.dim)
        return torch.nn.functional.silu(a) * b


class BatchFirst(torch.nn.Module):
    """A loss whose first input is [T, N, ...] in PyTorch."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, x, *others):
        return self.loss(x.transpose(0, 1), *others)


LAYERS = {
    "CTCLoss": lambda a, o: BatchFirst(torch.nn.CTCLoss(*a, **o)),
    "Unflatten": lambda a, o: torch.nn.Unflatten(at(a[0]), tuple(a[1])),
    "TransformerEncoderLayer": lambda a, o: torch.nn.TransformerEncoderLayer(
        *a, batch_first=True, **o),
    "TransformerDecoderLayer": lambda a, o: torch.nn.TransformerDecoderLayer(
        *a, batch_first=True, **o),
    "Transformer": lambda a, o: torch.nn.Transformer(*a, batch_first=True, **o),
    "MultiheadAttention": lambda a, o: torch.nn.MultiheadAttention(*a, batch_first=True, **o),
    "GRU": lambda a, o: torch.nn.GRU(*a, batch_first=True, **o),
    "LSTM": lambda a, o: torch.nn.LSTM(*a, batch_first=True, **o),
    "RNN": lambda a, o: torch.nn.RNN(*a, batch_first=True, **o),
    "Flatten": lambda a, o: torch.nn.Flatten(at(o["start_dim"])),
    "Softmax": lambda a, o: torch.nn.Softmax(at(a[0])),
    "LogSoftmax": lambda a, o: torch.nn.LogSoftmax(at(a[0])),
    "Softmin": lambda a, o: torch.nn.Softmin(at(a[0])),
    "Hardsigmoid": lambda a, o: Hardsigmoid(),
    "GLU": lambda a, o: torch.nn.GLU(at(a[0])), "SwiGLU": lambda a, o: SwiGLU(at(a[0])),
}
FIRST = {"MultiheadAttention"}  # whose further results are asked for by an option in ltrain
OPTIMIZERS = {}
SCHEDULERS = {
    "LambdaLR": lambda opt, a, o: torch.optim.lr_scheduler.LambdaLR(opt, lambda n: 1 / (1 + n)),
}


def listed(values):
    """A list as a tuple; false in it is None."""
    return tuple(None if v is False else v for v in values)


def options(case):
    """By Python's names; a list is a tuple there."""
    return {k: listed(v) if isinstance(v, list) else v for k, v in (case["options"] or {}).items()}


def run_layer(case, inputs, tensor):
    """The results of a call (buffers after them), and the parameters in the order of the case."""
    made, o = LAYERS.get(case["layer"]), options(case)
    args = [listed(v) if isinstance(v, list) else v for v in case["args"] or []]
    layer = made(args, o) if made else getattr(torch.nn, case["layer"])(*args, **o)
    layer.double()
    state = layer.state_dict()
    for t in case["state"]:
        state[t["key"]] = tensor(t)
    layer.load_state_dict(state)
    parameters = dict(layer.named_parameters())
    paired = case.get("paired") and len(inputs) > 1
    y = layer(inputs[0], tuple(inputs[1:])) if paired else layer(*inputs)
    results = []
    for result in [y] if torch.is_tensor(y) else y:  # of an LSTM y and (h, c)
        results += [result] if torch.is_tensor(result) else list(result)
    if case["layer"] in FIRST:
        results = results[:1]
    buffers = dict(layer.named_buffers())
    floats = [buffers[k] for k in sorted(buffers) if buffers[k].dtype == torch.float64]
    return results, floats, [parameters[t["key"]] for t in case["state"]]


def run_optimizer(case, params):
    params = [p.detach().clone().requires_grad_() for p in params]
    made = OPTIMIZERS.get(case["optimizer"]) or getattr(torch.optim, case["optimizer"])
    optimizer = made(params, **options(case))

    def closure():
        optimizer.zero_grad()
        loss = 0
        for p in params:
            c = (torch.arange(p.numel()) % 5 + 1).to(p.dtype).reshape(p.shape)
            loss = loss + (c * (p - 1) ** 2).sum().double() / 2
        loss.backward()
        return loss

    for _ in range(case["steps"]):
        optimizer.step(closure)
    return params


def run_scheduler(case):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    name, o, args = case["scheduler"], options(case), case["args"] or []
    if name in SCHEDULERS:
        scheduler = SCHEDULERS[name](optimizer, args, o)
    else:
        scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, *args, **o)
    group, rates, momenta = optimizer.param_groups[0], [], []
    for k in range(case["steps"] + 1):
        rates.append(float(group["lr"]))
        momenta.append(float(group["momentum"]))
        if k < case["steps"]:
            optimizer.step()
            scheduler.step(*([case["metrics"][k]] if case.get("metrics") else []))
    return [torch.tensor(rates, dtype=torch.float64), torch.tensor(momenta, dtype=torch.float64)]
