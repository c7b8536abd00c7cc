"""U-Net: a label for each pixel."""

from __future__ import annotations

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    """Two 3x3 convolutions with normalization and ReLU."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """Ronneberger et al., "U-Net", 2015, with padding and batch normalization.

    Images (N, channels, H, W) to logits (N, classes, H, W); H and W are multiples of 2 ** depth.

    Args:
        width: channels at full resolution; each halving doubles them.
        depth: how many times the resolution is halved.
    """

    def __init__(
        self, channels: int = 1, classes: int = 2, width: int = 64, depth: int = 4
    ) -> None:
        super().__init__()
        widths = [width * 2**i for i in range(depth + 1)]
        inputs = [channels, *widths[:-1]]
        self.down = nn.ModuleList([_twice(a, b) for a, b in zip(inputs, widths, strict=True)])
        upwards = widths[::-1]
        self.up = nn.ModuleList([
            nn.ConvTranspose2d(a, a // 2, 2, 2) for a in upwards[:-1]
        ])  # fmt: skip
        self.join = nn.ModuleList([_twice(a, a // 2) for a in upwards[:-1]])
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of all pixels."""
        seen: list[Tensor] = []
        for i, block in enumerate(self.down):
            x = block(self.pool(x) if i else x)
            seen.append(x)
        for up, join, skip in zip(self.up, self.join, reversed(seen[:-1]), strict=True):
            x = join(wf.cat([skip, up(x)], 1))
        return self.out(x)
