# spec/gpu/side.py: PyTorch's side of ./dev gpu: `side.py MODEL`; models.lua has the same models.
# Prints lines `NAME VALUE UNIT`.
import math, sys, time
import torch
from torch import nn
import torch.nn.functional as F

torch.set_default_device("cuda")


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.position(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


class Bottleneck(nn.Module):
    def __init__(self, start, width, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(start, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.project = None
        if stride != 1 or start != 4 * width:
            self.project = nn.Sequential(nn.Conv2d(start, 4 * width, 1, stride=stride, bias=False),
                                         nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y))
        return F.relu(y + (self.project(x) if self.project else x))


class ResNet(nn.Module):
    def __init__(self, width, stages, classes):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.norm, blocks, start = nn.BatchNorm2d(width), [], width
        for stage, count in enumerate(stages):
            for k in range(count):
                blocks.append(Bottleneck(start, width, 2 if k == 0 and stage > 0 else 1))
                start = 4 * width
            width *= 2
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(start, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 3, stride=2, padding=1)
        return self.head(self.blocks(x).mean((2, 3)))


class MLP(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(layers)])

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


def seconds(fn):
    def window(n):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            fn()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / n

    n = max(3, math.ceil(0.3 / window(3)))
    return min(window(n) for _ in range(5))


def case(name):
    if name == "gpt2":
        net, dtype = GPT(12, 768, 12, 1024, 50304), torch.bfloat16
        x, y = torch.randint(0, 50304, (8, 1024)), torch.randint(0, 50304, (8192,))
        optimizer = torch.optim.AdamW(net.parameters(), lr=3e-4, weight_decay=0.1, fused=True)
    elif name == "resnet50":
        net, dtype = ResNet(64, (3, 4, 6, 3), 1000), torch.float16
        x, y = torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    else:
        net, dtype = MLP(24, 64), None
        x, y = torch.randn(16, 64), torch.randint(0, 64, (16,))
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    return net, dtype, x, y, optimizer


def measure(name, label, compiled):
    net, dtype, x, y, optimizer = case(name)
    forward = torch.compile(net) if compiled else net
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = F.cross_entropy(forward(x).float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    step()
    print("%s_%s %.6g ms" % (name, label, seconds(step) * 1e3), flush=True)


def measure_attention():  # 2 products forward, 5 backward, each of half the scores
    b, h, t, d = 16, 12, 1024, 64
    q, k, v, g = (torch.randn(b, h, t, d).bfloat16() for _ in range(4))
    product = b * h * t * t * d

    def attend():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def both():
        q.grad = k.grad = v.grad = None
        attend().backward(g)

    print("attention_forward_torch %.6g TFLOP/s" % (2 * product / seconds(attend) / 1e12))
    for x in (q, k, v):
        x.requires_grad_()
    print("attention_both_torch %.6g TFLOP/s" % (7 * product / seconds(both) / 1e12))


if sys.argv[1] == "attention":
    measure_attention()
else:
    measure(sys.argv[1], "torch", False)
    measure(sys.argv[1], "torch_compile", True)
