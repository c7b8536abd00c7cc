"""DCGAN: a generator of images and a discriminator."""

from __future__ import annotations

from weft import nn

__all__ = ["Discriminator", "Generator"]


class Generator(nn.Sequential):
    """Radford et al., "Unsupervised Representation Learning with Deep Convolutional GANs", 2016.

    Noise (N, noise, 1, 1) to images (N, channels, size, size) in [-1, 1].

    Args:
        width: channels of the largest hidden layer; each smaller one has twice as many.
        size: 4 times a power of 2, at least 8.
    """

    def __init__(
        self, noise: int = 100, width: int = 64, channels: int = 3, size: int = 64
    ) -> None:
        wide = width * size // 8
        layers: list[nn.Module] = [
            nn.ConvTranspose2d(noise, wide, 4, 1, 0, bias=False), nn.BatchNorm2d(wide), nn.ReLU()
        ]  # fmt: skip
        while wide > width:
            layers += [
                nn.ConvTranspose2d(wide, wide // 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(wide // 2), nn.ReLU(),
            ]  # fmt: skip
            wide //= 2
        super().__init__(
            *layers, nn.ConvTranspose2d(wide, channels, 4, 2, 1, bias=False), nn.Tanh()
        )
        self.apply(initialize)


class Discriminator(nn.Sequential):
    """The discriminator: images (N, channels, size, size) to logits (N,)."""

    def __init__(self, width: int = 64, channels: int = 3, size: int = 64) -> None:
        layers: list[nn.Module] = [
            nn.Conv2d(channels, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)
        ]  # fmt: skip
        wide = width
        while wide < width * size // 8:
            layers += [
                nn.Conv2d(wide, 2 * wide, 4, 2, 1, bias=False),
                nn.BatchNorm2d(2 * wide), nn.LeakyReLU(0.2),
            ]  # fmt: skip
            wide *= 2
        super().__init__(*layers, nn.Conv2d(wide, 1, 4, 1, 0, bias=False), nn.Flatten(0))
        self.apply(initialize)


def initialize(module: nn.Module) -> None:
    """The paper's initialization: normal weights with a deviation of 0.02."""
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)
