"""Modules, layers and losses, with the names, arguments and shapes of PyTorch."""

from __future__ import annotations

from weft import exports
from weft.nn import functional as functional
from weft.nn import grad as grad
from weft.nn import init as init
from weft.nn import parallel as parallel
from weft.nn import utils as utils
from weft.nn.layer.activation import *
from weft.nn.layer.adaptive_softmax import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from weft.nn.layer.attention import MultiheadAttention as MultiheadAttention
from weft.nn.layer.classification_loss import *
from weft.nn.layer.convolution import *
from weft.nn.layer.distance import *
from weft.nn.layer.dropout import *
from weft.nn.layer.embedding import *
from weft.nn.layer.embedding_collection import *
from weft.nn.layer.experts import MixtureOfExperts as MixtureOfExperts
from weft.nn.layer.graph import *
from weft.nn.layer.keyed import *
from weft.nn.layer.lazy import *
from weft.nn.layer.linear import *
from weft.nn.layer.loss import *
from weft.nn.layer.normalization import *
from weft.nn.layer.padding import *
from weft.nn.layer.pooling import *
from weft.nn.layer.recurrent import *
from weft.nn.layer.recurrent_cell import *
from weft.nn.layer.shape import *
from weft.nn.layer.sync_norm import SyncBatchNorm as SyncBatchNorm
from weft.nn.layer.transformer import *
from weft.nn.layer.vision import *
from weft.nn.module.container import *
from weft.nn.module.hook import *
from weft.nn.module.module import Module as Module
from weft.nn.module.parameter_container import *
from weft.nn.module.summary import *
from weft.nn.parallel.one_device import DataParallel as DataParallel
from weft.nn.parameter import *

exports.gather(globals(), "functional", "grad", "init", "parallel", "utils")
