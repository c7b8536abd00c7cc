"""One to many: from the image of a digit to its name, letter by letter.

A linear layer maps the image to the initial state of a recurrent network, which spells "seven".
Prints the fraction of correct names for test images, and some of them. On 2 cores: 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence

from common import draw, load_digits, options

import weft as wf
from weft import models, nn
from weft.nn import functional as F

NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LETTERS = ".efghinorstuvwxz"  # a point begins and ends a name
LENGTH = max(map(len, NAMES)) + 1


def spelled(names: Sequence[str]) -> wf.Tensor:
    """Names as rows of letter indices, padded with points."""
    return wf.tensor([[LETTERS.index(c) for c in name.ljust(LENGTH, ".")] for name in names])


class Speller(nn.Module):
    """Images (N, 1, 28, 28) and letters (N, L) to logits (N, L, letters) of the next letters."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.look = nn.Linear(28 * 28, width)
        self.letters = nn.Embedding(len(LETTERS), width)
        self.write = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, len(LETTERS))

    def see(self, images: wf.Tensor) -> wf.Tensor:
        """The initial state, (N, width)."""
        return wf.tanh(self.look(images.flatten(1)))

    def forward(self, images: wf.Tensor, letters: wf.Tensor) -> wf.Tensor:
        """Logits of the letter after each of these."""
        y, _ = self.write(self.letters(letters), self.see(images)[None])
        return self.out(y)

    def step(
        self, tokens: wf.Tensor, position: wf.Tensor, cache: Sequence[wf.Tensor]
    ) -> tuple[wf.Tensor, Sequence[wf.Tensor]]:
        """The same for one letter, as `models.generate` needs it: the cache is the state."""
        del position
        y, state = self.write(self.letters(tokens)[:, None], cache[0][None])
        return self.out(y)[:, 0], (state[0],)

    def spell(self, images: wf.Tensor) -> list[str]:
        """The predicted names of the digits in the images."""
        with wf.no_grad():
            starts = wf.zeros(len(images), 1, dtype=wf.int64)
            cache = [self.see(images)]
            rows = models.generate(self, starts, LENGTH, cache=cache, temperature=0, stop=0)
        return ["".join(LETTERS[i] for i in row).strip(".") for row in rows.tolist()]


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, test, print examples; returns the fraction of correct names."""
    chosen = options(__doc__, steps=400).parse_args(arguments)
    wf.manual_seed(0)
    digits = load_digits()
    words = spelled(NAMES)[digits.labels]
    model = Speller()
    optimizer = wf.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, chosen.steps + 1):
        picked = wf.randint(0, len(words), (64,))
        images, word = digits.images[picked], words[picked]
        logits = model(images, F.pad(word[:, :-1], (1, 0)))
        loss = F.cross_entropy(logits.flatten(0, 1), word.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 50 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")

    found = model.spell(digits.test_images)
    wanted = [NAMES[i] for i in digits.test_labels.tolist()]
    right = sum(a == b for a, b in zip(found, wanted, strict=True)) / len(wanted)
    print(draw(digits.test_images[:4, 0]))
    print(", ".join(found[:4]))
    print(f"names that are right {right:.3f}")
    return right


if __name__ == "__main__":
    main()
