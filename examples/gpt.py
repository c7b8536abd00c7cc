"""A GPT that learns to write Python, one character at a time, from the standard library's source.

Prints the loss in bits per character (7 before training, 8 without any model) on source not seen
in training, then a sample. With `--bfloat16`, matmuls run in bfloat16. On 2 cores: a minute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from common import VOCABULARY, load_source, options, text_of, windows

import weft as wf
from weft import models
from weft.nn import functional as F

CONTEXT = 64


def bits(model: models.GPT, batch: wf.Tensor) -> wf.Tensor:
    """The cross entropy in bits per character."""
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten()) / math.log(2)


def learn(codes: wf.Tensor, steps: int, bfloat16: bool = False) -> models.GPT:
    """A model trained on random windows of the source."""
    model = models.GPT(VOCABULARY, CONTEXT, layers=3, heads=4, width=128)
    optimizer = wf.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = wf.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
    for step in range(1, steps + 1):
        with wf.autocast("cpu", wf.bfloat16, enabled=bfloat16):
            loss = bits(model, windows(codes, 16, CONTEXT + 1))
        loss.backward()
        wf.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step:4}  {loss.item():.2f} bits per character")
    return model.eval()


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, test, and print a sample; returns the bits per character."""
    parser = options(__doc__, steps=1000)
    parser.add_argument("--bfloat16", action="store_true", help="mixed precision")
    parser.add_argument("--sample", type=int, default=200, help="characters to write")
    chosen = parser.parse_args(arguments)
    wf.manual_seed(0)
    codes = load_source()
    cut = len(codes) * 9 // 10
    train, test = codes[:cut], codes[cut:]
    model = learn(train, chosen.steps, chosen.bfloat16)
    mixed = wf.autocast("cpu", wf.bfloat16, enabled=chosen.bfloat16)
    with wf.no_grad(), mixed:
        result = bits(model, windows(test, 256, CONTEXT + 1)).item()
    print(f"test: {result:.2f} bits per character\n")
    start = wf.tensor([list(b"def ")])
    print(text_of(model.generate(start, chosen.sample, temperature=0.8)[0]))
    return result


if __name__ == "__main__":
    main()
