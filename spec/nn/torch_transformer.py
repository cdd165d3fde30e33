# spec/nn/torch_transformer.py: the numbers of spec/nn/transformer_spec.lua, from PyTorch.
#
#   python torch_transformer.py
#
# Parameters and inputs are sines, which the spec makes too. Of each result and of the gradient of x
# it prints the sums of the elements times 1, 2, 3, ... modulo 7.
import torch
from torch import nn

torch.set_default_dtype(torch.float64)
OFF = {"dropout": 0.0, "batch_first": True}


def sines(shape, place):
    n = torch.Size(shape).numel()
    return torch.sin(torch.arange(n) * 0.37 + place).view(shape)


def filled(module):
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            p.copy_(0.4 * sines(p.shape, k))
    return module


def weighed(t):
    return float((t * (torch.arange(t.numel()) % 7 + 1).view(t.shape)).sum())


def show(name, f):
    x = sines((2, 4, 6), 0.5).requires_grad_(True)
    y = f(x)
    (y * y).sum().backward()
    print(f"  {name} = {{ {weighed(y.detach()):.9g}, {weighed(x.grad):.9g} }},")


memory = sines((2, 3, 6), 2)
ahead = torch.ones(4, 4).triu(1).bool()
padding = torch.tensor([[False, False, False, True], [False, True, False, False]])
attention = filled(nn.MultiheadAttention(6, 2, **OFF))
show("attention", lambda x: attention(x, x, x, key_padding_mask=padding)[0])
show("weights", lambda x: attention(x, x, x, attn_mask=ahead)[1])
apart = filled(nn.MultiheadAttention(6, 2, kdim=5, vdim=3, **OFF))
show("apart", lambda x: apart(x, sines((2, 3, 5), 1), sines((2, 3, 3), 3))[0])
encoder = nn.TransformerEncoderLayer(6, 2, 10, **OFF)
encoder = filled(nn.TransformerEncoder(encoder, 2, nn.LayerNorm(6), enable_nested_tensor=False))
show("encoder", lambda x: encoder(x, mask=ahead, src_key_padding_mask=padding))
first = nn.TransformerEncoderLayer(6, 2, 10, activation="gelu", norm_first=True, **OFF)
filled(first)
show("norm_first", first)
decoder = nn.TransformerDecoderLayer(6, 2, 10, **OFF)
decoder = filled(nn.TransformerDecoder(decoder, 2))
show("decoder", lambda x: decoder(x, memory, tgt_mask=ahead))
