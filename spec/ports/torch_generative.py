# spec/ports/torch_generative.py: models that make data. Random numbers are waves.
import math

import torch
from formulas import fill, ids, steps, wave
from torch import nn, optim
from torch.nn import functional as F


def autoencoder():
    """Lightning's first model."""
    net = fill(nn.ModuleDict({
        "encoder": nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3)),
        "decoder": nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))}))
    batches = wave(24, 1, 8, 8).split(8)

    def loss(step):
        x = batches[(step - 1) % 3].flatten(1)
        return F.mse_loss(net["decoder"](net["encoder"](x)), x)

    return steps(optim.Adam(net.parameters(), lr=1e-2), loss)


def vae():
    """pytorch/examples: a variational autoencoder."""
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1, self.fc21, self.fc22 = nn.Linear(64, 32), nn.Linear(32, 4), nn.Linear(32, 4)
            self.fc3, self.fc4 = nn.Linear(4, 32), nn.Linear(32, 64)

        def forward(self, x, noise):
            h = F.relu(self.fc1(x))
            mu, logvar = self.fc21(h), self.fc22(h)
            z = mu + noise * torch.exp(0.5 * logvar)
            return torch.sigmoid(self.fc4(F.relu(self.fc3(z)))), mu, logvar

    net, x = fill(VAE()), (wave(8, 64) > 0).float()

    def loss(step):
        y, mu, logvar = net(x, wave(8, 4, place=step))
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        return F.binary_cross_entropy(y, x, reduction="sum") + kld

    return steps(optim.Adam(net.parameters(), lr=3e-3), loss)


def _adversaries(G, D, real, noise, losses):
    """A step of each network on Adam(0.5, 0.999); the sum of their losses."""
    bce, n = nn.BCEWithLogitsLoss(), len(real)
    for_d, for_g = (optim.Adam(net.parameters(), lr=2e-3, betas=(0.5, 0.999)) for net in (D, G))
    for step in range(1, 21):
        z = noise(step)
        loss_d = bce(D(real), torch.ones(n, 1)) + bce(D(G(z).detach()), torch.zeros(n, 1))
        for_d.zero_grad()
        loss_d.backward()
        for_d.step()
        loss_g = bce(D(G(z)), torch.ones(n, 1))
        for_g.zero_grad()
        loss_g.backward()
        for_g.step()
        losses.append((loss_d + loss_g).item())
    return losses


def gan():
    """A GAN of linear layers, by manual optimization."""
    G = fill(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 36), nn.Tanh()))
    D = fill(nn.Sequential(nn.Linear(36, 32), nn.GELU(), nn.Linear(32, 1)))
    return _adversaries(G, D, wave(8, 36), lambda step: wave(8, 8, place=step), [])


def dcgan():
    """DCGAN: transposed convolutions with batch norm against strided ones with LeakyReLU."""
    G = fill(nn.Sequential(
        nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh()))
    D = fill(nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2),
        nn.Conv2d(8, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2),
        nn.Conv2d(16, 1, 4, 1, 0, bias=False), nn.Flatten()))
    return _adversaries(G, D, wave(8, 1, 16, 16), lambda step: wave(8, 8, 1, 1, place=step), [])


def wgan_gp():
    """The critic of a Wasserstein GAN with gradient penalty: second derivatives."""
    critic = fill(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)))
    real, fake, share = wave(12, 6), wave(12, 6, place=1), wave(12, 1, place=2) * 0.5 + 0.5

    def loss(_):
        mixed = (share * real + (1 - share) * fake).requires_grad_()
        grad, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (grad.norm(2, dim=1) - 1).square().mean()
        return critic(fake).mean() - critic(real).mean() + 10 * penalty

    return steps(optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9)), loss)


def vq_vae():
    """VQ-VAE: the nearest vectors of a codebook, gradients straight through."""
    net = fill(nn.ModuleDict({"encoder": nn.Linear(16, 4), "codebook": nn.Embedding(8, 4),
                              "decoder": nn.Linear(4, 16)}))
    x = wave(24, 16)

    def loss(_):
        z = net["encoder"](x)
        nearest = torch.cdist(z, net["codebook"].weight).argmin(1)
        q = net["codebook"](nearest)
        y = net["decoder"](z + (q - z).detach())
        return F.mse_loss(y, x) + F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())

    return steps(optim.Adam(net.parameters(), lr=5e-3), loss)


def real_nvp():
    """RealNVP: a normalizing flow of affine couplings."""
    class Coupling(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 4))

        def forward(self, x):
            a, b = x.chunk(2, dim=1)
            log_scale, shift = self.net(a).chunk(2, dim=1)
            log_scale = log_scale.tanh()
            return torch.cat([b * log_scale.exp() + shift, a], dim=1), log_scale.sum(1)

    flow, x = fill(nn.ModuleList(Coupling() for _ in range(4))), wave(24, 4) * 2
    prior = torch.distributions.Normal(0.0, 1.0)

    def loss(_):
        z, log_det = x, 0
        for coupling in flow:
            z, more = coupling(z)
            log_det = log_det + more
        return -(prior.log_prob(z).sum(1) + log_det).mean()

    return steps(optim.Adam(flow.parameters(), lr=5e-3), loss)


def ddpm():
    """A denoising diffusion model: embedded times, group norm, noise as the target."""
    class Block(nn.Module):
        def __init__(self, channels, width):
            super().__init__()
            self.norm = nn.GroupNorm(4, channels)
            self.conv = nn.Conv2d(channels, width, 3, padding=1)
            self.time = nn.Linear(16, width)

        def forward(self, x, t):
            return self.conv(F.silu(self.norm(x))) + self.time(t)[:, :, None, None]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU())
            self.inp, self.out = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 1, 3, padding=1)
            self.block1, self.block2 = Block(8, 8), Block(8, 8)

        def forward(self, x, t):
            angle = t.unsqueeze(1) * torch.exp(-math.log(10000) * torch.arange(8) / 8)
            t = self.time(torch.cat([angle.sin(), angle.cos()], dim=1))
            y = self.inp(x)
            y = y + self.block2(self.block1(y, t), t)
            return self.out(y)

    net, x = fill(Net()), wave(4, 1, 8, 8)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100), dim=0)

    def loss(step):
        t, noise = ids(4, n=100, place=step), wave(4, 1, 8, 8, place=step)
        share = kept[t].view(-1, 1, 1, 1)
        return F.mse_loss(net(share.sqrt() * x + (1 - share).sqrt() * noise, t), noise)

    return steps(optim.AdamW(net.parameters(), lr=5e-3), loss)
