"""Gradients of convolutions as functions: by the input and by the weight.

>>> import weft as wf
>>> from weft.nn.grad import conv1d_input
>>> conv1d_input((1, 1, 4), wf.ones(1, 1, 2), wf.ones(1, 1, 3)).tolist()
[[[1.0, 2.0, 2.0, 1.0]]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.documentation import arguments_of, named
from weft.eager.functions.creation.constructor import zeros
from weft.eager.record.pending.mode import Setting
from weft.eager.tensor.autograd.autograd import grad
from weft.eager.tensor.dispatch import lazy_of
from weft.nn.functional.convolution import convolve

__all__ = [
    "conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
    "conv3d_weight",
]  # fmt: skip


def _by(
    spatial: int, of_input: bool, shape: Sequence[int], other: Any, grad_output: Any, *options: Any
) -> Any:
    """The gradient by one factor, which does not depend on that factor's value."""
    with Setting("grad_mode", True):
        x = zeros(tuple(shape), dtype=other.dtype, requires_grad=True)
        pair = (x, other) if of_input else (other, x)
        stride, padding, dilation, groups = options
        y = convolve(spatial, *pair, None, stride, padding, dilation, groups)
        again = lazy_of(other).tracked or lazy_of(grad_output).tracked
        return grad(y, x, grad_output, create_graph=again)[0]


def _by_input(spatial: int):
    def by_input(
        input_size: Sequence[int], weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        """The gradient of a convolution by an input of shape `input_size`.

        Args:
            input_size: the input's shape.
            weight: the weight.
            grad_output: the gradient by the result.
            stride, padding, dilation, groups: those of the convolution.
        """
        options = (stride, padding, dilation, groups)
        return _by(spatial, True, input_size, weight, grad_output, *options)

    return named(f"conv{spatial}d_input", by_input.__doc__)(by_input)


conv1d_input, conv2d_input, conv3d_input = map(_by_input, (1, 2, 3))


def _by_weight(spatial: int):
    @arguments_of(conv1d_input)
    def by_weight(
        input: Any, weight_size: Sequence[int], grad_output: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        """The gradient of a convolution by a weight of shape `weight_size`.

        Args:
            input: the input.
            weight_size: the weight's shape.
        """
        options = (stride, padding, dilation, groups)
        return _by(spatial, False, weight_size, input, grad_output, *options)

    return named(f"conv{spatial}d_weight", by_weight.__doc__)(by_weight)


conv1d_weight, conv2d_weight, conv3d_weight = map(_by_weight, (1, 2, 3))
