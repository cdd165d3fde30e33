# spec/ports/torch_basics.py: fits, optimizers, ways to train, functions with derivatives.
import math

import torch
from formulas import fill, ids, steps, wave
from torch import nn, optim
from torch.nn import functional as F


def polynomial():
    """Learning PyTorch with examples: y = a + b x + c x^2 + d x^3, by autograd alone."""
    x = torch.linspace(-math.pi, math.pi, 200)
    y = x.sin()
    w = [torch.tensor(0.1 * k, requires_grad=True) for k in range(1, 5)]
    losses = []
    for _ in range(20):
        prediction = w[0] + w[1] * x + w[2] * x**2 + w[3] * x**3
        loss = (prediction - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for p in w:
                p -= 1e-5 * p.grad
                p.grad = None
        losses.append(loss.item())
    return losses


def polynomial_nn():
    """The same, with nn and optim."""
    x = torch.linspace(-math.pi, math.pi, 200)
    powers = x.unsqueeze(1).pow(torch.tensor([1, 2, 3]))
    net = fill(nn.Sequential(nn.Linear(3, 1), nn.Flatten(0, 1)))
    loss_fn = nn.MSELoss(reduction="sum")
    optimizer = optim.RMSprop(net.parameters(), lr=1e-2)
    return steps(optimizer, lambda _: loss_fn(net(powers), x.sin()))


def linear_regression():
    net, x = fill(nn.Linear(3, 1)), wave(16, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
    return steps(optim.SGD(net.parameters(), lr=0.1), lambda _: F.mse_loss(net(x), y))


def logistic_regression():
    net, x = fill(nn.Linear(4, 1)), wave(32, 4)
    y = (x.sum(1, keepdim=True) > 0.2).float()
    optimizer = optim.SGD(net.parameters(), lr=0.5, momentum=0.9, nesterov=True, weight_decay=1e-3)
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.5]))
    return steps(optimizer, lambda _: loss_fn(net(x), y))


def quickstart():
    """Quickstart: an MLP on images, in batches of 8 from 32."""
    net = fill(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32),
                             nn.ReLU(), nn.Linear(32, 10)))
    x, y = wave(32, 1, 8, 8), ids(32, n=10)
    batches = list(zip(x.split(8), y.split(8)))

    def loss(step):
        images, labels = batches[(step - 1) % 4]
        return F.cross_entropy(net(images), labels)

    return steps(optim.SGD(net.parameters(), lr=0.1), loss)


def lbfgs():
    """A small fit by L-BFGS with line search."""
    net = fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)))
    x = torch.linspace(-3, 3, 32).unsqueeze(1)
    optimizer = optim.LBFGS(net.parameters(), max_iter=1, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), x.sin())
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(20)]


def transfer():
    """Transfer learning: a frozen backbone, a new head, StepLR."""
    backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten())
    net = fill(nn.Sequential(backbone, nn.Linear(8 * 6 * 6, 2)))
    for p in net[0].parameters():
        p.requires_grad = False
    x, y = wave(8, 3, 8, 8), ids(8, n=2)
    optimizer = optim.SGD(net[1].parameters(), lr=0.01, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)

    def loss(step):
        if step > 1:
            scheduler.step()
        return F.cross_entropy(net(x), y)

    return steps(optimizer, loss)


def distillation():
    """Knowledge distillation: soft targets of a teacher at temperature 2, and labels."""
    teacher = fill(nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5))).eval()
    student = fill(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5)))
    x, y, T = wave(16, 8), ids(16, n=5), 2.0

    def loss(_):
        with torch.no_grad():
            soft = F.softmax(teacher(x) / T, dim=-1)
        logits = student(x)
        divergence = F.kl_div(F.log_softmax(logits / T, dim=-1), soft, reduction="batchmean")
        return 0.25 * T**2 * divergence + 0.75 * F.cross_entropy(logits, y)

    return steps(optim.Adam(student.parameters(), lr=0.01), loss)


def averaged():
    """An exponential moving average of the weights: the loss of the average after each step."""
    net = fill(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)))
    x = wave(16, 4)
    y = x.prod(1, keepdim=True) + x.sum(1, keepdim=True)
    average = optim.swa_utils.AveragedModel(
        net, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.8))
    optimizer = optim.SGD(net.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        average.update_parameters(net)
        losses.append(F.mse_loss(average(x), y).item())
    return losses


class _Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8)) for _ in range(4))

    def forward(self, x):
        weights, chosen = self.gate(x).topk(2, dim=-1)
        weights = weights.softmax(-1)
        y = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            row, place = torch.where(chosen == k)
            y = y.index_add(0, row, expert(x[row]) * weights[row, place].unsqueeze(-1))
        return y


def mixture_of_experts():
    """A sparse mixture of experts: the best two of four for each row."""
    net, x = fill(_Experts()), wave(12, 8)
    y = x.roll(1, dims=1)
    return steps(optim.AdamW(net.parameters(), lr=0.01), lambda _: F.mse_loss(net(x), y))


def pinn():
    """A physics-informed network: u'' = -u, u(0) = 0, u'(0) = 1."""
    net = fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(),
                             nn.Linear(16, 1)))
    t = torch.linspace(0, 2, 16).unsqueeze(1).requires_grad_()
    start = torch.zeros(1, 1, requires_grad=True)

    def slope(u, t):
        return torch.autograd.grad(u.sum(), t, create_graph=True)[0]

    def loss(_):
        u = net(t)
        residual = slope(slope(u, t), t) + u
        u0 = net(start)
        return (residual.square().mean() + u0.square().sum()
                + (slope(u0, start) - 1).square().sum())

    return steps(optim.Adam(net.parameters(), lr=0.01), loss)


def mixture_density():
    """A mixture density network (Bishop 1994): several answers for one input."""
    net = fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 9)))
    y = torch.linspace(-1, 1, 24).unsqueeze(1)
    x = y + 0.3 * (4 * y).sin()

    def loss(_):
        logits, mean, log_std = net(x).chunk(3, dim=1)
        log_p = torch.distributions.Normal(mean, log_std.exp()).log_prob(y)
        return -torch.logsumexp(logits.log_softmax(1) + log_p, dim=1).mean()

    return steps(optim.Adam(net.parameters(), lr=0.02), loss)


def neural_ode():
    """A neural ODE by four steps of Runge-Kutta."""
    f = fill(nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)))
    x, h = wave(12, 2), 0.25
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])

    def loss(_):
        y = x
        for _ in range(4):
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return F.mse_loss(y, x @ turn)

    return steps(optim.Adam(f.parameters(), lr=0.02), loss)


def maml():
    """Model-agnostic meta-learning: gradients through a step of SGD, on sines."""
    net = fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)))
    names = [name for name, _ in net.named_parameters()]

    def loss(step):
        total = 0
        for task in range(3):
            x = wave(2, 8, 1, place=task) * 3
            y = (x + step + task).sin()
            inner = F.mse_loss(net(x[0]), y[0])
            grads = torch.autograd.grad(inner, list(net.parameters()), create_graph=True)
            fast = {n: p - 0.1 * g for n, p, g in zip(names, net.parameters(), grads)}
            total = total + F.mse_loss(torch.func.functional_call(net, fast, x[1]), y[1])
        return total / 3

    return steps(optim.Adam(net.parameters(), lr=0.01), loss)


def adversarial():
    """FGSM: training on inputs that were moved along the sign of their gradient."""
    net = fill(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3)))
    x, y = wave(16, 8), ids(16, n=3)

    def loss(_):
        inputs = x.clone().requires_grad_()
        grad, = torch.autograd.grad(F.cross_entropy(net(inputs), y), inputs)
        return F.cross_entropy(net(x + 0.1 * grad.sign()), y)

    return steps(optim.SGD(net.parameters(), lr=0.2), loss)


def nerf():
    """A tiny NeRF: frequencies of points, densities and colours, rendered along rays."""
    net = fill(nn.Sequential(nn.Linear(3 + 3 * 8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(),
                             nn.Linear(32, 4)))
    origins, directions = wave(8, 1, 3), F.normalize(wave(8, 1, 3, place=1), dim=-1)
    depths = torch.linspace(0.5, 2, 6)
    points = origins + directions * depths.unsqueeze(1)
    features = torch.cat([points] + [f(points * 2**k) for k in range(4)
                                     for f in (torch.sin, torch.cos)], dim=-1)
    colours = ids(8, 3, n=2).float()

    def loss(_):
        raw = net(features)
        alpha = 1 - torch.exp(-F.softplus(raw[..., 3]) * 0.3)
        seen = torch.cumprod(1 - alpha + 1e-10, dim=-1)
        seen = torch.cat([torch.ones(8, 1), seen[:, :-1]], dim=-1)
        image = ((alpha * seen).unsqueeze(-1) * raw[..., :3].sigmoid()).sum(1)
        return F.mse_loss(image, colours)

    return steps(optim.Adam(net.parameters(), lr=5e-3), loss)
