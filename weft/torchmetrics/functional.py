"""The metrics of one batch as functions."""

from __future__ import annotations

from weft.torchmetrics import classification, image, regression, retrieval

_FUNCTIONS = {
    **classification.FUNCTIONS,
    **regression.FUNCTIONS,
    **image.FUNCTIONS,
    **retrieval.FUNCTIONS,
}
globals().update(_FUNCTIONS, __all__=sorted(_FUNCTIONS))
