"""Layers that merge tensors: sums, products, concatenation, dot products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import weft.tf1 as tf
from weft.documentation import named, with_arguments
from weft.errors import ArgumentError, ShapeError
from weft.tf1.framework.graph import fail
from weft.tf1.keras.engine import nest
from weft.tf1.keras.engine.layer import Layer

__all__ = [
    "Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract", "add",
    "average", "concatenate", "dot", "maximum", "minimum", "multiply", "subtract",
]  # fmt: skip

Function = Callable[[list[Any]], Any]


class Merge(Layer):
    """Base class: merges tensors whose shapes broadcast."""

    function: Function
    least, most = 2, 1 << 30

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Check the number of inputs and their shapes."""
        shapes: list[Any] = input_shape if isinstance(input_shape, list) else [input_shape]
        if not self.least <= len(shapes) <= self.most:
            raise fail(
                ArgumentError,
                f"{self.name}: expected a list of {self.least} or more tensors, got {len(shapes)}",
            )
        self.check([s.as_list() for s in shapes])
        self.built = True

    def check(self, shapes: list[Any]) -> None:
        """Check that shapes broadcast."""
        for sizes in zip(*[reversed(s) for s in shapes], strict=False):
            known = {n for n in sizes if n not in (None, 1)}
            if len(known) > 1:
                raise fail(
                    ShapeError,
                    f"{self.name}: expected inputs of one shape, got "
                    f"{' and '.join(str(tuple(s)) for s in shapes)}",
                )

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        rank = max([x.shape.ndims for x in inputs])
        return type(self).function([_ranked(x, rank) for x in inputs])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Steps that no input masks."""
        masks = [m for m in nest.flatten(mask) if m is not None]
        return reduce(tf.logical_and, masks) if masks else None


def _ranked(x: Any, rank: int) -> Any:
    for _ in range(rank - x.shape.ndims):
        x = tf.expand_dims(x, 1)
    return x


def _difference(xs: Sequence[Any]) -> Any:
    return xs[0] - xs[1]


def _mean(xs: Sequence[Any]) -> Any:
    return reduce(tf.add, xs) / float(len(xs))


class Add(Merge):
    """The sum of the inputs."""

    function = staticmethod(lambda xs: reduce(tf.add, xs))


class Subtract(Merge):
    """The first of two inputs minus the second."""

    function, most = staticmethod(_difference), 2


class Multiply(Merge):
    """The product of the inputs."""

    function = staticmethod(lambda xs: reduce(tf.multiply, xs))


class Average(Merge):
    """The mean of the inputs."""

    function = staticmethod(_mean)


class Maximum(Merge):
    """The elementwise maximum of the inputs."""

    function = staticmethod(lambda xs: reduce(tf.maximum, xs))


class Minimum(Merge):
    """The elementwise minimum of the inputs."""

    function = staticmethod(lambda xs: reduce(tf.minimum, xs))


class Concatenate(Merge):
    """The inputs concatenated along an axis.

    Args:
        axis: along which inputs follow each other.
    """

    def __init__(self, axis: int = -1, **options: Any) -> None:
        super().__init__(**options)
        self.axis = axis

    def check(self, shapes: list[Any]) -> None:
        """Check that shapes are equal except along the axis."""
        ranks = {len(s) for s in shapes}
        axis = self.axis % len(shapes[0])
        others = [[n for i, n in enumerate(s) if i != axis] for s in shapes]
        pairs = [(a, b) for o in others for a, b in zip(others[0], o, strict=False)]
        if len(ranks) > 1 or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            raise fail(
                ShapeError,
                f"{self.name}: expected inputs that differ along axis {self.axis} alone, got "
                f"{' and '.join(str(tuple(s)) for s in shapes)}",
            )

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        return tf.concat(inputs, self.axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The masks concatenated, if they have the axis."""
        masks = list(mask) if isinstance(mask, list | tuple) else [mask]
        if all(m is None for m in masks):
            return None
        whole = [
            tf.ones_like(x[..., 0], dtype=tf.bool) if m is None else m
            for x, m in zip(inputs, masks, strict=True)
        ]
        rank = inputs[0].shape.ndims
        if self.axis % rank == rank - 1:
            return reduce(tf.logical_and, whole)
        return tf.concat(whole, self.axis % rank)


class Dot(Merge):
    """Dot products of two inputs along one axis of each.

    Args:
        axes: one number for both, or two.
        normalize: whether to give the cosine instead.
    """

    most = 2

    def __init__(self, axes: Any, normalize: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.axes, self.normalize = axes, normalize

    def _pair(self, ranks: Sequence[int]) -> list[int]:
        axes = [self.axes, self.axes] if isinstance(self.axes, int) else list(self.axes)
        return [a % r for a, r in zip(axes, ranks, strict=True)]

    def check(self, shapes: list[Any]) -> None:
        """Check that the axes have equal sizes."""
        a, b = self._pair([len(s) for s in shapes])
        if None not in (shapes[0][a], shapes[1][b]) and shapes[0][a] != shapes[1][b]:
            raise fail(
                ShapeError,
                f"{self.name}: expected the same size along axes {a} and {b}, got "
                f"{tuple(shapes[0])} and {tuple(shapes[1])}",
            )

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        x, y = inputs
        a, b = self._pair([x.shape.ndims, y.shape.ndims])
        if self.normalize:
            x, y = tf.nn.l2_normalize(x, a), tf.nn.l2_normalize(y, b)
        return batch_dot(x, y, (a, b))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None."""
        return None


def batch_dot(x: Any, y: Any, axes: Any = None) -> Any:
    """Batched dot products of two tensors along one axis of each."""
    ranks = (x.shape.ndims, y.shape.ndims)
    if axes is None:
        axes = (ranks[0] - 1, max(ranks[1] - 2, 1))
    pair = (axes, axes) if isinstance(axes, int) else axes
    a, b = (axis % rank for axis, rank in zip(pair, ranks, strict=True))
    x = tf.transpose(x, [*[i for i in range(ranks[0]) if i != a], a])
    y = tf.transpose(y, [0, b, *[i for i in range(1, ranks[1]) if i != b]])
    left, right = _outer(x, slice(1, -1)), _outer(y, slice(2, None))
    first = tf.reshape(x, [tf.shape(x)[0], -1, _last(x, -1)])
    second = tf.reshape(y, [tf.shape(y)[0], _last(y, 1), -1])
    product = tf.matmul(first, second)
    if not left and not right:
        return tf.squeeze(product, [2])
    return tf.reshape(product, [tf.shape(x)[0], *left, *right])


def _last(x: Any, axis: int) -> Any:
    known = x.shape.as_list()[axis]
    return tf.shape(x)[axis] if known is None else known


def _outer(x: Any, part: slice) -> list[Any]:
    """Sizes of the remaining axes."""
    dims = x.shape.as_list()
    return [tf.shape(x)[i] if dims[i] is None else dims[i] for i in range(len(dims))[part]]


def concatenate(inputs: Any, axis: int = -1, **options: Any) -> Any:
    """The inputs concatenated along an axis.

    Args:
        inputs: a list of tensors.
        axis: along which they follow each other.
        options: arguments of the layer, by name.
    """
    return Concatenate(axis, **options)(inputs)


def dot(inputs: Any, axes: Any, normalize: bool = False, **options: Any) -> Any:
    """The dot products of two inputs along one axis of each.

    Args:
        inputs: two tensors.
        axes: one number for both, or two.
        normalize: whether to give the cosine instead.
        options: arguments of the layer, by name.
    """
    return Dot(axes, normalize, **options)(inputs)


def _layer(cls: Any) -> Callable[..., Any]:
    @named(cls.__name__.lower(), with_arguments(cls.__doc__, ["inputs", "options"], concatenate))
    def function(inputs: Any, **options: Any) -> Any:
        return cls(**options)(inputs)

    return function


add, subtract, multiply, average = _layer(Add), _layer(Subtract), _layer(Multiply), _layer(Average)
maximum, minimum = _layer(Maximum), _layer(Minimum)
