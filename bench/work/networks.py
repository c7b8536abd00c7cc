"""The six networks in PyTorch, as a good user would write them; sizes can be made small.

Parameters have the same order and shapes as those of `weft.models`, so that states can be handed
over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import nn

WORDS, USERS, ITEMS = 32000, 138493, 26744


class AlexNet(nn.Module):
    def __init__(self, classes=1000, dropout=0.5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(True), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(True), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(True),
            nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(True),
            nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(True), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(9216, 4096), nn.ReLU(True),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(True),
            nn.Linear(4096, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def vgg19(classes=1000, dropout=0.5, size=224, hidden=4096, widths=(64, 128, 256, 512, 512)):
    layers, channels = [], 3
    for width, count in zip(widths, (2, 2, 4, 4, 4), strict=True):
        for _ in range(count):
            layers += [nn.Conv2d(channels, width, 3, 1, 1), nn.ReLU(True)]
            channels = width
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(
        *layers, nn.Flatten(1),
        nn.Linear(channels * (size // 32) ** 2, hidden), nn.ReLU(True), nn.Dropout(dropout),
        nn.Linear(hidden, hidden), nn.ReLU(True), nn.Dropout(dropout), nn.Linear(hidden, classes),
    )  # fmt: skip


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.c1, self.b1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.c2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.b2 = nn.BatchNorm2d(width)
        self.c3, self.b3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.down = nn.Identity()
        if stride != 1 or inputs != outputs:
            projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.down = nn.Sequential(projection, nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)), inplace=True)
        y = F.relu(self.b2(self.c2(y)), inplace=True)
        return F.relu(self.b3(self.c3(y)) + self.down(x), inplace=True)


def resnet50(classes=1000, width=64, blocks=(3, 4, 6, 3)):
    layers, inputs = [], width
    for stage, count in enumerate(blocks):
        for i in range(count):
            layers.append(Bottleneck(inputs, width << stage, 2 if stage and i == 0 else 1))
            inputs = 4 * (width << stage)
    return nn.Sequential(
        nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
        nn.MaxPool2d(3, 2, 1), *layers,
        nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(inputs, classes),
    )  # fmt: skip


def mobilenet(classes=1000, width=1.0):
    def unit(i, o, kernel, stride, groups=1):
        convolution = nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False)
        return [convolution, nn.BatchNorm2d(o), nn.ReLU(True)]

    channels = int(32 * width)
    layers = unit(3, channels, 3, 2)
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for outputs, stride in [*plan, *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        outputs = int(outputs * width)
        layers += unit(channels, channels, 3, stride, channels) + unit(channels, outputs, 1, 1)
        channels = outputs
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(channels, classes)]
    return nn.Sequential(*layers, *head)


class GNMT(nn.Module):
    def __init__(self, words=WORDS, width=1024, dropout=0.2):
        super().__init__()

        def lstm(inputs, both=False):
            return nn.LSTM(inputs, width, bidirectional=both, batch_first=True)

        self.emb = nn.Embedding(words, width)
        self.e1, self.e2 = lstm(width, True), lstm(2 * width)
        self.e3 = nn.ModuleList(lstm(width) for _ in range(2))
        self.d1 = lstm(width)
        self.d2 = nn.ModuleList(lstm(2 * width) for _ in range(3))
        self.q, self.k = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.v = nn.Parameter(torch.randn(width) / width**0.5)
        self.g, self.b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(width))
        self.out = nn.Linear(width, words)
        self.drop = nn.Dropout(dropout)

    def forward(self, source, target):
        x = self.e2(self.drop(self.e1(self.drop(self.emb(source)))[0]))[0]
        for layer in self.e3:
            x = x + layer(self.drop(x))[0]
        y = self.d1(self.drop(self.emb(target)))[0]
        sums = torch.tanh(self.q(y)[:, :, None] + self.k(x)[:, None] + self.b)
        c = torch.softmax(sums @ (self.g * self.v / self.v.norm()), -1) @ x
        y = self.d2[0](torch.cat([self.drop(y), c], -1))[0]
        for layer in list(self.d2)[1:]:
            y = y + layer(torch.cat([self.drop(y), c], -1))[0]
        return self.out(y)


class NeuMF(nn.Module):
    def __init__(self, users=USERS, items=ITEMS, factors=64, hidden=(256, 256, 128, 64)):
        super().__init__()
        self.mu, self.mi = nn.Embedding(users, factors), nn.Embedding(items, factors)
        half = hidden[0] // 2
        self.lu, self.li = nn.Embedding(users, half), nn.Embedding(items, half)
        layers = [m for a, b in pairwise(hidden) for m in (nn.Linear(a, b), nn.ReLU(True))]
        self.mlp = nn.Sequential(*layers)
        self.out = nn.Linear(factors + hidden[-1], 1)

    def forward(self, users, items):
        deep = self.mlp(torch.cat([self.lu(users), self.li(items)], -1))
        return self.out(torch.cat([self.mu(users) * self.mi(items), deep], -1))[:, 0]


@dataclass(frozen=True)
class Network:
    """How a network is made and trained."""

    make: Callable[..., nn.Module]
    batch: int
    images: bool
    loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    optimize: Callable[[nn.Module], torch.optim.Optimizer]


def _loss_of_words(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def _momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def _adam(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)


NETWORKS = {
    "alexnet": Network(AlexNet, 32, True, F.cross_entropy, _momentum),
    "vgg19": Network(vgg19, 4, True, F.cross_entropy, _momentum),
    "resnet50": Network(resnet50, 16, True, F.cross_entropy, _momentum),
    "mobilenet": Network(mobilenet, 16, True, F.cross_entropy, _momentum),
    "gnmt": Network(GNMT, 16, False, _loss_of_words, _adam),
    "ncf": Network(NeuMF, 16384, False, F.binary_cross_entropy_with_logits, _adam),
}
