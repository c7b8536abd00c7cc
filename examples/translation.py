"""GNMT translates dates: from "03 Mar 21" to "21-03-03", letter by letter.

Prints the fraction of test dates and of their letters that are correct, and three examples. On 2
cores: 20 s.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence

from common import VOCABULARY, options, text_of

import weft as wf
from weft import models
from weft.nn import functional as F

FORMATS = ("%d %b %y", "%b %d %y", "%d.%m.%y", "%m/%d/%y")
SOURCE, TARGET = 9, 8  # lengths
START = "\n"


def encode(texts: Sequence[str], length: int) -> wf.Tensor:
    """Texts as rows of ASCII codes, padded with spaces."""
    return wf.tensor([list(text.ljust(length).encode("ascii")) for text in texts])


def make_pairs(count: int, seed: int) -> tuple[wf.Tensor, wf.Tensor]:
    """Dates from 1970 to 2069 in all input formats, and in the target format."""
    draw = random.Random(seed)
    first = datetime.date(1970, 1, 1).toordinal()
    dates = [datetime.date.fromordinal(first + draw.randrange(36_524)) for _ in range(count)]
    sources = [date.strftime(draw.choice(FORMATS)) for date in dates]
    return encode(sources, SOURCE), encode(
        [START + d.strftime("%y-%m-%d") for d in dates], TARGET + 1
    )


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train, test, print examples; returns both fractions."""
    chosen = options(__doc__, steps=500).parse_args(arguments)
    wf.manual_seed(0)
    sources, targets = make_pairs(20_000, seed=0)
    model = models.GNMT(VOCABULARY, width=64, dropout=0.0)
    optimizer = wf.optim.Adam(model.parameters(), lr=3e-3)
    schedule = wf.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, chosen.steps)

    for step in range(1, chosen.steps + 1):
        picked = wf.randint(0, len(sources), (64,))
        source, target = sources[picked], targets[picked]
        logits = model(source, target[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        wf.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")

    model.eval()
    sources, targets = make_pairs(500, seed=1)
    found = model.beam_search(sources, ord(START), TARGET)[0][:, 0]
    right = (found == targets)[:, 1:]
    exact, letters = right.all(1).float().mean().item(), right.float().mean().item()
    print(f"exact matches {exact:.3f}, letters {letters:.3f}")
    for i in range(3):
        print(f"{text_of(sources[i])} -> {text_of(found[i, 1:])}")
    return exact, letters


if __name__ == "__main__":
    main()
