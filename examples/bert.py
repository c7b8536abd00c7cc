"""A BERT predicts masked characters of Python source: 15% of the characters are masked.

Prints the accuracy on source not seen in training, the accuracy of always answering "space", and
some predictions. On 2 cores: a minute.
"""

from __future__ import annotations

from collections.abc import Sequence

from common import VOCABULARY, load_source, options, text_of, windows

import weft as wf
from weft import models
from weft.nn import functional as F

CONTEXT = 16
GAP = 0  # a code that no text contains


def hide(batch: wf.Tensor) -> tuple[wf.Tensor, wf.Tensor]:
    """The batch with masked characters, and the mask."""
    gaps = wf.rand(batch.shape) < 0.15
    return batch.masked_fill(gaps, GAP), gaps


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train, measure, show."""
    chosen = options(__doc__, steps=1200).parse_args(arguments)
    wf.manual_seed(0)
    codes = load_source()
    cut = len(codes) * 9 // 10
    train, test = codes[:cut], codes[cut:]
    model = models.BERT(VOCABULARY, CONTEXT, layers=2, heads=4, width=128, dropout=0.0)
    optimizer = wf.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = wf.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, chosen.steps)

    for step in range(1, chosen.steps + 1):
        batch = windows(train, 64, CONTEXT)
        seen, gaps = hide(batch)
        logits = model.words(model(seen))
        # Only masked characters count: cross_entropy ignores the label -100.
        labels = batch.masked_fill(~gaps, -100)
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        wf.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")

    model.eval()
    with wf.no_grad():
        batch = windows(test, 500, CONTEXT)
        seen, gaps = hide(batch)
        found = model.words(model(seen)).argmax(-1)
    result = (found == batch)[gaps].float().mean().item()
    spaces = (batch == ord(" "))[gaps].float().mean().item()
    print(f"masked accuracy {result:.3f}; only spaces {spaces:.3f}")
    filled = wf.where(gaps, found, batch)
    for i in range(5):
        print(f"{text_of(seen[i]).replace(chr(GAP), '_')!r} -> {text_of(filled[i])!r}")
    return result, spaces


if __name__ == "__main__":
    main()
