"""`tf.contrib.losses` and `slim.losses`: predictions before labels."""

from __future__ import annotations

from weft.tf1 import losses
from weft.tf1.contrib.order import ordered

__all__ = [
    "absolute_difference", "add_loss", "compute_weighted_loss", "get_losses",
    "get_regularization_losses", "get_total_loss", "hinge_loss", "log_loss", "mean_squared_error",
    "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy",
]  # fmt: skip

_LAST = ("weights", "scope")

absolute_difference = ordered(
    losses.absolute_difference, "absolute_difference", "predictions", "labels", *_LAST
)
mean_squared_error = ordered(
    losses.mean_squared_error, "mean_squared_error", "predictions", "labels", *_LAST
)
log_loss = ordered(
    losses.log_loss, "log_loss", "predictions", "labels", "weights", "epsilon", "scope"
)
hinge_loss = ordered(losses.hinge_loss, "hinge_loss", "logits", "labels", "scope")
softmax_cross_entropy = ordered(
    losses.softmax_cross_entropy, "softmax_cross_entropy", "logits", "onehot_labels", "weights",
    "label_smoothing", "scope",
)  # fmt: skip
sparse_softmax_cross_entropy = ordered(
    losses.sparse_softmax_cross_entropy, "sparse_softmax_cross_entropy", "logits", "labels", *_LAST
)
sigmoid_cross_entropy = ordered(
    losses.sigmoid_cross_entropy, "sigmoid_cross_entropy", "logits", "multi_class_labels",
    "weights", "label_smoothing", "scope",
)  # fmt: skip
add_loss = losses.add_loss
compute_weighted_loss = losses.compute_weighted_loss
get_losses = losses.get_losses
get_regularization_losses = losses.get_regularization_losses
get_total_loss = losses.get_total_loss
