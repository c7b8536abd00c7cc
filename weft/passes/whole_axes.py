"""Convolutions whose kernel covers an axis of the image whole, or nearly.

An axis that it covers whole has one output. It becomes a part of the channels:

    conv(x[n, h, w, c], k[t, w, c, f])  ->  conv(x[n, h, 1, w * c], k[t, 1, w * c, f])

Along an axis with few outputs, the gradient of the image is the sum of what each output adds. A
kernel for convolutions would visit the zeros around the cotangent for each position of the image,
of which there are many more than outputs.
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
from weft.ops.elementwise.arithmetic import add_n
from weft.ops.indexing.slicing import cut, unslice
from weft.ops.shape.reshape import reshape, transpose
from weft.passes.step import Step

FEW: Final = 8
"""Maximum outputs of an axis whose gradient is summed output by output."""
WASTE: Final = 2
"""Minimum positions of the image for each one that a step of the window adds."""

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


def _has_few_outputs(node: Node, axis: int) -> bool:
    g, w, image = (known(v.shape) for v in (*node.inputs, node.outputs[0]))
    stride, dilation = node.attrs["strides"][axis - 1], node.attrs["dilation"][axis - 1]
    if dilation != 1 or w[axis - 1] <= stride:
        return False
    return bool(1 <= g[axis] <= FEW and image[axis] > WASTE * stride * g[axis])


def _by_output(node: Node) -> Value | None:
    """The gradient of the image with windows that do not overlap along axes with few outputs; then
    their sum.
    """
    g, w = node.inputs
    shape = known(node.types[0].shape)
    kind = node.types[0].dtype
    axes = [a for a in range(1, len(shape) - 1) if _has_few_outputs(node, a)]
    if not axes or (kind.is_floating and kind.size < 4):  # half precision would round each part
        return None
    attrs: dict[str, Any] = {**node.attrs, "shape": list(shape)}
    attrs |= {name: list(node.attrs[name]) for name in ("strides", "padding")}
    for a in axes:
        taps = known(w.shape)[a - 1]
        attrs["shape"][a] = known(g.shape)[a] * taps
        attrs["strides"][a - 1], attrs["padding"][a - 1] = taps, (0, 0)
    attrs |= {name: tuple(attrs[name]) for name in ("shape", "strides", "padding")}
    total = conv_grad_input(g, w, **attrs)
    for a in axes:
        stride, padding = node.attrs["strides"][a - 1], node.attrs["padding"][a - 1]
        total = _overlapped(total, a, shape[a], known(w.shape)[a - 1], stride, padding)
    return total


def _overlapped(
    x: Value, axis: int, size: int, taps: int, stride: int, padding: tuple[int, int]
) -> Value:
    """Adds up windows that lie one after another at their places in an axis of a size."""
    shape = list(known(x.shape))
    count, shape[axis] = shape[axis] // taps, size + sum(padding)
    parts: list[Value] = []
    for i in range(count):
        begin, end = [0] * len(shape), list(shape)
        begin[axis], end[axis] = i * stride, i * stride + taps
        part = cut(x, axis, i * taps, (i + 1) * taps)
        parts.append(unslice(part, shape=tuple(shape), begin=tuple(begin), end=tuple(end)))
    total = add_n(*parts) if count > 1 else parts[0]
    return cut(total, axis, padding[0], padding[0] + size)


def _grad_input(node: Node) -> Value | None:
    g, w = node.inputs
    f = _folding(known(node.types[0].shape), known(w.shape), node)
    if f is None:
        return _by_output(node)
    inner = reshape(g, shape=f.output_shape(known(g.shape)))
    x = conv_grad_input(inner, f.of_weights(w), shape=f.image_shape, **f.window())
    return f.to_image(_by_output(x.node) or x)


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
    """Rewrites convolutions whose kernels cover axes whole, or nearly."""
    if not any(op_of(node) in RULES for node in step.graph.nodes):
        return step

    def rule(node: Node, _: Graph) -> Sequence[Value] | None:
        found = RULES[op_of(node)](node) if op_of(node) in RULES else None
        return None if found is None else (found,)

    return step.with_graph(rewrite(step.graph, rule))
