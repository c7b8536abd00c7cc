"""Optimizers: all parameters are updated in the same program as the backward pass."""

from __future__ import annotations

from weft import exports
from weft.optim import lr_scheduler as lr_scheduler
from weft.optim import swa_utils as swa_utils
from weft.optim.adadelta import Adadelta as Adadelta
from weft.optim.adafactor import Adafactor as Adafactor
from weft.optim.adagrad import Adagrad as Adagrad
from weft.optim.adam import Adam as Adam
from weft.optim.adam import AdamW as AdamW
from weft.optim.adamax import Adamax as Adamax
from weft.optim.asgd import ASGD as ASGD
from weft.optim.ema import ExponentialMovingAverage as ExponentialMovingAverage
from weft.optim.lamb import LAMB as LAMB
from weft.optim.lbfgs import LBFGS as LBFGS
from weft.optim.lion import Lion as Lion
from weft.optim.muon import Muon as Muon
from weft.optim.nadam import NAdam as NAdam
from weft.optim.optimizer import Optimizer as Optimizer
from weft.optim.radam import RAdam as RAdam
from weft.optim.rmsprop import RMSprop as RMSprop
from weft.optim.rprop import Rprop as Rprop
from weft.optim.sgd import SGD as SGD
from weft.optim.sparse_adam import SparseAdam as SparseAdam
from weft.optim.zero_redundancy import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer

exports.gather(globals(), "lr_scheduler", "swa_utils")
