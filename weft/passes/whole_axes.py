"""Makes axes that a convolution's kernel covers whole a part of its channels.

Such an axis has one output: the convolution is a matmul there. A kernel for convolutions would
visit as many zeros around the cotangent as the image has positions:

    conv(x[n, h, w, c], k[t, w, c, f])  ->  conv(x[n, h, 1, w * c], k[t, 1, w * c, f])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from weft.ir.graph import Graph, rewrite
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.convolution.convolution import conv, conv_grad_input, conv_grad_weight
from weft.ops.declaration import Op, op_of
from weft.ops.shape.reshape import reshape, transpose
from weft.passes.step import Step

Dims = tuple[int, ...]


@dataclass(frozen=True)
class Folding:
    """Which spatial axes are folded into channels, and which are kept."""

    image: Dims
    weights: Dims
    attrs: dict[str, Any]
    kept: Dims
    folded: Dims

    @property
    def _ones(self) -> Dims:
        return (1,) * len(self.folded)

    def _sizes(self, shape: Dims, axes: Dims) -> Dims:
        return tuple([shape[a] for a in axes])

    @property
    def _image_view(self) -> Dims:
        """The image's shape with its channels split into groups."""
        groups = self.attrs["groups"]
        return (*self.image[:-1], groups, self.image[-1] // groups)

    @property
    def _image_perm(self) -> Dims:
        rank = len(self.image)
        return (0, *self.kept, rank - 1, *self.folded, rank)

    @property
    def image_shape(self) -> Dims:
        """The image's shape afterwards."""
        channels = prod(self._sizes(self.image, self.folded)) * self.image[-1]
        return (self.image[0], *self._ones, *self._sizes(self.image, self.kept), channels)

    @property
    def _weights_perm(self) -> Dims:
        rank = len(self.weights)
        return (*[a - 1 for a in (*self.kept, *self.folded)], rank - 2, rank - 1)

    @property
    def weights_shape(self) -> Dims:
        """The shape of the weights afterwards."""
        taps = (0, *self.weights)
        depth = prod(self._sizes(taps, self.folded)) * self.weights[-2]
        return (*self._ones, *self._sizes(taps, self.kept), depth, self.weights[-1])

    def output_shape(self, output: Dims) -> Dims:
        """The output's shape afterwards: what is folded has size 1 there."""
        return (output[0], *self._ones, *self._sizes(output, self.kept), output[-1])

    def window(self) -> dict[str, Any]:
        """The attributes afterwards."""
        fill = {"strides": 1, "dilation": 1, "padding": (0, 0)}
        moved = {
            key: (*[one for _ in self.folded], *[self.attrs[key][a - 1] for a in self.kept])
            for key, one in fill.items()
        }
        return {**moved, "groups": self.attrs["groups"]}

    def of_image(self, x: Value) -> Value:
        """An image, folded."""
        turned = transpose(reshape(x, shape=self._image_view), perm=self._image_perm)
        return reshape(turned, shape=self.image_shape)

    def of_weights(self, w: Value) -> Value:
        """Weights, folded."""
        return reshape(transpose(w, perm=self._weights_perm), shape=self.weights_shape)

    def to_image(self, x: Value) -> Value:
        """The image of a folded one."""
        return _turned_back(x, self._image_view, self._image_perm, self.image)

    def to_weights(self, w: Value) -> Value:
        """The weights of folded ones."""
        return _turned_back(w, self.weights, self._weights_perm, self.weights)


def _turned_back(x: Value, view: Dims, perm: Dims, shape: Dims) -> Value:
    inner = reshape(x, shape=tuple([view[p] for p in perm]))
    back = tuple([perm.index(a) for a in range(len(perm))])
    return reshape(transpose(inner, perm=back), shape=shape)


def _folding(image: Dims, weights: Dims, node: Node) -> Folding | None:
    attrs = {k: v for k, v in node.attrs.items() if k != "shape"}
    axes = range(1, len(image) - 1)
    folded = tuple([
        a for a in axes
        if weights[a - 1] != 1 and attrs["padding"][a - 1] == (0, 0) and image[a] == weights[a - 1]
    ])  # fmt: skip
    if not folded:
        return None
    return Folding(image, weights, attrs, tuple([a for a in axes if a not in folded]), folded)


def _conv(node: Node) -> Value | None:
    x, w = node.inputs
    f = _folding(known(x.shape), known(w.shape), node)
    if f is None:
        return None
    y = conv(f.of_image(x), f.of_weights(w), **f.window())
    return reshape(y, shape=node.types[0].shape)


def _grad_input(node: Node) -> Value | None:
    g, w = node.inputs
    f = _folding(known(node.types[0].shape), known(w.shape), node)
    if f is None:
        return None
    inner = reshape(g, shape=f.output_shape(known(g.shape)))
    x = conv_grad_input(inner, f.of_weights(w), shape=f.image_shape, **f.window())
    return f.to_image(x)


def _grad_weight(node: Node) -> Value | None:
    x, g = node.inputs
    f = _folding(known(x.shape), known(node.types[0].shape), node)
    if f is None:
        return None
    inner = reshape(g, shape=f.output_shape(known(g.shape)))
    w = conv_grad_weight(f.of_image(x), inner, shape=f.weights_shape, **f.window())
    return f.to_weights(w)


RULES: Final[Mapping[Op, Callable[[Node], Value | None]]] = {
    conv: _conv, conv_grad_input: _grad_input, conv_grad_weight: _grad_weight,
}  # fmt: skip


def whole_axes(step: Step) -> Step:
    """Folds the whole axes of all convolutions into channels."""
    if not any(op_of(node) in RULES for node in step.graph.nodes):
        return step

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        found = RULES[op_of(node)](node) if op_of(node) in RULES else None
        return None if found is None else (found,)

    return step.with_graph(rewrite(step.graph, rule))
