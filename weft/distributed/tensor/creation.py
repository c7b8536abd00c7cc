"""Creation of distributed tensors from whole tensors or numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.collectives.elements import array
from weft.collectives.process_group import get_process_group_ranks
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.dtensor import DTensor
from weft.distributed.tensor.layout import normalized, own_part
from weft.distributed.tensor.placement import Placement
from weft.eager.functions import api
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError
from weft.transport import collective

__all__ = ["distribute_tensor", "empty", "full", "ones", "rand", "randn", "zeros"]


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None,
    placements: Iterable[Placement] | None = None, *, src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """Distribute a tensor over the ranks of a mesh; all of them call it. The result is a leaf.

    Sizes need not be divisible by the number of ranks: each shard has the quotient rounded up, and
    the last ranks' shards are smaller or empty.

    Args:
        tensor: the whole tensor.
        device_mesh: by default all ranks in one dimension.
        placements: one for each dimension of the mesh; by default `Replicate()`.
        src_data_rank: 0 to use the first rank's values; `None` if all ranks have the same.

    Raises:
        ArgumentError: `Partial()`, or not one placement for each dimension of the mesh.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.distributed.tensor import Replicate, Shard, distribute_tensor
        >>> mesh = dist.init_device_mesh("cpu", (1,))
        >>> x = distribute_tensor(wf.ones(4, 3), mesh, [Shard(0)])
        >>> (x @ x.T).placements
        (Shard(dim=0),)
        >>> dist.destroy_process_group()
    """
    if src_data_rank not in (0, None):
        raise ArgumentError.here(
            f"distribute_tensor: expected src_data_rank 0 or None, got {src_data_rank}"
        )
    mesh = DeviceMesh("cpu", get_process_group_ranks()) if device_mesh is None else device_mesh
    layout = normalized(placements, mesh, tensor.ndim, "distribute_tensor")
    whole = array(tensor)
    if src_data_rank is not None:
        whole = whole.copy()
        for group in mesh.get_all_groups():
            what = f"distribute_tensor of {whole.dtype}{list(whole.shape)}"
            collective.broadcast(group, whole, 0, what)
    local = wrap(leaf(own_part(whole, layout, mesh)))
    return DTensor(local.requires_grad_(tensor.requires_grad), mesh, layout, whole.shape)


def _factory(make: Callable[..., Tensor]):
    """`make` with a mesh and placements; random numbers are the first rank's."""

    def made(
        *size: Any, dtype: Any = None, requires_grad: bool = False,
        device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        whole = make(*size, dtype=dtype)
        drawn = 0 if make in (api.rand, api.randn) else None
        distributed = distribute_tensor(whole, device_mesh, placements, src_data_rank=drawn)
        return distributed.requires_grad_(requires_grad)

    made.__name__ = make.__name__
    made.__doc__ = f"""`weft.{make.__name__}`, distributed over the ranks of a mesh.

    Args:
        size: the arguments of `weft.{make.__name__}`.
        dtype: the element type.
        requires_grad: whether gradients flow to the result.
        device_mesh: see `distribute_tensor`.
        placements: see `distribute_tensor`.
    """
    return made


zeros, ones, empty, full = map(_factory, (api.zeros, api.ones, api.empty, api.full))
rand, randn = map(_factory, (api.rand, api.randn))
