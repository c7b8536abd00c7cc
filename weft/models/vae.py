"""VAE: images encoded as a few numbers and decoded."""

from __future__ import annotations

import weft.eager.functions.api as wf
from weft import nn
from weft.eager.functions.api import Tensor
from weft.nn import functional as F


class VAE(nn.Module):
    """Kingma and Welling, "Auto-Encoding Variational Bayes", 2014, appendix C: perceptrons.

    Images (N, pixels) in [0, 1] to (logits of the pixels, mean, log variance) of the code.
    """

    def __init__(self, pixels: int = 784, hidden: int = 400, code: int = 20) -> None:
        super().__init__()
        self.code = code
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU())
        self.mean, self.logvar = nn.Linear(hidden, code), nn.Linear(hidden, code)
        self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, pixels))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode, draw a code, decode."""
        h = self.encoder(x)
        mean, logvar = self.mean(h), self.logvar(h)
        z = mean + wf.exp(0.5 * logvar) * wf.randn_like(mean) if self.training else mean
        return self.decoder(z), mean, logvar

    def loss(self, x: Tensor) -> Tensor:
        """The negative evidence lower bound, in nats an image."""
        logits, mean, logvar = self(x)
        pixels = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = -0.5 * (1 + logvar - mean**2 - wf.exp(logvar)).sum()
        return (pixels + divergence) / x.shape[0]

    def draw(self, count: int) -> Tensor:
        """New images (count, pixels)."""
        with wf.no_grad():
            return wf.sigmoid(self.decoder(wf.randn(count, self.code)))
