"""torchmetrics' names: modules over the counts of `weft.metrics`, and functions of one batch.

>>> import weft as wf
>>> accuracy = wf.torchmetrics.Accuracy(task="multiclass", num_classes=3)
>>> accuracy(wf.tensor([0, 2, 1]), wf.tensor([0, 1, 1]))
tensor(0.6667)
>>> accuracy.update(wf.tensor([2]), wf.tensor([2]))
>>> accuracy.compute()
tensor(0.7500)
"""

from __future__ import annotations

from weft import exports as _exports
from weft.torchmetrics import aggregation as aggregation
from weft.torchmetrics import classification as classification
from weft.torchmetrics import functional as functional
from weft.torchmetrics import image as image
from weft.torchmetrics import regression as regression
from weft.torchmetrics import retrieval as retrieval
from weft.torchmetrics import segmentation as segmentation
from weft.torchmetrics.aggregation import *
from weft.torchmetrics.classification import *
from weft.torchmetrics.collection import MetricCollection as MetricCollection
from weft.torchmetrics.image import *
from weft.torchmetrics.metric import Metric as Metric
from weft.torchmetrics.regression import *
from weft.torchmetrics.retrieval import *

_exports.gather(
    globals(), "aggregation", "classification", "functional", "image", "regression", "retrieval",
    "segmentation",
)  # fmt: skip
