"""What programs use beside the trainer: rank 0, combined loaders, summaries, gradient norms."""

from __future__ import annotations

from weft import exports as _exports
from weft.train.combined_loader import CombinedLoader as CombinedLoader
from weft.train.hyperparameters import Hyperparameters as Hyperparameters
from weft.train.interruption import SIGTERMException as SIGTERMException
from weft.train.utilities import rank_zero as rank_zero
from weft.train.utilities import types as types
from weft.train.utilities.gradients import grad_norm as grad_norm
from weft.train.utilities.rank_zero import *

AttributeDict = Hyperparameters  # Lightning's name

_exports.gather(globals(), "rank_zero", "types")
