"""Learning rate schedules; the rate is an input of the program, so a new one compiles nothing."""

from __future__ import annotations

from weft.optim.lr_scheduler.compose import ChainedScheduler, SequentialLR
from weft.optim.lr_scheduler.cyclic import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from weft.optim.lr_scheduler.decay import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from weft.optim.lr_scheduler.plateau import ReduceLROnPlateau
from weft.optim.lr_scheduler.scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler
from weft.optim.lr_scheduler.warmup import ConstantLR, LinearLR, WarmupCosineLR

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
    "WarmupCosineLR",
]

for _name in __all__:  # programs compare a class's module with this one, as PyTorch has one file
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
