"""An input pipeline: digits shuffled, augmented by threads, batched; stopped and resumed.

Trains a small network on randomly shifted digits. In the middle of an epoch the pipeline's state is
stored as JSON, and a new pipeline continues with the next batch. Prints where the pipeline's time
goes, and the test accuracy. On 2 cores: 5 s.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from common import load_digits, options

import weft as wf
from weft import nn
from weft.data import Dataset, transforms
from weft.nn import functional as F


def batches(images: Any, labels: Any) -> Dataset:
    """Endless shuffled batches of 64 augmented images (N, 1, 28, 28)."""
    augment = transforms.Compose([transforms.RandomCrop(28, padding=2), transforms.ToTensor()])
    rows = Dataset.from_tensor_slices((images, labels)).shuffle(len(labels), seed=1)
    augmented = rows.map(lambda image, label: (augment(image), label), num_parallel_calls=2)
    return augmented.batch(64, drop_remainder=True).repeat().prefetch(2)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train; returns the test accuracy."""
    given = options(__doc__, steps=400).parse_args(arguments)
    wf.manual_seed(0)
    digits = load_digits()
    images = digits.images.permute(0, 2, 3, 1).numpy()  # height, width, channels
    labels = digits.labels.numpy()
    print(batches(images, labels).profile(20), end="\n\n")

    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = wf.optim.Adam(model.parameters(), lr=2e-3)
    running = iter(batches(images, labels))
    for step in range(given.steps):
        if step == given.steps // 2:
            state = json.dumps(running.state_dict())
            print(f"stopped after {step} steps; the state has {len(state)} characters")
            running.close()
            running = iter(batches(images, labels))
            running.load_state_dict(json.loads(state))
        x, y = next(running)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    running.close()
    with wf.no_grad():
        hits = model(digits.test_images).argmax(1) == digits.test_labels
    accuracy = hits.float().mean().item()
    print(f"test accuracy {accuracy:.4f}")
    return accuracy


if __name__ == "__main__":
    main()
