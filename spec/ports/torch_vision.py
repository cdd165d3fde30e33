# spec/ports/torch_vision.py: images. N batch, C channels.
import torch
from formulas import fill, ids, steps, wave
from torch import nn, optim
from torch.nn import functional as F


def _classify(net, x, n, **options):
    """20 steps of SGD on one batch of images."""
    net, y = fill(net), ids(len(x), n=n)
    optimizer = optim.SGD(net.parameters(), **options)
    return steps(optimizer, lambda _: F.cross_entropy(net(x), y))


def cifar():
    """Training a classifier: the network of the CIFAR-10 tutorial."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 6, 5)
            self.pool = nn.MaxPool2d(2, 2)
            self.conv2 = nn.Conv2d(6, 16, 5)
            self.fc1 = nn.Linear(16 * 5 * 5, 120)
            self.fc2 = nn.Linear(120, 84)
            self.fc3 = nn.Linear(84, 10)

        def forward(self, x):
            x = self.pool(F.relu(self.conv1(x)))
            x = self.pool(F.relu(self.conv2(x)))
            x = F.relu(self.fc1(torch.flatten(x, 1)))
            return self.fc3(F.relu(self.fc2(x)))

    return _classify(Net(), wave(4, 3, 32, 32), 10, lr=0.01, momentum=0.9)


def mnist():
    """pytorch/examples: MNIST, by Adadelta with StepLR."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(1, 8, 3, 1)
            self.conv2 = nn.Conv2d(8, 16, 3, 1)
            self.fc1 = nn.Linear(256, 32)
            self.fc2 = nn.Linear(32, 10)

        def forward(self, x):
            x = F.max_pool2d(F.relu(self.conv2(F.relu(self.conv1(x)))), 2)
            x = F.relu(self.fc1(torch.flatten(x, 1)))
            return F.log_softmax(self.fc2(x), dim=1)

    net, x, y = fill(Net()), wave(8, 1, 12, 12), ids(8, n=10)
    optimizer = optim.Adadelta(net.parameters(), lr=1.0)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.7)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.nll_loss(net(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def alexnet():
    """AlexNet, narrow: a wide stride, overlapping pools, adaptive pooling."""
    features = nn.Sequential(
        nn.Conv2d(3, 8, 7, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, stride=2),
        nn.Conv2d(8, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 8, 3, padding=1), nn.ReLU())
    net = nn.Sequential(features, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.0),
                        nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 5))
    return _classify(net, wave(4, 3, 40, 40), 5, lr=0.02, momentum=0.9)


def vgg():
    """VGG with batch norm, its layers from a list."""
    layers, channels = [], 3
    for width in (8, "M", 16, "M", 16, 16, "M"):
        if width == "M":
            layers += [nn.MaxPool2d(2)]
        else:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
    net = nn.Sequential(nn.Sequential(*layers), nn.Flatten(), nn.Linear(64, 5))
    return _classify(net, wave(6, 3, 16, 16), 5, lr=0.02)


def _conv_norm(channels, width, kernel, **options):
    return nn.Sequential(nn.Conv2d(channels, width, kernel, bias=False, **options),
                         nn.BatchNorm2d(width))


class _Residual(nn.Module):
    def __init__(self, body, shortcut):
        super().__init__()
        self.body, self.shortcut = body, shortcut

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class _Pooled(nn.Module):
    """Features, their mean over height and width, a linear layer."""

    def __init__(self, features, width, n):
        super().__init__()
        self.features, self.fc = features, nn.Linear(width, n)

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


def resnet():
    """ResNet: two basic blocks, the second with a stride."""
    def block(channels, width, stride):
        body = nn.Sequential(_conv_norm(channels, width, 3, stride=stride, padding=1), nn.ReLU(),
                             _conv_norm(width, width, 3, padding=1))
        same = stride == 1 and channels == width
        return _Residual(body, nn.Identity() if same else
                         _conv_norm(channels, width, 1, stride=stride))

    features = nn.Sequential(_conv_norm(3, 8, 3, padding=1), nn.ReLU(), block(8, 8, 1),
                             block(8, 16, 2))
    return _classify(_Pooled(features, 16, 5), wave(6, 3, 12, 12), 5, lr=0.05, momentum=0.9,
                     weight_decay=1e-4)


def resnext():
    """Bottlenecks of ResNet-50, grouped as in ResNeXt."""
    def block(channels, width, stride):
        body = nn.Sequential(_conv_norm(channels, width, 1), nn.ReLU(),
                             _conv_norm(width, width, 3, stride=stride, padding=1, groups=4),
                             nn.ReLU(), _conv_norm(width, 4 * width, 1))
        return _Residual(body, _conv_norm(channels, 4 * width, 1, stride=stride))

    features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
                             block(8, 8, 1), block(32, 8, 2))
    return _classify(_Pooled(features, 32, 5), wave(6, 3, 16, 16), 5, lr=0.01)


def densenet():
    """DenseNet: each layer sees all before it; a transition halves the size."""
    class Layer(nn.Module):
        def __init__(self, channels, growth):
            super().__init__()
            self.norm, self.conv = nn.BatchNorm2d(channels), nn.Conv2d(
                channels, growth, 3, padding=1, bias=False)

        def forward(self, x):
            return torch.cat([x, self.conv(F.relu(self.norm(x)))], dim=1)

    features = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), Layer(8, 4), Layer(12, 4), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 8, 1), nn.AvgPool2d(2), Layer(8, 4), Layer(12, 4), nn.ReLU())
    return _classify(_Pooled(features, 16, 5), wave(6, 3, 10, 10), 5, lr=0.1)


def inception():
    """A block of GoogLeNet: four branches side by side."""
    class Inception(nn.Module):
        def __init__(self):
            super().__init__()
            self.b1 = nn.Conv2d(8, 4, 1)
            self.b2 = nn.Sequential(nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 6, 3, padding=1))
            self.b3 = nn.Sequential(nn.Conv2d(8, 2, 1), nn.ReLU(), nn.Conv2d(2, 4, 5, padding=2))
            self.b4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(8, 4, 1))

        def forward(self, x):
            branches = [self.b1(x), self.b2(x), self.b3(x), self.b4(x)]
            return F.relu(torch.cat(branches, dim=1))

    features = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), Inception())
    return _classify(_Pooled(features, 18, 5), wave(6, 3, 16, 16), 5, lr=0.3)


def squeezenet():
    """SqueezeNet: fire modules, and a convolution in place of the linear layer."""
    class Fire(nn.Module):
        def __init__(self, channels, squeeze, expand):
            super().__init__()
            self.squeeze = nn.Conv2d(channels, squeeze, 1)
            self.expand1x1 = nn.Conv2d(squeeze, expand, 1)
            self.expand3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

        def forward(self, x):
            x = F.relu(self.squeeze(x))
            return F.relu(torch.cat([self.expand1x1(x), self.expand3x3(x)], dim=1))

    net = fill(nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(8, 4, 8), Fire(16, 4, 8), nn.Conv2d(16, 5, 1), nn.AdaptiveAvgPool2d(1),
        nn.Flatten()))
    x, y = wave(6, 3, 20, 20), ids(6, n=5)
    return steps(optim.NAdam(net.parameters(), lr=0.01), lambda _: F.cross_entropy(net(x), y))


class _Inverted(nn.Module):
    """Wider by a 1x1 convolution, depthwise, narrow again, added if the shapes agree."""

    def __init__(self, channels, width, expand, stride, activation, squeeze=None):
        super().__init__()
        hidden = channels * expand
        self.same = stride == 1 and channels == width
        self.expand = nn.Sequential(_conv_norm(channels, hidden, 1), activation())
        self.depthwise = nn.Sequential(
            _conv_norm(hidden, hidden, 3, stride=stride, padding=1, groups=hidden), activation())
        self.squeeze = squeeze(hidden) if squeeze else nn.Identity()
        self.project = _conv_norm(hidden, width, 1)

    def forward(self, x):
        y = self.project(self.squeeze(self.depthwise(self.expand(x))))
        return x + y if self.same else y


def mobilenet():
    """MobileNetV2: inverted residuals with ReLU6."""
    features = nn.Sequential(
        _conv_norm(3, 8, 3, stride=2, padding=1), nn.ReLU6(), _Inverted(8, 8, 2, 1, nn.ReLU6),
        _Inverted(8, 12, 3, 2, nn.ReLU6), _conv_norm(12, 24, 1), nn.ReLU6())
    net, x, y = fill(_Pooled(features, 24, 5)), wave(8, 3, 16, 16), ids(8, n=5)
    optimizer = optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.9, alpha=0.9)
    return steps(optimizer, lambda _: F.cross_entropy(net(x), y))


class _SqueezeExcite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x):
        scale = F.silu(self.fc1(x.mean((2, 3), keepdim=True)))
        return x * torch.sigmoid(self.fc2(scale))


def efficientnet():
    """EfficientNet's block: MBConv with squeeze and excitation."""
    features = nn.Sequential(
        _conv_norm(3, 8, 3, stride=2, padding=1), nn.SiLU(),
        _Inverted(8, 8, 2, 1, nn.SiLU, _SqueezeExcite),
        _Inverted(8, 12, 3, 2, nn.SiLU, _SqueezeExcite))
    return _classify(_Pooled(features, 12, 5), wave(8, 3, 16, 16), 5, lr=0.05, momentum=0.9,
                     nesterov=True)


def convnext():
    """ConvNeXt's block: depthwise 7x7, layer norm over channels, layer scale."""
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width, eps=1e-6)
            self.pwconv1, self.pwconv2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.gamma = nn.Parameter(torch.ones(width))

        def forward(self, x):
            y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
            y = self.pwconv2(F.gelu(self.pwconv1(y))) * self.gamma
            return x + y.permute(0, 3, 1, 2)

    features = nn.Sequential(nn.Conv2d(3, 12, 4, stride=4), Block(12), Block(12))
    net, x, y = fill(_Pooled(features, 12, 5)), wave(4, 3, 32, 32), ids(4, n=5)
    optimizer = optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.05)
    return steps(optimizer, lambda _: F.cross_entropy(net(x), y, label_smoothing=0.1))


def vit():
    """A vision transformer: patches, a class token, learned positions."""
    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 16, 4, stride=4)
            self.class_token = nn.Parameter(torch.zeros(1, 1, 16))
            self.positions = nn.Parameter(torch.zeros(1, 17, 16))
            layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0, activation="gelu",
                                               batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16),
                                                 enable_nested_tensor=False)
            self.head = nn.Linear(16, 5)

        def forward(self, x):
            tokens = self.patch(x).flatten(2).transpose(1, 2)
            tokens = torch.cat([self.class_token.expand(len(x), -1, -1), tokens], dim=1)
            return self.head(self.encoder(tokens + self.positions)[:, 0])

    net, x, y = fill(ViT()), wave(4, 3, 16, 16), ids(4, n=5)
    optimizer = optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=21)

    def loss(step):
        if step > 1:
            scheduler.step()
        return F.cross_entropy(net(x), y)

    return steps(optimizer, loss)


def mlp_mixer():
    """MLP-Mixer: linear layers over positions and over channels in turn."""
    def mlp(width):
        return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(12), nn.LayerNorm(12)
            self.tokens, self.channels = mlp(16), mlp(12)

        def forward(self, x):
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 12, 4, stride=4)
            self.blocks = nn.Sequential(Mixer(), Mixer())
            self.norm, self.head = nn.LayerNorm(12), nn.Linear(12, 5)

        def forward(self, x):
            y = self.blocks(self.patch(x).flatten(2).transpose(1, 2))
            return self.head(self.norm(y).mean(1))

    net, x, y = fill(Net()), wave(4, 3, 16, 16), ids(4, n=5)
    return steps(optim.RAdam(net.parameters(), lr=0.02), lambda _: F.cross_entropy(net(x), y))
