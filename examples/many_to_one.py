"""Many to one: a recurrent network reads an image row by row, then classifies the digit.

Prints the test accuracy after different numbers of rows. On 2 cores: 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence

from common import load_digits, options

import weft as wf
from weft import nn
from weft.nn import functional as F


class Reader(nn.Module):
    """Rows (N, L, 28) to logits (N, 10), from the state after the last row."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.rows = nn.LSTM(28, width, batch_first=True)
        self.out = nn.Linear(width, 10)

    def forward(self, rows: wf.Tensor) -> wf.Tensor:
        """Logits of the classes."""
        _, (state, _) = self.rows(rows)
        return self.out(state[-1])


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, test; returns the accuracy after all rows."""
    chosen = options(__doc__, steps=500).parse_args(arguments)
    wf.manual_seed(0)
    digits = load_digits()
    images, tests = digits.images[:, 0], digits.test_images[:, 0]
    model = Reader()
    optimizer = wf.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, chosen.steps + 1):
        picked = wf.randint(0, len(images), (64,))
        loss = F.cross_entropy(model(images[picked]), digits.labels[picked])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")

    model.eval()
    accuracy = 0.0
    with wf.no_grad():
        for count in (14, 21, 28):
            hits = model(tests[:, :count]).argmax(1) == digits.test_labels
            accuracy = hits.float().mean().item()
            print(f"after {count} rows: accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
