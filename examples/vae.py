"""A variational autoencoder of digits with eight latent variables.

Prints the negative evidence lower bound on test digits in nats per image (543 if every pixel were a
fair coin), and eight sampled digits. On 2 cores: 10 s.
"""

from __future__ import annotations

from collections.abc import Sequence

from common import draw, load_digits, options

import weft as wf
from weft import models


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, test, print samples; returns the bound."""
    chosen = options(__doc__, steps=1500).parse_args(arguments)
    wf.manual_seed(0)
    digits = load_digits()
    train, test = digits.images.flatten(1), digits.test_images.flatten(1)
    model = models.VAE(pixels=28 * 28, hidden=256, code=8)
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-3)

    for step in range(1, chosen.steps + 1):
        loss = model.loss(train[wf.randint(0, len(train), (100,))])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"step {step:4}  {loss.item():.1f} nats")

    with wf.no_grad():
        result = model.loss(test).item()
    print(f"test: {result:.1f} nats an image")
    print(draw(model.draw(8).view(8, 28, 28)))
    return result


if __name__ == "__main__":
    main()
