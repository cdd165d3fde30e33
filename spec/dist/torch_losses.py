# spec/dist/torch_losses.py: the numbers of spec/dist/torch_spec.lua, from PyTorch in one process.
#
#   python torch_losses.py
#
# Weights and data are sines, which the spec makes too. Prints the losses of 20 steps with batches of
# 16, the last one of 7, for each model as lines of the spec.
import torch
from torch import nn
import torch.nn.functional as F

SAMPLES, BATCH = 311, 16


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 32), nn.Linear(32, 5)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 8, 3)
        self.c = nn.Linear(32, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.a(x.view(-1, 1, 8, 8))), 2)
        return self.c(F.relu(self.b(x)).flatten(1))


def sines(shape, factor, offset):
    n = torch.Size(shape).numel()
    return torch.sin(torch.arange(n, dtype=torch.float64) * factor + offset).view(shape).float()


def losses(net, make_optimizer):
    with torch.no_grad():
        for k, p in enumerate(net.parameters(), 1):
            p.copy_(sines(p.shape, 1.3, k) * 0.2)
    x = sines((SAMPLES, 64), 0.61, 0.0)
    y = x[:, :5].argmax(1)
    optimizer, out = make_optimizer(net.parameters()), []
    for at in range(0, SAMPLES, BATCH):
        loss = F.cross_entropy(net(x[at:at + BATCH]), y[at:at + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return out


def show(name, values):
    print("  %s = {" % name)
    for at in range(0, len(values), 8):
        print("    " + " ".join("%.6f," % v for v in values[at:at + 8]))
    print("  },")


print("-- PyTorch %s" % torch.__version__)
show("sgd", losses(MLP(), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)))
show("adam", losses(MLP(), lambda p: torch.optim.Adam(p, lr=0.01)))
show("conv", losses(Conv(), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)))
