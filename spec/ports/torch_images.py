# spec/ports/torch_images.py: images beyond classification, and points.
import torch
from formulas import fill, steps, wave
from torch import nn, optim
from torch.nn import functional as F


def triplets():
    """A siamese network: anchors nearer to positives than to negatives."""
    net = fill(nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(72, 8)))
    a, p, n = (wave(6, 1, 8, 8, place=k) for k in range(3))
    loss_fn = nn.TripletMarginLoss(margin=1.0)
    return steps(optim.Adam(net.parameters(), lr=0.01), lambda _: loss_fn(net(a), net(p), net(n)))


def simclr():
    """SimCLR: two views of each image are each other's class (NT-Xent)."""
    net = fill(nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)))
    views = torch.cat([wave(6, 1, 8, 8), wave(6, 1, 8, 8, place=0.4)])
    labels = torch.cat([torch.arange(6, 12), torch.arange(6)])
    itself = torch.eye(12).bool()

    def loss(_):
        z = F.normalize(net(views), dim=1)
        return F.cross_entropy((z @ z.T / 0.5).masked_fill(itself, float("-inf")), labels)

    return steps(optim.SGD(net.parameters(), lr=0.5, momentum=0.9), loss)


def style():
    """Neural style transfer: Gram matrices, and an image trained by L-BFGS."""
    vgg = fill(nn.ModuleList([nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)]))
    vgg.requires_grad_(False)

    def features(x):
        a = F.relu(vgg[0](x))
        return a, F.relu(vgg[1](F.max_pool2d(a, 2)))

    def gram(y):
        rows = y.flatten(1)
        return rows @ rows.T / y.numel()

    content = features(wave(3, 12, 12))[1]
    style = [gram(y) for y in features(wave(3, 12, 12, place=1))]
    image = wave(3, 12, 12, place=2).requires_grad_()
    optimizer = optim.LBFGS([image], max_iter=2)

    def closure():
        optimizer.zero_grad()
        layers = features(image)
        loss = 100 * sum(F.mse_loss(gram(y), s) for y, s in zip(layers, style))
        loss = loss + F.mse_loss(layers[1], content)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(20)]
