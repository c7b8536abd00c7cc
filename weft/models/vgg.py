"""VGG: many small convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from weft import nn

__all__ = ["VGG", "vgg16", "vgg19"]

# output channels of the convolutions between poolings
_STAGES_16 = ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3)
_STAGES_19 = ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4)


class VGG(nn.Sequential):
    """Simonyan and Zisserman, "Very Deep Convolutional Networks for Image Recognition", 2015.

    Images (N, 3, 224, 224) to logits (N, classes); without batch normalization, as in the paper.

    Args:
        stages: channels of the convolutions before each pooling.
        size: height and width of the images, a multiple of 32.
        hidden: width of the two hidden layers of the classifier.
    """

    def __init__(
        self, stages: Sequence[Sequence[int]], classes: int = 1000, dropout: float = 0.5,
        size: int = 224, hidden: int = 4096,
    ) -> None:  # fmt: skip
        layers: list[nn.Module] = []
        channels = 3
        for stage in stages:
            for width in stage:
                layers += [nn.Conv2d(channels, width, 3, 1, 1), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2, 2))
        pixels = (size // 2 ** len(stages)) ** 2
        super().__init__(
            *layers,
            nn.Flatten(1),
            nn.Linear(channels * pixels, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, classes),
        )  # fmt: skip


def vgg16(classes: int = 1000, dropout: float = 0.5) -> VGG:
    """Configuration D: 138.4 million parameters for 1,000 classes."""
    return VGG(_STAGES_16, classes, dropout)


def vgg19(classes: int = 1000, dropout: float = 0.5) -> VGG:
    """Configuration E: 143.7 million parameters for 1,000 classes."""
    return VGG(_STAGES_19, classes, dropout)
