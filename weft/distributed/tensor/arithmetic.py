"""Operators and methods of distributed tensors, with the labels of their dimensions."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.placement import Shard
from weft.distributed.tensor.pointwise import Arithmetic, of_one, of_two
from weft.distributed.tensor.propagation import Labels, Operand, Rule, applied
from weft.errors import ArgumentError, DTypeError, ShapeError

Dims = int | Sequence[int] | None
_FIRST, _INNER, _LAST = 1 << 20, (1 << 20) + 1, (1 << 20) + 2  # labels of a product's matrices


class Operations(Arithmetic):
    """The arithmetic of distributed tensors."""

    __slots__ = ()
    device_mesh: DeviceMesh

    @property
    @abc.abstractmethod
    def ndim(self) -> int:
        """The number of dimensions."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole tensor."""

    @abc.abstractmethod
    def operand(self) -> Operand:
        """This rank's local tensor, with its placements."""

    @abc.abstractmethod
    def of(self, found: Operand) -> Self:
        """A result on the same mesh."""

    def _applied(self, rule: Rule, function: Callable[..., Any], *others: Operations) -> Self:
        for x in others:
            if x.device_mesh != self.device_mesh:
                raise ArgumentError.here(
                    f"{rule.name}: expected tensors on equal meshes, got {self.device_mesh} and "
                    f"{x.device_mesh}"
                )
        operands = [x.operand() for x in (self, *others)]
        return self.of(applied(rule, function, operands, self.device_mesh))

    def _labels(self) -> Labels:
        return tuple(range(self.ndim))

    def _dims(self, name: str, dim: Dims) -> tuple[int, ...]:
        """The given dimensions, or all if none is given."""
        dims = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        if any([not -self.ndim <= d < self.ndim for d in dims]):
            raise ShapeError.here(
                f"{name}: expected dimensions of a tensor that has {self.ndim}, got {dim}"
            )
        return tuple([d % self.ndim for d in dims])

    # -- by element

    def with_other(self, name: str, other: Any, swapped: bool = False) -> Self:
        """Apply an elementwise method of tensors to two operands, or to one and a number."""

        def function(x: Any, y: Any) -> Any:
            return getattr(x, name)(y)

        if not isinstance(other, Operations):
            if not isinstance(other, int | float):
                raise DTypeError.here(
                    f"{name.strip('_')}: expected a DTensor or a number, got a "
                    f"{type(other).__name__}; distribute_tensor() makes a DTensor"
                )
            name = f"__r{name[2:]}" if swapped else name
            scales = name in ("__mul__", "__rmul__", "__truediv__")
            rule = Rule(name, (self._labels(),), self._labels(), products=(0,) * scales)
            return self._applied(rule, lambda x: function(x, other))
        labels = _aligned(name, self.shape, other.shape)
        factors = {"__mul__": (0, 1), "__truediv__": (0,)}.get(name, ())
        additive = name in ("__add__", "__sub__")
        rank = max(self.ndim, other.ndim)
        rule = Rule(name, labels, tuple(range(rank)), additive=additive, products=factors)
        return self._applied(rule, function, other)

    def by_element(self, name: str, *args: Any, **kwargs: Any) -> Self:
        """Apply an elementwise method of tensors."""
        rule = Rule(name, (self._labels(),), self._labels(), additive=name in _LINEAR)
        return self._applied(rule, lambda x: getattr(x, name)(*args, **kwargs))

    # -- products

    def matmul(self, other: Any) -> Self:
        """The matrix product, with batch dimensions as those of `Tensor.matmul`."""
        if not isinstance(other, Operations):
            raise DTypeError.here(
                f"matmul: expected a DTensor, got a {type(other).__name__}; distribute_tensor() "
                f"makes one"
            )
        if not self.ndim or not other.ndim:
            raise ShapeError.here("matmul: expected vectors or matrices")
        inner = self.shape[-1], other.shape[-2] if other.ndim > 1 else other.shape[0]
        if inner[0] != inner[1]:
            raise ShapeError.here(
                f"matmul: inner dimensions differ: {self.shape} and {other.shape}"
            )
        batches = _aligned("matmul", self.shape[:-2], other.shape[:-2])
        x = (*batches[0], _FIRST, _INNER)[-self.ndim :]
        y = (*batches[1], _INNER, _LAST) if other.ndim > 1 else (_INNER,)
        rank = max(self.ndim - 2, other.ndim - 2, 0)
        sides = (_FIRST,) * (self.ndim > 1) + (_LAST,) * (other.ndim > 1)
        rule = Rule("matmul", (x, y), (*range(rank), *sides), products=(0, 1))
        return self._applied(rule, lambda a, b: a @ b, other)

    __matmul__ = mm = bmm = matmul

    # -- reductions

    def sum(self, dim: Dims = None, keepdim: bool = False) -> Self:
        """The sum over dimensions; partial sums if one of them is sharded."""
        dims = self._dims("sum", dim)
        result = _without(self._labels(), dims, keepdim)
        rule = Rule("sum", (self._labels(),), result, additive=True)
        return self._applied(rule, lambda x: x.sum(dims, keepdim) if dims else x.clone())

    def mean(self, dim: Dims = None, keepdim: bool = False) -> Self:
        """The mean over dimensions."""
        if not self.operand().local.dtype.is_inexact:
            raise DTypeError.here("mean: expected floating elements")
        count = 1
        for d in self._dims("mean", dim):
            count *= self.shape[d]
        return self.sum(dim, keepdim).with_other("__truediv__", count)

    def _along(self, name: str, dim: Dims, keepdim: bool | None) -> Self:
        """A reduction along dimensions that cannot be sharded."""
        dims, result, options = self._dims(name, dim), self._labels(), {}
        if keepdim is not None:
            options["keepdim"] = keepdim
            result = _without(result, dims, keepdim)
        rule = Rule(name, (self._labels(),), result, whole=frozenset(dims))
        chosen = dim if isinstance(dim, int) else dims
        return self._applied(rule, lambda x: getattr(x, name)(dim=chosen, **options))

    def amax(self, dim: Dims = None, keepdim: bool = False) -> Self:
        """The largest elements along dimensions, which must not be sharded."""
        return self._along("amax", dim, keepdim)

    def amin(self, dim: Dims = None, keepdim: bool = False) -> Self:
        """The smallest elements along dimensions, which must not be sharded."""
        return self._along("amin", dim, keepdim)

    def argmax(self, dim: int, keepdim: bool = False) -> Self:
        """The indices of the largest elements along a dimension, which must not be sharded."""
        return self._along("argmax", dim, keepdim)

    def softmax(self, dim: int) -> Self:
        """The softmax along a dimension, which must not be sharded."""
        return self._along("softmax", dim, None)

    def log_softmax(self, dim: int) -> Self:
        """The logarithm of the softmax along a dimension, which must not be sharded."""
        return self._along("log_softmax", dim, None)

    # -- movement

    def permute(self, *dims: int) -> Self:
        """The dimensions in another order."""
        order = self._dims("permute", dims)
        if sorted(order) != list(range(self.ndim)):
            raise ShapeError.here(f"permute: expected each dimension once, got {dims}")
        rule = Rule("permute", (self._labels(),), order, additive=True)
        return self._applied(rule, lambda x: x.permute(*order))

    def transpose(self, dim0: int, dim1: int) -> Self:
        """Two dimensions exchanged."""
        a, b = self._dims("transpose", (dim0, dim1))
        order = list(range(self.ndim))
        order[a], order[b] = order[b], order[a]
        return self.permute(*order)

    def t(self) -> Self:
        """A matrix transposed."""
        if self.ndim > 2:
            raise ShapeError.here(f"t: expected a matrix, got shape {self.shape}")
        return self.permute(*range(self.ndim)[::-1])

    @property
    def T(self) -> Self:
        """A matrix transposed."""
        return self.t()

    @property
    def mT(self) -> Self:
        """The last two dimensions exchanged."""
        return self.transpose(-2, -1)

    def unsqueeze(self, dim: int) -> Self:
        """One more dimension, of size 1."""
        rank = self.ndim + 1
        if not -rank <= dim < rank:
            raise ShapeError.here(f"unsqueeze: expected a place of {rank}, got {dim}")
        place, own = dim % rank, list(self._labels())
        labels = (*own[:place], None, *own[place:])
        rule = Rule("unsqueeze", (self._labels(),), labels, additive=True)
        return self._applied(rule, lambda x: x.unsqueeze(place))

    def reshape(self, *shape: int) -> Self:
        """The tensor in another shape; it must not be sharded.

        Raises:
            ArgumentError: it is sharded.
        """
        if any([isinstance(p, Shard) for p in self.operand().placements]):
            raise ArgumentError.here(
                f"reshape: expected a tensor that is cut along no dimension, got "
                f"{self.operand().placements}; redistribute() it first"
            )
        operand = self.operand()
        local = operand.local.reshape(*shape)
        return self.of(Operand(local, operand.placements, tuple(local.shape)))

    __add__ = add = of_two("__add__")
    __sub__ = sub = of_two("__sub__")
    __mul__ = mul = of_two("__mul__")
    __truediv__ = div = of_two("__truediv__")
    __pow__ = pow = of_two("__pow__")
    __radd__ = of_two("__add__", swapped=True)
    __rsub__ = of_two("__sub__", swapped=True)
    __rmul__ = of_two("__mul__", swapped=True)
    __rtruediv__ = of_two("__truediv__", swapped=True)
    __rpow__ = of_two("__pow__", swapped=True)
    __eq__ = of_two("__eq__")
    __ne__ = of_two("__ne__")
    __lt__ = of_two("__lt__")
    __le__ = of_two("__le__")
    __gt__ = of_two("__gt__")
    __ge__ = of_two("__ge__")
    __hash__ = object.__hash__
    __and__ = of_two("__and__")
    __or__ = of_two("__or__")
    __neg__ = of_one("__neg__")
    __invert__ = of_one("__invert__")
    clamp = of_one("clamp")
    clone = of_one("clone")
    detach = of_one("detach")
    double = of_one("double")
    float = of_one("float")
    to = of_one("to")


_LINEAR: Final = frozenset({"__neg__", "clone", "detach"})


def _without(labels: Labels, dims: Sequence[int], keepdim: bool) -> Labels:
    """The labels of the result of a reduction over dimensions."""
    return tuple([None if i in dims else i for i in labels if keepdim or i not in dims])


def _aligned(name: str, x: Sequence[int], y: Sequence[int]) -> tuple[Labels, Labels]:
    """Labels for broadcasting: the dimensions' positions in the result."""
    rank = max(len(x), len(y))
    padded = [(1,) * (rank - len(z)) + tuple(z) for z in (x, y)]
    sizes = [b if a == 1 else a for a, b in zip(*padded, strict=True)]
    aligned: list[Labels] = []
    for z in (x, y):
        labels: list[int | None] = []
        for place, n in enumerate(z, rank - len(z)):
            if n not in (1, sizes[place]):
                raise ShapeError.here(
                    f"{name.strip('_')}: shapes {tuple(x)} and {tuple(y)} do not fit together"
                )
            labels.append(place if n == sizes[place] else None)
        aligned.append(tuple(labels))
    return aligned[0], aligned[1]
