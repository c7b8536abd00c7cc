"""AlexNet, in one tower."""

from __future__ import annotations

from weft import nn
from weft.eager.functions.api import Tensor


class AlexNet(nn.Module):
    """Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014.

    Images (N, 3, 224, 224) to logits (N, classes); 61.1 million parameters for 1,000 classes.
    """

    def __init__(self, classes: int = 1000, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(9216, 4096), nn.ReLU(),
            nn.Dropout(dropout), nn.Linear(4096, 4096), nn.ReLU(),
            nn.Linear(4096, classes),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """The images' logits."""
        return self.classifier(self.features(x).flatten(1))
