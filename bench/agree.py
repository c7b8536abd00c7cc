"""Whether a network learns the same in Weft and in PyTorch: `python -m bench agree NETWORK`.

Both begin with the same weights, see the same data, and drop nothing. After 20 steps the losses
are to be equal to 1e-3.

MobileNet is compared in float64, for 8 steps. Its 28 normalized layers without shortcuts multiply
any difference by ten a step: PyTorch in float32 is 7e-4 from PyTorch in float64 after one step and
9e-3 after 20; Weft and PyTorch in float64 are 5e-15 apart at first and 3e-8 after 8 steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bench.work.batches import batch_of

STEPS = 20
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Twins:
    """One network twice.

    Attributes:
        ours: of Weft, without dropout.
        theirs: options of PyTorch's.
        batch: examples in a step; as the network is usually trained where it is 0.
        data: sizes of the batch.
    """

    ours: Callable[[], Any]
    theirs: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 0
    data: Mapping[str, Any] = field(default_factory=dict)


# float32 and STEPS but for these
DTYPES = {"mobilenet": "float64"}
STEPS_OF = {"mobilenet": 8}


def _twins() -> dict[str, Twins]:
    """As large as they are trained."""
    from weft import models

    none = {"dropout": 0.0}
    return {
        "alexnet": Twins(lambda: models.AlexNet(dropout=0.0), none),
        "vgg19": Twins(lambda: models.vgg19(dropout=0.0), none),
        "resnet50": Twins(models.resnet50),
        "mobilenet": Twins(models.MobileNetV1),
        "gnmt": Twins(lambda: models.GNMT(dropout=0.0), none),
        "ncf": Twins(models.NeuMF),
    }


def _small_twins() -> dict[str, Twins]:
    """The same layers with fewer channels and words, on small images."""
    from weft import models
    from weft.models.resnet import Bottleneck

    widths = (8, 16, 32, 64, 64)
    stages = [(w,) * count for w, count in zip(widths, (2, 2, 4, 4, 4), strict=True)]
    small = {"size": 64, "classes": 10}
    ncf = {"users": 300, "items": 200, "factors": 8, "hidden": (32, 16, 8)}
    return {
        "alexnet": Twins(
            lambda: models.AlexNet(10, 0.0), {"classes": 10, "dropout": 0.0}, 2, {"classes": 10}
        ),
        "vgg19": Twins(
            lambda: models.VGG(stages, 10, 0.0, 64, 32),
            {"classes": 10, "dropout": 0.0, "size": 64, "hidden": 32, "widths": widths}, 4, small,
        ),
        "resnet50": Twins(
            lambda: models.ResNet(Bottleneck, (1, 1, 1, 1), 10, 16),
            {"classes": 10, "width": 16, "blocks": (1, 1, 1, 1)}, 8, small,
        ),
        "mobilenet": Twins(
            lambda: models.MobileNetV1(10, 0.25), {"classes": 10, "width": 0.25}, 8, small
        ),
        "gnmt": Twins(
            lambda: models.GNMT(50, 16, 0.0), {"words": 50, "width": 16, "dropout": 0.0}, 4,
            {"words": 50, "length": 7},
        ),
        "ncf": Twins(
            lambda: models.NeuMF(**ncf), ncf, 64, {"users": 300, "items": 200}
        ),
    }  # fmt: skip


def losses(
    name: str, small: bool = False, steps: int = 0, dtype: str | None = None
) -> tuple[list[float], list[float]]:
    """The losses of Weft's steps and of PyTorch's."""
    import torch

    import weft as wf
    from bench.work.networks import NETWORKS
    from weft.cli.workload import training_step, workload

    steps = steps or STEPS_OF.get(name, STEPS)
    twins = (_small_twins() if small else _twins())[name]
    torch.manual_seed(0)
    network = NETWORKS[name]
    theirs, ours = network.make(**twins.theirs), twins.ours()
    state = theirs.state_dict()
    named = zip(ours.state_dict(), state.values(), strict=True)
    ours.load_state_dict({key: wf.from_numpy(value.numpy()) for key, value in named})
    inputs, labels = batch_of(name, twins.batch or network.batch, **twins.data)
    if (dtype or DTYPES.get(name, "float32")) == "float64":
        ours, theirs = ours.double(), theirs.double()
        inputs = [x.astype(np.float64) for x in inputs]
    given = tuple(map(wf.from_numpy, inputs)), wf.from_numpy(labels)
    work = replace(workload(name), data=lambda _: given)
    step = training_step(work, ours, 0)
    optimizer = network.optimize(theirs)

    def their_step() -> float:
        outputs = theirs(*map(torch.from_numpy, inputs))
        loss = network.loss(outputs, torch.from_numpy(labels))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    return [step() for _ in range(steps)], [their_step() for _ in range(steps)]


def difference(ours: list[float], theirs: list[float]) -> float:
    """Between the last losses, relative to PyTorch's where that is above 1."""
    return abs(ours[-1] - theirs[-1]) / max(1.0, abs(theirs[-1]))


def report(name: str) -> dict[str, Any]:
    """Compare the losses and print the last ones.

    Raises:
        AssertionError: they differ by more than they should.
    """
    ours, theirs = losses(name)
    apart = difference(ours, theirs)
    dtype = DTYPES.get(name, "float32")
    print(f"\n{name}: loss after {len(ours)} steps in {dtype}, same weights and data, no dropout")
    print(f"  weft {ours[-1]:.6f}  torch {theirs[-1]:.6f}  difference {apart:.1e}")
    if not apart <= TOLERANCE:
        raise AssertionError(f"{name}: expected a difference of at most {TOLERANCE}, got {apart}")
    return {"weft": ours[-1], "torch": theirs[-1], "difference": apart, "dtype": dtype,
            "steps": len(ours)}  # fmt: skip
