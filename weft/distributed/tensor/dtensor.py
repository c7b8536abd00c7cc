"""`DTensor`: a tensor distributed over the ranks of a mesh."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.arithmetic import Operations
from weft.distributed.tensor.layout import (
    Placements,
    Sizes,
    moved,
    normalized,
    own_sizes,
    whole_shape,
)
from weft.distributed.tensor.placement import Partial, Placement, Replicate
from weft.distributed.tensor.propagation import Operand
from weft.distributed.tensor.redistribute import for_divided_work
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, KindError, ShapeError
from weft.ir.dtype import DType


class DTensor(Operations):
    """A tensor distributed over the ranks of a mesh; arithmetic is that of the whole tensor.

    Operations redistribute their operands as needed (`weft.distributed.tensor.propagation`). All
    ranks make the same calls. It is not a `Tensor`: pass `to_local()` or `full_tensor()`, through
    which gradients flow, to functions that take tensors.

    Args:
        local: this rank's shard, replica or partial sum.
        device_mesh: the ranks.
        placements: one for each dimension of the mesh.
        shape: of the whole tensor.

    Attributes:
        device_mesh: the ranks.
        placements: one for each dimension of the mesh.
    """

    __slots__ = ("_local", "_shape", "device_mesh", "placements")

    def __init__(
        self, local: Tensor, device_mesh: DeviceMesh, placements: Placements, shape: Sizes
    ) -> None:  # fmt: skip
        self._local, self._shape = local, shape
        self.device_mesh = device_mesh
        self.placements = placements

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh,
        placements: Iterable[Placement] | None = None, *, shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> DTensor:  # fmt: skip
        """Make a distributed tensor of each rank's local tensor.

        Args:
            local_tensor: this rank's shard, replica or partial sum.
            device_mesh: the ranks.
            placements: one for each dimension of the mesh; by default `Replicate()`. It is not
                checked that replicas are equal.
            shape: of the whole tensor, the same on all ranks; by default shards have equal shapes,
                which is not checked.
            stride: has no effect.

        Raises:
            ArgumentError: not one placement for each dimension of the mesh.
            ShapeError: the local tensor is not this rank's shard of a tensor of that shape.

        Example:
            >>> import weft as wf, weft.distributed as dist
            >>> from weft.distributed.tensor import DTensor, Shard
            >>> mesh = dist.init_device_mesh("cpu", (1,))
            >>> DTensor.from_local(wf.ones(2, 3), mesh, [Shard(0)]).sum().full_tensor().item()
            6.0
            >>> dist.destroy_process_group()
        """
        if not isinstance(local_tensor, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError.here(
                f"from_local: expected a tensor, got {type(local_tensor).__name__}"
            )
        own = tuple(local_tensor.shape)
        layout = normalized(placements, device_mesh, len(own), "from_local")
        whole = whole_shape(own, layout, device_mesh) if shape is None else tuple(shape)
        if len(whole) != len(own) or own_sizes(whole, layout, device_mesh) != own:
            raise ShapeError.here(
                f"from_local: expected this rank's part of a tensor of shape {whole} with "
                f"{layout}, got shape {own}"
            )
        return DTensor(local_tensor, device_mesh, layout, whole)

    # -- to tensors, and to other placements

    def to_local(self, *, grad_placements: Iterable[Placement] | None = None) -> Tensor:
        """This rank's local tensor; gradients flow back.

        Args:
            grad_placements: of the local tensor's gradient; by default those of the tensor.
                `Partial()` for a replica from which ranks compute different results.

        Raises:
            ArgumentError: other placements than these.
        """
        if grad_placements is None:
            return self._local
        layout = normalized(grad_placements, self.device_mesh, self.ndim, "to_local")
        local = self._local
        for i, (own, wanted) in enumerate(zip(self.placements, layout, strict=True)):
            if isinstance(own, Replicate) and isinstance(wanted, Partial):
                local = for_divided_work(local, own, self.device_mesh.get_all_groups()[i])
            elif own != wanted:
                raise ArgumentError.here(
                    f"to_local: expected a gradient as {own}, or Partial() of Replicate(), got "
                    f"{wanted}"
                )
        return local

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Iterable[Placement] | None = None
    ) -> DTensor:
        """The same tensor with other placements.

        Args:
            device_mesh: must be the tensor's.
            placements: one for each dimension of the mesh.

        Raises:
            ArgumentError: another mesh, or `Partial()` where the tensor does not have it.
        """
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise ArgumentError.here(
                f"redistribute: expected the tensor's mesh {self.device_mesh}, got {device_mesh}; "
                f"full_tensor() and distribute_tensor() go to another"
            )
        target = normalized(placements, self.device_mesh, self.ndim, "redistribute")
        local = moved(self._local, self._shape, self.placements, target, self.device_mesh)
        return DTensor(local, self.device_mesh, target, self._shape)

    def full_tensor(self) -> Tensor:
        """The whole tensor, on all ranks."""
        return self.redistribute(placements=None)._local

    def item(self) -> int | float:
        """The only element, as a number; all ranks must call it."""
        return self.full_tensor().item()

    def __float__(self) -> float:
        return float(self.item())

    # -- attributes

    @property
    def shape(self) -> Sizes:
        """The shape of the whole tensor."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._local.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._local.ndim

    def __repr__(self) -> str:
        return (
            f"DTensor(local_tensor={self._local!r}, device_mesh={self.device_mesh}, "
            f"placements={self.placements})"
        )

    # -- gradients

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through it."""
        return self._local.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> DTensor:
        """Set whether this leaf requires grad."""
        self._local.requires_grad_(requires_grad)
        return self

    @property
    def grad(self) -> DTensor | None:
        """The accumulated gradient: placed as the tensor, but replicated for partial sums."""
        if self._local.grad is None:
            return None
        places = [Replicate() if isinstance(p, Partial) else p for p in self.placements]
        return DTensor(self._local.grad, self.device_mesh, tuple(places), self._shape)

    @grad.setter
    def grad(self, value: None) -> None:
        self._local.grad = value

    def backward(self) -> None:
        """Add the gradients of this number to `.grad` of its leaves; all ranks call it.

        Raises:
            ArgumentError: it has several elements.
        """
        if self.ndim:
            raise ArgumentError.here(
                f"backward: expected a tensor of one element, got shape {self.shape}; call sum() "
                f"or mean() first"
            )
        self._local.backward()

    # -- for operations

    def operand(self) -> Operand:
        """This rank's local tensor, with its placements."""
        return Operand(self._local, self.placements, self._shape)

    def of(self, found: Operand) -> DTensor:
        """A result on the same mesh."""
        return DTensor(found.local, self.device_mesh, found.placements, found.shape)

    def __getattr__(self, name: str) -> Any:
        if hasattr(Tensor, name) and not name.startswith("__"):
            raise KindError.here(
                f"DTensor.{name} is not there; redistribute() to what the operation needs and take "
                f"to_local(), or full_tensor()"
            )
        raise AttributeError(f"'DTensor' object has no attribute {name!r}")
