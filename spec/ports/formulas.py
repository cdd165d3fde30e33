# spec/ports/formulas.py: parameters, inputs and targets by formulas, as formulas.lua makes them.
import math

import torch


def count(shape):
    return torch.arange(math.prod(shape), dtype=torch.int64)


def wave(*shape, place=0.0):
    i = count(shape)
    return torch.sin((i * i % 1009).double() * 0.37 + place).float().view(shape)


def ids(*shape, n, place=0):
    i = count(shape)
    return ((3 * i * i + 7 * i + place) % 1009 % n).view(shape)


def fill(module):
    """Weights of two dims and more by fan-in, other weights around 1, all else around 0."""
    with torch.no_grad():
        for k, (name, p) in enumerate(sorted(module.named_parameters()), 1):
            values = wave(*p.shape, place=k)
            if p.ndim > 1:
                p.copy_(values * math.sqrt(2 * p.shape[0] / p.numel()))
            else:
                p.copy_(values * 0.1 + (1 if name.endswith("weight") else 0))
    return module


def steps(optimizer, loss_of, n=20):
    """The losses of n steps; loss_of gets the number of the step, from 1."""
    losses = []
    for step in range(1, n + 1):
        optimizer.zero_grad()
        loss = loss_of(step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
