"""Metrics over batches: accumulated in the step's program, exact for batches of uneven sizes.

>>> import weft as wf
>>> accuracy = wf.metrics.Accuracy()
>>> for logits, labels in [([[2.0, 1.0]], [0]), ([[1.0, 3.0], [1.0, 0.0]], [1, 1])]:
...     accuracy.update(wf.tensor(logits), wf.tensor(labels))
>>> round(accuracy.compute(), 3)
0.667
"""

from __future__ import annotations

from weft import exports as _exports
from weft.metrics.aggregate import *
from weft.metrics.classification import *
from weft.metrics.metric import Metric as Metric
from weft.metrics.ranking import AUROC as AUROC
from weft.metrics.regression import *
from weft.metrics.text import *

_exports.gather(globals())
