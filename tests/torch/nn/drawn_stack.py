"""Random stacks of layers, built equally from `torch.nn` and `weft.nn`."""

from __future__ import annotations

import numpy as np


class Draws:
    """Random choices; what has them has a generator `rng`."""

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def flag(self):
        return bool(self.rng.integers(2))


class Stack(Draws):
    """Layers over images (N, C, H, W): each is a function from a library's `nn` to a module."""

    def __init__(self, seed, layers):
        self.rng = np.random.default_rng(seed)
        self.channels = self.pick(1, 2, 3, 5, 8, 16, 20)
        self.batch, self.size = self.pick(2, 3, 4, 7), self.pick(5, 8, 9, 13, 16)
        self.inputs = self.rng.standard_normal(
            (self.batch, self.channels, self.size, self.size)
        ).astype("float32")
        self.classes = self.int(2, 7)
        self.labels = self.rng.integers(0, self.classes, self.batch)
        self.layers = []
        width, side = self.channels, self.size
        while len(self.layers) < layers:
            made = self.pick(*LAYERS)(self, width, side)
            if made is not None:
                layer, width, side = made
                self.layers.append(layer)
        features = width * side * side
        self.layers += [
            lambda nn: nn.Flatten(),
            lambda nn: nn.Linear(features, self.classes),
        ]

    def make(self, nn):
        """The network of `torch.nn` or `weft.nn`."""
        return nn.Sequential(*[layer(nn) for layer in self.layers])


LAYERS = []


def drawn(function):
    """Register a function from (stack, channels, side) to (layer, channels, side), or None."""
    LAYERS.append(function)
    return function


@drawn
def convolution(s, c, n):
    out, k = s.pick(1, 3, 4, 8, 10, 16, 32), s.pick(1, 1, 2, 3, 3, 5)
    stride, padding, dilation = s.pick(1, 1, 2), s.int(0, k // 2), s.pick(1, 1, 2)
    bias, mode = s.flag(), s.pick("zeros", "zeros", "reflect", "circular")
    groups = s.pick(*[g for g in (1, 1, 2, 4, c) if c % g == 0 and out % g == 0])
    side = (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1
    if side < 1 or padding >= n:
        return None
    return (
        lambda nn: nn.Conv2d(c, out, k, stride, padding, dilation, groups, bias, mode),
        out,
        side,
    )


@drawn
def depthwise(s, c, n):
    k, stride, times = s.pick(3, 5), s.pick(1, 2), s.pick(1, 1, 2)
    side = (n + 2 * (k // 2) - k) // stride + 1
    return (
        lambda nn: nn.Conv2d(c, c * times, k, stride, k // 2, groups=c, bias=False),
        c * times,
        side,
    )


@drawn
def transposed(s, c, n):
    out, k, stride = s.pick(2, 3, 8), s.pick(1, 2, 3, 4), s.pick(1, 2)
    padding = s.int(0, (k - 1) // 2)
    side = (n - 1) * stride - 2 * padding + k
    if side > 20 or side < 1:
        return None
    return lambda nn: nn.ConvTranspose2d(c, out, k, stride, padding), out, side


@drawn
def normalization(s, c, n):
    kind, affine = s.int(0, 4), s.flag()
    if kind < 2:
        return lambda nn: nn.BatchNorm2d(c, affine=affine), c, n
    if n < 3:
        return None
    if kind == 2:
        groups = s.pick(*[g for g in (1, 2, 4, c) if c % g == 0])
        return lambda nn: nn.GroupNorm(groups, c, affine=affine), c, n
    if kind == 3:
        tracked = s.flag()
        return lambda nn: nn.InstanceNorm2d(c, affine=affine, track_running_stats=tracked), c, n
    return lambda nn: nn.LayerNorm((c, n, n), elementwise_affine=affine), c, n


@drawn
def activation(s, c, n):
    name = s.pick(
        "ReLU", "ReLU", "ReLU6", "LeakyReLU", "GELU", "SiLU", "Hardswish", "Tanh", "Sigmoid",
        "ELU", "Mish", "Softplus", "PReLU", "PReLU per channel", "Hardtanh", "Identity",
    )  # fmt: skip
    if name.startswith("PReLU"):
        return lambda nn: nn.PReLU(c if name.endswith("channel") else 1), c, n
    return lambda nn: getattr(nn, name)(), c, n


@drawn
def pooling(s, c, n):
    k, stride, kind = s.pick(2, 3), s.pick(1, 2), s.int(0, 4)
    if kind == 2:
        side = s.int(1, min(n, 4))
        name = s.pick("AdaptiveAvgPool2d", "AdaptiveMaxPool2d")
        return lambda nn: getattr(nn, name)(side), c, side
    padding = s.int(0, k // 2)
    if n + 2 * padding < k:
        return None
    side = (n + 2 * padding - k) // stride + 1
    if kind == 3 and n >= k:
        return lambda nn: nn.LPPool2d(2, k, stride), c, (n - k) // stride + 1
    if kind == 4:
        inside = s.flag()
        return lambda nn: nn.AvgPool2d(k, stride, padding, count_include_pad=inside), c, side
    return lambda nn: nn.MaxPool2d(k, stride, padding), c, side


@drawn
def resized(s, c, n):
    kind = s.int(0, 2)
    if kind == 0 and n <= 8:
        mode = s.pick("nearest", "bilinear")
        return lambda nn: nn.Upsample(scale_factor=2, mode=mode), c, 2 * n
    if kind == 1 and c % 4 == 0 and n <= 8:
        return lambda nn: nn.PixelShuffle(2), c // 4, 2 * n
    if kind == 2 and n > 3:
        return lambda nn: nn.ZeroPad2d((1, 0, -1, 2)), c, n + 1
    return None


@drawn
def residual(s, c, n):
    """A sum around two layers."""
    k = s.pick(1, 3)
    norm, name = s.flag(), s.pick("ReLU", "SiLU", "LeakyReLU")

    def make(nn):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Conv2d(c, c, k, padding=k // 2, bias=not norm)
                self.norm = nn.BatchNorm2d(c) if norm else nn.Identity()
                self.act = getattr(nn, name)()

            def forward(self, x):
                return self.act(self.norm(self.first(x)) + x)

        return Block()

    return make, c, n
