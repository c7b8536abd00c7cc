"""Device meshes: ranks in a grid, with groups along each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.collectives.process_group import init_process_group
from weft.documentation import Reads
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, DistributedError, ShapeError, UnknownKeyError
from weft.transport import session
from weft.transport.group import Group

__all__ = ["DeviceMesh", "init_device_mesh"]

_DEVICES: Final = ("cpu",)
Ranks = np.ndarray[Any, np.dtype[np.int64]]
Axes = tuple[tuple[int, ...], ...]


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """Arrange the first ranks of the job in a grid; all ranks of the job call it.

    Args:
        device_type: `"cpu"`.
        mesh_shape: the size of each dimension; ranks are consecutive along the last.
        mesh_dim_names: a name for each dimension, as `("dp", "tp")`.

    Raises:
        DistributedError: the job has fewer ranks than the mesh has places.
        ArgumentError: another device type, or not one name per dimension.

    Example:
        >>> import weft.distributed as dist
        >>> dist.init_process_group()
        >>> mesh = dist.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
        >>> mesh["tp"].size(), mesh.get_local_rank("dp")
        (1, 0)
        >>> dist.destroy_process_group()
    """
    shape = tuple([int(n) for n in mesh_shape])
    if not shape or min(shape) < 1:
        raise ShapeError.here(f"init_device_mesh: expected positive sizes, got {list(shape)}")
    ranks = np.arange(math.prod(shape)).reshape(shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)


class DeviceMesh:
    """Ranks in a grid; all ranks of the job create it, members or not.

    Args:
        device_type: `"cpu"`.
        mesh: the ranks, as a tensor, an array or nested lists; each at most once.
        mesh_dim_names: a name for each dimension.

    Raises:
        DistributedError: a rank is out of range, or occurs twice.
        ArgumentError: another device type, or not one name per dimension.

    Example:
        >>> import weft.distributed as dist
        >>> dist.init_process_group()
        >>> mesh = dist.DeviceMesh("cpu", [0], mesh_dim_names=["dp"])
        >>> mesh
        DeviceMesh('cpu', [0], mesh_dim_names=('dp',))
        >>> dist.get_world_size(mesh.get_group())
        1
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None
    ) -> None:
        if device_type not in _DEVICES:
            raise ArgumentError.here(f"DeviceMesh: expected the device 'cpu', got {device_type!r}")
        if session.current() is None:
            init_process_group()
        ranks = np.array(mesh, dtype=np.int64)
        _check(ranks)
        axes = tuple([(i,) for i in range(ranks.ndim)])
        groups = [_group_along(ranks, each) for each in axes]
        self._set(device_type, ranks, axes, _names(mesh_dim_names, ranks.ndim), groups)

    def _set(
        self, device_type: str, whole: Ranks, axes: Axes, names: tuple[str, ...] | None,
        groups: list[Group | None],
    ) -> None:  # fmt: skip
        """Set the attributes that a mesh and its submeshes have.

        Args:
            whole: the mesh of which this one is a submesh.
            axes: for each dimension, the dimensions of `whole` that make it up.
            groups: for each dimension, this rank's group along it.
        """
        self.device_type = device_type
        self.mesh_dim_names = names
        self._whole = whole
        self._axes = axes
        self._groups = groups
        positions = np.argwhere(whole == session.world().index)
        place = positions[0].tolist() if len(positions) else [0] * whole.ndim
        self._inside = bool(len(positions))
        own = [i for each in axes for i in each]
        index = tuple([slice(None) if i in own else n for i, n in enumerate(place)])
        sizes = [math.prod([whole.shape[i] for i in each]) for each in axes]
        self._ranks = whole[index].reshape(sizes)

    @property
    def mesh(self) -> Tensor:
        """The ranks, as a tensor of integers."""
        return wrap(leaf(self._ranks.copy()))

    ndim = Reads[int]("_ranks.ndim", "The number of dimensions.")
    shape = Reads[tuple[int, ...]]("_ranks.shape", "The size of each dimension.")

    def size(self, mesh_dim: int | str | None = None) -> int:
        """The number of ranks, or the size of one dimension."""
        return self._ranks.size if mesh_dim is None else self.shape[self._axis(mesh_dim, "size")]

    def get_group(self, mesh_dim: int | str | None = None) -> Group:
        """This rank's group along a dimension, which may be omitted if there is only one.

        Raises:
            DistributedError: this rank is not in the mesh.
            ArgumentError: there are several dimensions, and none is given.
        """
        return self._own_groups("get_group")[self._axis(mesh_dim, "get_group")]

    def get_all_groups(self) -> list[Group]:
        """This rank's group along each dimension."""
        return self._own_groups("get_all_groups")

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's index along a dimension, which may be omitted if there is only one."""
        return self._own_groups("get_local_rank")[self._axis(mesh_dim, "get_local_rank")].index

    def get_rank(self) -> int:
        """This process's global rank."""
        return session.world().index

    def get_coordinate(self) -> list[int] | None:
        """This rank's index along each dimension; `None` if it is not in the mesh."""
        return [group.index for group in self._groups if group] if self._inside else None

    def __getitem__(self, mesh_dim_names: str | Sequence[str]) -> DeviceMesh:
        """The submesh of some dimensions that contains this rank.

        Raises:
            UnknownKeyError: unknown names, or names out of order.
            DistributedError: this rank is not in the mesh.
        """
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        places = [self._axis(name, "DeviceMesh") for name in names]
        if not places or places != sorted(set(places)):
            raise UnknownKeyError.here(
                f"DeviceMesh: expected dimensions in the mesh's order {self.mesh_dim_names}, got "
                f"{names}"
            )
        groups = self._own_groups("DeviceMesh")
        axes = tuple([self._axes[i] for i in places])
        return self._part(axes, names, [groups[i] for i in places])

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """A mesh of one dimension with the same ranks; all ranks of the job call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ())
        axes = tuple([i for each in self._axes for i in each])
        return self._part((axes,), (name,) if name else None, [_group_along(self._whole, axes)])

    def _part(
        self, axes: Axes, names: tuple[str, ...] | None, groups: Sequence[Group | None]
    ) -> DeviceMesh:
        part = DeviceMesh.__new__(DeviceMesh)
        part._set(self.device_type, self._whole, axes, names, list(groups))
        return part

    def _own_groups(self, name: str) -> list[Group]:
        if not self._inside:
            raise DistributedError.here(
                f"{name}: rank {self.get_rank()} is not in the mesh {self._ranks.tolist()}"
            )
        return [group for group in self._groups if group is not None]

    def _axis(self, mesh_dim: int | str | None, name: str) -> int:
        """The index of a dimension."""
        if mesh_dim is None and self.ndim > 1:
            raise ArgumentError.here(
                f"{name}: expected one of {self.ndim} dimensions{self._known()}, got none"
            )
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise UnknownKeyError.here(
                    f"{name}: expected a dimension of the mesh{self._known()}, got {mesh_dim!r}"
                )
            return (self.mesh_dim_names or ()).index(mesh_dim)
        axis = mesh_dim or 0
        if not -self.ndim <= axis < self.ndim:
            raise ArgumentError.here(f"{name}: expected a dimension below {self.ndim}, got {axis}")
        return axis % self.ndim

    def _known(self) -> str:
        return f" {self.mesh_dim_names}" if self.mesh_dim_names else ", which have no names"

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self._ranks.tolist()}{names})"

    def _grids(self) -> frozenset[bytes]:
        """The ranks of this mesh, and of the corresponding submeshes of other ranks."""
        axes = [i for each in self._axes for i in each]
        last = range(self._whole.ndim - len(axes), self._whole.ndim)
        grids = np.moveaxis(self._whole, axes, last).reshape(-1, self._ranks.size)
        return frozenset([ranks.tobytes() for ranks in grids])

    def __eq__(self, other: object) -> bool:
        """Whether both are equal on all ranks; all ranks get the same answer."""
        return self is other or (
            isinstance(other, DeviceMesh)
            and self.mesh_dim_names == other.mesh_dim_names
            and self.shape == other.shape
            and self._grids() == other._grids()
        )

    def __hash__(self) -> int:
        return hash((self.shape, self._grids(), self.mesh_dim_names))


def _check(ranks: Ranks) -> None:
    """Check that a mesh consists of different ranks of the job."""
    count = session.world().size
    if not ranks.ndim or not ranks.size:
        raise ShapeError.here(f"DeviceMesh: expected a grid of ranks, got {ranks}")
    if ranks.size > count:
        raise DistributedError.here(
            f"DeviceMesh: expected at most {count} ranks, as many as there are, got a mesh of "
            f"{' x '.join(map(str, ranks.shape))} = {ranks.size}; start them with: weft launch -n "
            f"{ranks.size} SCRIPT"
        )
    if len(np.unique(ranks)) != ranks.size or ranks.min() < 0 or ranks.max() >= count:
        raise DistributedError.here(
            f"DeviceMesh: expected different ranks from 0 to {count - 1}, got {ranks.tolist()}"
        )


def _names(dim_names: Sequence[str] | None, ndim: int) -> tuple[str, ...] | None:
    if dim_names is None:
        return None
    names = tuple(dim_names)
    if len(names) != ndim or len(set(names)) != ndim:
        raise ArgumentError.here(
            f"DeviceMesh: expected {ndim} different names, one for each dimension, got {names}"
        )
    return names


def _group_along(whole: Ranks, axes: tuple[int, ...]) -> Group | None:
    """Create the groups along some axes; returns this rank's."""
    last = tuple(range(whole.ndim - len(axes), whole.ndim))
    count = math.prod([whole.shape[i] for i in axes])
    joined, world = session.current(), session.world()
    assert joined is not None
    own: Group | None = None
    for line in np.moveaxis(whole, axes, last).reshape(-1, count).tolist():
        group = world if tuple(line) == world.ranks else joined.new_group(line)
        own = group if group.index >= 0 else own
    return own
