# spec/nn/torch_recurrent.py: the numbers of spec/nn/recurrent_spec.lua, from PyTorch.
#
#   python torch_recurrent.py
#
# Parameters (in the order of their names), inputs and states are sines, which the spec makes too.
# Of the results, and of the gradients of x, the states and the parameters, it prints the sums of
# the elements times 1, 2, 3, ... modulo 7.
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.set_default_dtype(torch.float64)
N, T, I, H = 3, 4, 2, 3


def sines(shape, place):
    n = torch.Size(shape).numel()
    return torch.sin(torch.arange(n) * 0.37 + place).view(shape)


def filled(module):
    names = sorted(name for name, _ in module.named_parameters())
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        for k, name in enumerate(names):
            parameters[name].copy_(0.9 * sines(parameters[name].shape, k))
    return [parameters[name] for name in names]


def weighed(t):
    return float((t * (torch.arange(t.numel()) % 7 + 1).view(t.shape)).sum())


def show(name, module, lengths=None, stateful=False):
    parameters = filled(module)
    x = sines((N, T, I), 0.5).requires_grad_(True)
    state, leaves = None, [x]
    if stateful:
        layers = module.num_layers * (2 if module.bidirectional else 1)
        outputs = module.proj_size or H
        parts = [sines((layers, N, outputs), 1).requires_grad_(True)]
        if isinstance(module, nn.LSTM):
            parts.append(sines((layers, N, H), 2).requires_grad_(True))
        leaves += parts
        state = tuple(parts) if len(parts) > 1 else parts[0]
    if lengths:
        y, after = module(pack_padded_sequence(x, lengths, True, False), state)
        y, _ = pad_packed_sequence(y, True, total_length=T)
    else:
        y, after = module(x, state)
    results = [y] + (list(after) if isinstance(after, tuple) else [after])
    sum((r * r).sum() for r in results).backward()
    numbers = [weighed(r.detach()) for r in results]
    numbers += [weighed(p.grad) for p in leaves + parameters]
    print(f"  {name} = {{ {', '.join(f'{v:.9g}' for v in numbers)} }},")


def show_cell(name, cell, state):
    parameters = filled(cell)
    x = sines((N, I), 0.5).requires_grad_(True)
    after = cell(x, state)
    results = list(after) if isinstance(after, tuple) else [after]
    sum((r * r).sum() for r in results).backward()
    numbers = [weighed(r.detach()) for r in results]
    numbers += [weighed(p.grad) for p in [x] + parameters]
    print(f"  {name} = {{ {', '.join(f'{v:.9g}' for v in numbers)} }},")


for kind in (nn.LSTM, nn.GRU, nn.RNN):
    name = kind.__name__
    show(name, kind(I, H, batch_first=True))
    show(f"{name}_deep", kind(I, H, num_layers=2, bidirectional=True, bias=False,
                              batch_first=True), None, True)
    show(f"{name}_lengths", kind(I, H, num_layers=2, bidirectional=True, batch_first=True),
         [2, 4, 1], True)
show("RNN_relu", nn.RNN(I, H, nonlinearity="relu", batch_first=True))
show("LSTM_projected", nn.LSTM(I, H, num_layers=2, bidirectional=True, proj_size=2,
                               batch_first=True), [2, 4, 1], True)
h, c = sines((N, H), 1), sines((N, H), 2)
show_cell("LSTMCell", nn.LSTMCell(I, H), (h, c))
show_cell("GRUCell", nn.GRUCell(I, H), h)
show_cell("RNNCell", nn.RNNCell(I, H), h)
