"""sequence_loss: the mean cross entropy of sequences of logits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.errors import ArgumentError, ShapeError
from weft.tf1.elementwise.arithmetic import cast, div_no_nan
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.tensor import Tensor
from weft.tf1.nn.activation import sparse_softmax_cross_entropy_with_logits
from weft.tf1.reduction import count_nonzero, reduce_sum
from weft.tf1.shaping.arrangement import reshape, shape

TINY = 1e-12  # TensorFlow's constant, for weights that are all 0


def sequence_loss(
    logits: Any, targets: Any, weights: Any, average_across_timesteps: bool = True,
    average_across_batch: bool = True, sum_over_timesteps: bool = False,
    sum_over_batch: bool = False, softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy of classes, summed or averaged over time and batch.

    Args:
        logits: [batch, time, classes].
        targets: [batch, time], integers.
        weights: [batch, time]: 1 for valid steps, 0 for padding.
        average_across_timesteps, average_across_batch: divide the sums along these axes by the sum
            of weights.
        sum_over_timesteps, sum_over_batch: divide by the number of nonzero weights instead.
        softmax_loss_function: called with `labels` and `logits` of all steps, flattened.

    Returns:
        A scalar, [batch] if only time is reduced, [time] if only the batch is, or [batch, time].

    Raises:
        ShapeError: the ranks are not 3, 2 and 2.
        ArgumentError: an axis is both averaged and summed.
    """
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        x, y, w = (convert_to_tensor(v) for v in (logits, targets, weights))
        for what, tensor, rank in (("logits", x, 3), ("targets", y, 2), ("weights", w, 2)):
            if tensor.shape.ndims != rank:
                raise fail(ShapeError, f"sequence_loss: {what}: expected rank {rank}, got {tensor}")
        if (average_across_timesteps and sum_over_timesteps) or (
            average_across_batch and sum_over_batch
        ):
            raise fail(
                ArgumentError, "sequence_loss: expected an axis to be averaged or summed, not both"
            )
        labels, rows = reshape(y, [-1]), reshape(x, [-1, shape(x)[2]])
        rows.set_shape([None, x.shape[2]])
        loss = softmax_loss_function or sparse_softmax_cross_entropy_with_logits
        losses = reshape(loss(labels=labels, logits=rows), shape(y)) * w
        axes = [1] if average_across_timesteps or sum_over_timesteps else []
        axes += [0] if average_across_batch or sum_over_batch else []
        if not axes:
            return losses
        counted = sum_over_timesteps or sum_over_batch
        if counted and len(axes) == 2 and not (sum_over_timesteps and sum_over_batch):
            raise fail(
                ArgumentError, "sequence_loss: expected both axes to be averaged, or both summed"
            )
        total = reduce_sum(losses, axes)
        if counted:
            return div_no_nan(total, cast(count_nonzero(w, axes), total.dtype))
        return total / (reduce_sum(w, axes) + TINY)
