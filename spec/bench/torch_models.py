# spec/bench/torch_models.py: the models of ./dev bench torch and dist; torch_models.lua has the same.
import os
import sys

import torch
from torch import nn
import torch.nn.functional as F


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(784, 256), nn.Linear(256, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))))


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3), nn.Conv2d(32, 64, 3)
        self.norm = nn.BatchNorm2d(32)
        self.a, self.b = nn.Linear(9216, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.b(F.relu(self.a(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads  # of a rank, where they are divided
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary=65, width=128, heads=4, layers=4, length=64):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(65, 256)
        self.lstm = nn.LSTM(256, 256, num_layers=2, batch_first=True)
        self.head = nn.Linear(256, 65)

    def forward(self, ids):
        return self.head(self.lstm(self.token(ids))[0]).flatten(0, 1)


def resnet18():
    import torchvision
    return torchvision.models.resnet18(num_classes=10)


def unet():
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
    import torch_nets
    return torch_nets.UNet(3, 4, 16)


def vit():
    import torchvision
    return torchvision.models.VisionTransformer(32, 4, 6, 3, 192, 768, num_classes=10)


def gpt2(**size):
    import transformers

    class Logits(transformers.GPT2LMHeadModel):
        def forward(self, ids):
            return super().forward(ids, use_cache=False).logits.flatten(0, 1)

    size = size or dict(vocab_size=512, n_positions=128, n_embd=256, n_layer=6, n_head=8)
    return Logits(transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **size))


def gpt2_124m():
    return gpt2(vocab_size=50257)


def gpt128_256():
    return GPT(length=256)


def gpt512():
    return GPT(width=512, heads=8, layers=12, length=128)


NETS = {"gpt128_256": gpt128_256, "gpt512": gpt512,
        "mlp": MLP, "cnn": CNN, "gpt": GPT, "resnet18": resnet18, "unet": unet,
        "vit": vit, "gpt2": gpt2, "gpt2_124m": gpt2_124m, "lstm": LSTM}
BATCH_SIZE = {"mlp": 64, "cnn": 32, "gpt": 12, "resnet18": 8, "unet": 4, "vit": 16, "gpt2": 8,
              "gpt2_124m": 4, "lstm": 32, "gpt128_256": 4, "gpt512": 2}


def make_net(model):
    return NETS[model]()


def make_optimizer(model, net):
    if model in ("cnn", "resnet18", "unet"):
        rate = 0.01 if model == "cnn" else 1e-4
        return torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
    if model == "mlp":
        return torch.optim.Adam(net.parameters(), lr=1e-3)
    return torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)


def batch(model):
    b = BATCH_SIZE[model]
    if model == "mlp":
        return torch.randn(b, 784), torch.randint(0, 10, (b,))
    if model == "cnn":
        return torch.randn(b, 1, 28, 28), torch.randint(0, 10, (b,))
    if model in ("resnet18", "vit"):
        size = 64 if model == "resnet18" else 32
        return torch.randn(b, 3, size, size), torch.randint(0, 10, (b,))
    if model == "unet":
        return torch.randn(b, 3, 64, 64), torch.randint(0, 4, (b, 64, 64))
    if model == "gpt2":
        return torch.randint(0, 512, (b, 128)), torch.randint(0, 512, (b * 128,))
    if model == "gpt2_124m":
        return torch.randint(0, 50257, (b, 64)), torch.randint(0, 50257, (b * 64,))
    if model == "lstm":
        return torch.randint(0, 65, (b, 128)), torch.randint(0, 65, (b * 128,))
    n = {"gpt128_256": 256, "gpt512": 128}.get(model, 64)
    return torch.randint(0, 65, (b, n)), torch.randint(0, 65, (b * n,))
