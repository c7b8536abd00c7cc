"""Six networks as their users would train them: eager modules, a loss, an optimizer, no more.

They are the six workloads of Paszke et al., "PyTorch: An Imperative Style, High-Performance Deep
Learning Library", 2019, table 1, on random data.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import weft.eager.functions.api as wf
from weft import models, nn, optim
from weft.eager.functions.api import Tensor
from weft.eager.record.run.async_execution import synchronize
from weft.errors import ConfigError
from weft.ir.dtype import bfloat16
from weft.nn import functional as F

CLASSES, WORDS, LENGTH = 1000, 32000, 25
USERS, ITEMS = 138493, 26744  # of MovieLens-20M


@dataclass(frozen=True)
class Workload:
    """A network, and how it is trained.

    Attributes:
        make: the network.
        batch: examples in a step.
        unit: what `throughput` counts; an example has `items` of them.
        data: a batch: the network's arguments, and the targets of the loss.
        loss: of outputs and targets.
        optimize: the optimizer of a network.
    """

    make: Callable[[], nn.Module]
    batch: int
    unit: str
    items: int
    data: Callable[[int], tuple[tuple[Tensor, ...], Tensor]]
    loss: Callable[[Tensor, Tensor], Tensor]
    optimize: Callable[[nn.Module], optim.Optimizer]


def _images(batch: int) -> tuple[tuple[Tensor, ...], Tensor]:
    return (wf.randn(batch, 3, 224, 224),), wf.randint(0, CLASSES, (batch,))


def _sentences(batch: int) -> tuple[tuple[Tensor, ...], Tensor]:
    source, target, labels = (wf.randint(0, WORDS, (batch, LENGTH)) for _ in range(3))
    return (source, target), labels


def _pairs(batch: int) -> tuple[tuple[Tensor, ...], Tensor]:
    pairs = wf.randint(0, USERS, (batch,)), wf.randint(0, ITEMS, (batch,))
    return pairs, wf.randint(0, 2, (batch,)).float()


def _loss_of_words(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def _momentum(model: nn.Module) -> optim.Optimizer:
    return optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def _adam(model: nn.Module) -> optim.Optimizer:
    return optim.Adam(model.parameters(), lr=1e-3)


def _image_network(make: Callable[[], nn.Module], batch: int) -> Workload:
    return Workload(make, batch, "images/s", 1, _images, F.cross_entropy, _momentum)


WORKLOADS: Final = {
    "alexnet": _image_network(models.AlexNet, 32),
    "vgg19": _image_network(models.vgg19, 4),
    "resnet50": _image_network(models.resnet50, 16),
    "mobilenet": _image_network(models.MobileNetV1, 16),
    "gnmt": Workload(
        models.GNMT, 16, "tokens/s", 2 * LENGTH, _sentences, _loss_of_words, _adam
    ),
    "ncf": Workload(
        models.NeuMF, 16384, "samples/s", 1, _pairs, F.binary_cross_entropy_with_logits, _adam
    ),
}  # fmt: skip
DTYPES: Final = ("float32", "bfloat16")


def workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        ConfigError: there is none.
    """
    if name not in WORKLOADS:
        raise ConfigError(f"unknown model {name!r}: expected one of {', '.join(WORKLOADS)}")
    return WORKLOADS[name]


def training_step(
    work: Workload, model: nn.Module, batch: int, dtype: str = "float32"
) -> Callable[[], float]:
    """One step of training on the same random batch; returns the loss."""
    inputs, labels = work.data(batch)
    synchronize()  # making the data is not part of a step
    optimizer = work.optimize(model)

    def step() -> float:
        with _precision(dtype):
            loss = work.loss(model(*inputs), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return step


def inference_step(
    work: Workload, model: nn.Module, batch: int, dtype: str = "float32"
) -> Callable[[], Any]:
    """The outputs for the same random batch, without gradients and without dropout."""
    inputs, _ = work.data(batch)
    synchronize()
    model.eval()

    def step() -> Any:
        with wf.no_grad(), _precision(dtype):
            return model(*inputs).numpy()

    return step


def _precision(dtype: str) -> contextlib.AbstractContextManager[Any]:
    return wf.autocast(bfloat16) if dtype == "bfloat16" else contextlib.nullcontext()
