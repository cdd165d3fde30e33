"""Models that neither torchvision nor Hugging Face has, with the names of parameters that PyTorch's
examples (VAE, DCGAN, the language model) and github.com/milesial/Pytorch-UNet give them."""

import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, inputs, hidden, latent):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc21, self.fc22 = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.fc3, self.fc4 = nn.Linear(latent, hidden), nn.Linear(hidden, inputs)

    def forward(self, x):
        h = self.fc1(x).relu()
        mean = self.fc21(h)
        return self.fc4(self.fc3(mean).relu()).sigmoid(), mean, self.fc22(h)


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs, between=None):
        super().__init__()
        between = between or outputs
        self.double_conv = nn.Sequential(
            nn.Conv2d(inputs, between, 3, padding=1, bias=False), nn.BatchNorm2d(between),
            nn.ReLU(), nn.Conv2d(between, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(inputs, outputs))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, inputs, outputs, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(inputs, outputs, inputs // 2)
        else:
            self.up = nn.ConvTranspose2d(inputs, inputs // 2, 2, stride=2)
            self.conv = DoubleConv(inputs, outputs)

    def forward(self, x, beside):
        x = self.up(x)
        rows, columns = beside.shape[2] - x.shape[2], beside.shape[3] - x.shape[3]
        x = F.pad(x, [columns // 2, columns - columns // 2, rows // 2, rows - rows // 2])
        return self.conv(torch.cat([beside, x], 1))


class OutConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, channels, classes, width=64, bilinear=False):
        super().__init__()
        w, factor = width, 2 if bilinear else 1
        self.inc = DoubleConv(channels, w)
        self.down1, self.down2 = Down(w, 2 * w), Down(2 * w, 4 * w)
        self.down3, self.down4 = Down(4 * w, 8 * w), Down(8 * w, 16 * w // factor)
        self.up1 = Up(16 * w, 8 * w // factor, bilinear)
        self.up2 = Up(8 * w, 4 * w // factor, bilinear)
        self.up3, self.up4 = Up(4 * w, 2 * w // factor, bilinear), Up(2 * w, w, bilinear)
        self.outc = OutConv(w, classes)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(self.down4(x4), x4)
        return self.outc(self.up4(self.up3(self.up2(x, x3), x2), x1))


class DCGAN(nn.Module):
    """Both networks of the example; the sigmoid at the end of its discriminator is left out."""

    def __init__(self, latent, width, channels):
        super().__init__()
        layers, inputs = [], latent
        for i in [3, 2, 1, 0]:
            stride, padding = (1, 0) if i == 3 else (2, 1)
            layers += [nn.ConvTranspose2d(inputs, width << i, 4, stride, padding, bias=False),
                       nn.BatchNorm2d(width << i), nn.ReLU()]
            inputs = width << i
        layers += [nn.ConvTranspose2d(width, channels, 4, 2, 1, bias=False), nn.Tanh()]
        self.generator = nn.ModuleDict({"main": nn.Sequential(*layers)})
        layers, inputs = [], channels
        for i in range(4):
            layers.append(nn.Conv2d(inputs, width << i, 4, 2, 1, bias=False))
            layers += [nn.BatchNorm2d(width << i)] if i else []
            layers.append(nn.LeakyReLU(0.2))
            inputs = width << i
        layers.append(nn.Conv2d(inputs, 1, 4, 1, 0, bias=False))
        self.discriminator = nn.ModuleDict({"main": nn.Sequential(*layers)})

    def forward(self, z):
        images = self.generator.main(z[:, :, None, None])
        return images, self.discriminator.main(images).flatten()


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width, hidden, layers):
        super().__init__()
        self.encoder = nn.Embedding(vocabulary, width)
        self.rnn = nn.LSTM(width, hidden, layers, batch_first=True)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, ids):
        y, (h, c) = self.rnn(self.encoder(ids))
        return self.decoder(y), h, c
