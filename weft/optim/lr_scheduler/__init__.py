"""Learning rate schedules; the rate is an input of the program, so a new one compiles nothing."""

from __future__ import annotations

from weft import exports
from weft.optim.lr_scheduler.compose import *
from weft.optim.lr_scheduler.cyclic import *
from weft.optim.lr_scheduler.decay import *
from weft.optim.lr_scheduler.plateau import ReduceLROnPlateau as ReduceLROnPlateau
from weft.optim.lr_scheduler.scheduler import *
from weft.optim.lr_scheduler.warmup import *

exports.gather(globals())
for _thing in list(globals().values()):  # programs compare a class's module with this one
    if isinstance(_thing, type):
        _thing.__module__ = __name__
_LRScheduler = LRScheduler  # older programs subclass it by this name
