"""ResNet: residual blocks."""

from __future__ import annotations

from collections.abc import Sequence

from weft import nn
from weft.eager.functions.api import Tensor
from weft.nn import functional as F

__all__ = ["ResNet", "resnet18", "resnet50"]


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The shortcut: the input, projected if its shape differs."""
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    projection = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
    return nn.Sequential(projection, nn.BatchNorm2d(outputs))


class Basic(nn.Module):
    """Two 3x3 convolutions."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c2, self.b2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.down = _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        """ReLU of the sum of branch and shortcut."""
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(self.b2(self.c2(y)) + self.down(x))


class Bottleneck(nn.Module):
    """1x1 to fewer channels, 3x3 (with the stride: version 1.5), 1x1 to four times as many."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = self.expansion * width
        self.c1, self.b1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.c2, self.b2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.c3, self.b3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.down = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        """ReLU of the sum of branch and shortcut."""
        y = F.relu(self.b1(self.c1(x)))
        y = F.relu(self.b2(self.c2(y)))
        return F.relu(self.b3(self.c3(y)) + self.down(x))


class ResNet(nn.Sequential):
    """He et al., "Deep Residual Learning for Image Recognition", 2016.

    Images (N, 3, H, W) to logits (N, classes).

    Args:
        block: `Basic` or `Bottleneck`.
        blocks: how many in each stage.
        width: channels of the first stage; each stage doubles them.
    """

    def __init__(
        self, block: type[Basic] | type[Bottleneck], blocks: Sequence[int], classes: int = 1000,
        width: int = 64,
    ) -> None:  # fmt: skip
        layers: list[nn.Module] = []
        channels, inputs = width, width
        for stage, count in enumerate(blocks):
            for i in range(count):
                layers.append(block(inputs, channels, 2 if stage and i == 0 else 1))
                inputs = block.expansion * channels
            channels *= 2
        super().__init__(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            *layers,
            nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(inputs, classes),
        )  # fmt: skip


def resnet18(classes: int = 1000) -> ResNet:
    """11.7 million parameters for 1,000 classes."""
    return ResNet(Basic, (2, 2, 2, 2), classes)


def resnet50(classes: int = 1000) -> ResNet:
    """25.6 million parameters for 1,000 classes."""
    return ResNet(Bottleneck, (3, 4, 6, 3), classes)
