"""MobileNet: depthwise separable convolutions."""

from __future__ import annotations

from weft import nn
from weft.eager.functions.api import Tensor

__all__ = ["MobileNetV1", "MobileNetV2"]


def _unit(
    inputs: int, outputs: int, kernel: int, stride: int, groups: int, activation: type[nn.Module]
) -> list[nn.Module]:
    """Convolution, batch normalization, activation."""
    padding = kernel // 2
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), activation()]


# output channels (for width 1) and stride of each depthwise separable layer
_LAYERS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    *((512, 1),) * 5, (1024, 2), (1024, 1),
)  # fmt: skip


class MobileNetV1(nn.Sequential):
    """Howard et al., "MobileNets", 2017.

    Images (N, 3, H, W) to logits (N, classes); 4.23 million parameters for 1,000 classes.

    Args:
        width: factor of all numbers of channels.
    """

    def __init__(self, classes: int = 1000, width: float = 1.0) -> None:
        channels = int(32 * width)
        layers = _unit(3, channels, 3, 2, 1, nn.ReLU)
        for outputs, stride in _LAYERS:
            outputs = int(outputs * width)
            layers += _unit(channels, channels, 3, stride, channels, nn.ReLU)
            layers += _unit(channels, outputs, 1, 1, 1, nn.ReLU)
            channels = outputs
        super().__init__(
            *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(channels, classes)
        )


class Inverted(nn.Module):
    """An inverted residual: expand, depthwise convolution, project; added to the input."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers = _unit(inputs, hidden, 1, 1, 1, nn.ReLU6) if expansion != 1 else []
        layers += _unit(hidden, hidden, 3, stride, hidden, nn.ReLU6)
        layers += [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, added to the input if shapes allow."""
        y = self.layers(x)
        return x + y if self.residual else y


# expansion, output channels, blocks, stride of the first: table 2 of the paper
_BLOCKS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
    (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


class MobileNetV2(nn.Module):
    """Sandler et al., "MobileNetV2: Inverted Residuals and Linear Bottlenecks", 2018.

    Images (N, 3, H, W) to logits (N, classes); 3.50 million parameters for 1,000 classes.

    Args:
        width: factor of all numbers of channels, which stay multiples of 8.
    """

    def __init__(self, classes: int = 1000, width: float = 1.0, dropout: float = 0.2) -> None:
        super().__init__()
        channels = _multiple(32 * width)
        layers = _unit(3, channels, 3, 2, 1, nn.ReLU6)
        for expansion, outputs, count, stride in _BLOCKS:
            for i in range(count):
                wide = _multiple(outputs * width)
                layers.append(Inverted(channels, wide, stride if i == 0 else 1, expansion))
                channels = wide
        last = _multiple(1280 * max(1.0, width))
        layers += _unit(channels, last, 1, 1, 1, nn.ReLU6)
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(last, classes))

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images."""
        return self.classifier(self.features(x).mean((2, 3)))


def _multiple(channels: float) -> int:
    """The nearest multiple of 8 that is not below 90% of it."""
    found = max(8, int(channels + 4) // 8 * 8)
    return found + 8 if found < 0.9 * channels else found
