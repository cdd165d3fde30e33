# spec/ports/torch_images.py: images beyond classification, and points.
import torch
from formulas import fill, ids, steps, wave
from torch import nn, optim
from torch.nn import functional as F


def unet():
    """U-Net: down, up by transposed convolutions, skips; BCE and Dice."""
    def double(channels, width):
        return nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(),
                             nn.Conv2d(width, width, 3, padding=1), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.bottom = double(1, 6), double(6, 12), double(12, 16)
            self.up2, self.conv2 = nn.ConvTranspose2d(16, 12, 2, stride=2), double(24, 12)
            self.up1, self.conv1 = nn.ConvTranspose2d(12, 6, 2, stride=2), double(12, 6)
            self.out = nn.Conv2d(6, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(F.max_pool2d(a, 2))
            y = self.bottom(F.max_pool2d(b, 2))
            y = self.conv2(torch.cat([self.up2(y), b], dim=1))
            y = self.conv1(torch.cat([self.up1(y), a], dim=1))
            return self.out(y)

    net, x = fill(UNet()), wave(2, 1, 16, 16)
    y = (x > 0.3).float()

    def loss(_):
        logits = net(x)
        p = logits.sigmoid()
        overlap = (2 * (p * y).sum((2, 3)) + 1) / (p.sum((2, 3)) + y.sum((2, 3)) + 1)
        return F.binary_cross_entropy_with_logits(logits, y) + (1 - overlap).mean()

    return steps(optim.Adam(net.parameters(), lr=5e-3), loss)


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


def pointnet():
    """PointNet: the same layers for each point, the maximum over points."""
    net = fill(nn.ModuleDict({
        "points": nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(),
                                nn.Conv1d(16, 32, 1)),
        "head": nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4))}))
    x, y = wave(6, 3, 24), ids(6, n=4)
    return steps(optim.Adam(net.parameters(), lr=0.01), lambda _: F.cross_entropy(
        net["head"](net["points"](x).amax(2)), y))


def spatial_transformer():
    """A network that turns and shifts its input, then classifies it."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.where = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2), nn.ReLU(),
                                       nn.Flatten(), nn.Linear(144, 6))
            self.layers = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(4),
                                        nn.Flatten(), nn.Linear(96, 4))

        def forward(self, x):
            grid = F.affine_grid(self.where(x).view(-1, 2, 3), x.shape, align_corners=False)
            return self.layers(F.grid_sample(x, grid, align_corners=False))

    net, x, y = fill(Net()), wave(6, 1, 16, 16), ids(6, n=4)
    return steps(optim.SGD(net.parameters(), lr=0.05), lambda _: F.cross_entropy(net(x), y))


def super_resolution():
    """Large images of small ones, by pixels that are channels."""
    net = fill(nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(),
                             nn.Conv2d(16, 9, 3, padding=1), nn.PixelShuffle(3)))
    large = wave(2, 1, 24, 24)
    small = F.interpolate(large, size=8, mode="bicubic", antialias=True)
    return steps(optim.Adam(net.parameters(), lr=1e-2), lambda _: F.mse_loss(net(small), large))


def crnn():
    """Reading a line of an image: convolutions, an LSTM over columns, CTC."""
    class CRNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.cnn = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
            self.rnn = nn.LSTM(32, 12, bidirectional=True, batch_first=True)
            self.fc = nn.Linear(24, 6)

        def forward(self, x):
            columns = self.cnn(x).permute(0, 3, 1, 2).flatten(2)
            return self.fc(self.rnn(columns)[0]).log_softmax(-1)

    net, x = fill(CRNN()), wave(3, 1, 8, 24)
    targets = ids(3, 4, n=5) + 1
    columns, lengths = torch.tensor([12, 12, 12]), torch.tensor([4, 2, 3])
    return steps(optim.Adam(net.parameters(), lr=0.01),
                 lambda _: F.ctc_loss(net(x).transpose(0, 1), targets, columns, lengths))


def fcn():
    """FCN (Long et al. 2015): scores of two depths, made larger by bilinear filters."""
    def bilinear(channels, stride):
        up = nn.ConvTranspose2d(channels, channels, 2 * stride, stride, stride // 2, bias=False)
        far = (torch.arange(2 * stride) - (stride - 0.5)).abs() / stride
        with torch.no_grad():
            up.weight.zero_()
            for c in range(channels):
                up.weight[c, c] = (1 - far)[:, None] * (1 - far)
        return up

    class FCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool2 = nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(8, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
            self.pool3 = nn.Sequential(nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(),
                                       nn.MaxPool2d(2))
            self.score2, self.score3 = nn.Conv2d(12, 5, 1), nn.Conv2d(16, 5, 1)

        def forward(self, x):
            a = self.pool2(x)
            y = self.up2(self.score3(self.pool3(a))) + self.score2(a)
            return self.up4(y)

    net, x = fill(FCN()), wave(2, 3, 16, 16)
    net.up2, net.up4 = bilinear(5, 2), bilinear(5, 4)
    y = ids(2, 16, 16, n=6)
    y[y == 5] = 255
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    return steps(optimizer, lambda _: F.cross_entropy(net(x), y, ignore_index=255))
