"""Six kinds of network classify handwritten digits: `python examples/images.py --model resnet`.

Prints the loss during training, and the test accuracy at the end. On 2 cores: 3 s (mlp) to 12 s
(mobilenet).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from common import Digits, load_digits, options

import weft as wf
from weft import models, nn
from weft.models.resnet import Basic

MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(3 * 28 * 28, 256), nn.ReLU(), nn.Linear(256, 10)
    ),
    "cnn": lambda: nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    ),
    "vgg": lambda: models.VGG(((16, 16), (32, 32)), 10, size=28, hidden=128),
    "resnet": lambda: models.ResNet(Basic, (1, 1, 1), 10, width=16),
    "mobilenet": lambda: models.MobileNetV1(10, width=0.25),
    "vit": lambda: models.ViT(28, 7, 10, layers=2, heads=4, width=64),
}  # fmt: skip


def train(model: nn.Module, digits: Digits, steps: int) -> None:
    """Adam on random batches of 64, with a cosine learning rate schedule."""
    optimizer = wf.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = wf.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    lossfn = nn.CrossEntropyLoss()
    for step in range(1, steps + 1):
        picked = wf.randint(0, len(digits.images), (64,))
        # The networks expect red, green and blue.
        images = digits.images[picked].expand(-1, 3, -1, -1)
        loss = lossfn(model(images), digits.labels[picked])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}")


def accuracy(model: nn.Module, images: wf.Tensor, labels: wf.Tensor) -> float:
    """The accuracy on these images."""
    model.eval()
    hits = 0
    with wf.no_grad():
        for x, y in zip(images.split(360), labels.split(360), strict=True):
            found = model(x.expand(-1, 3, -1, -1)).argmax(1)
            hits += (found == y).sum().item()
    return hits / len(images)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, then test; returns the test accuracy."""
    parser = options(__doc__, steps=300)
    parser.add_argument("--model", choices=MODELS, default="cnn")
    chosen = parser.parse_args(arguments)
    wf.manual_seed(0)
    digits = load_digits()
    model = MODELS[chosen.model]()
    print(f"{chosen.model}: {sum(p.numel() for p in model.parameters()):,} parameters")
    train(model, digits, chosen.steps)
    result = accuracy(model, digits.test_images, digits.test_labels)
    print(f"test accuracy {result:.3f}")
    return result


if __name__ == "__main__":
    main()
