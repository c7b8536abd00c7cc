"""Meshes of ranks; called by `job_checks.py`."""

import numpy as np
import pytest

import weft as wf
import weft.distributed as dist
from weft.errors import DistributedError


def check_mesh(rank: int, size: int) -> None:
    rows = size // 2
    mesh = dist.init_device_mesh("cpu", (rows, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.mesh.tolist() == np.arange(size).reshape(rows, 2).tolist()
    assert (mesh.shape, mesh.ndim, mesh.size(), mesh.size("tp")) == ((rows, 2), 2, size, 2)
    assert mesh.get_coordinate() == [rank // 2, rank % 2] and mesh.get_rank() == rank
    assert (mesh.get_local_rank("dp"), mesh.get_local_rank(1)) == (rank // 2, rank % 2)
    assert dist.get_process_group_ranks(mesh.get_group("dp")) == list(range(rank % 2, size, 2))
    for name, wanted in (("dp", [rank % 2, size - 2 + rank % 2]), ("tp", [rank | 1, rank & ~1])):
        x = wf.tensor([float(rank)])
        dist.all_reduce(x, group=mesh[name].get_group())
        assert x.item() == sum(set(wanted))
    part = mesh["tp"]
    assert part.mesh.tolist() == [rank & ~1, rank | 1] and part.mesh_dim_names == ("tp",)
    assert part.get_local_rank() == rank % 2 and mesh["dp", "tp"] == mesh != part


def check_equal_meshes(rank: int, size: int) -> None:
    """Meshes are equal on all ranks, or on none."""
    names = {"mesh_dim_names": ("a", "b")}
    mesh, same = (dist.init_device_mesh("cpu", (size // 2, 2), **names) for _ in range(2))
    order = [*range(size - 2), size - 1, size - 2]  # which the first ranks do not see
    other = dist.DeviceMesh("cpu", np.reshape(order, (size // 2, 2)), **names)
    assert len({mesh, same, other}) == 2 and mesh["b"] == same["b"] != other["b"]
    alone = dist.DeviceMesh("cpu", [0, 1], mesh_dim_names=("b",))
    assert (alone == mesh["b"]) == (size == 2)


def check_flat_and_partial_meshes(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size // 2, 1, 2), mesh_dim_names=("a", "b", "c"))
    flat = mesh["b", "c"]._flatten()
    assert flat.mesh_dim_names == ("b_c",) and flat.mesh.tolist() == [rank & ~1, rank | 1]
    assert dist.get_process_group_ranks(flat.get_group()) == flat.mesh.tolist()
    one = dist.DeviceMesh("cpu", [1])
    assert one.get_coordinate() == ([0] if rank == 1 else None)
    if rank != 1:
        with pytest.raises(DistributedError, match=rf"get_group: rank {rank} is not in the mesh"):
            one.get_group()


def check_wrong_meshes(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (1, size), mesh_dim_names=("dp", "tp"))
    wrong = (
        (lambda: dist.init_device_mesh("cpu", (3, size)), f"at most {size} ranks.* 3 x {size} ="),
        (lambda: dist.init_device_mesh("cuda", (size,)), "the device 'cpu', got 'cuda'"),
        (lambda: dist.init_device_mesh("cpu", (size,), mesh_dim_names="dp"), "expected 1 diff"),
        (lambda: dist.DeviceMesh("cpu", [0, 0]), "expected different ranks"),
        (lambda: mesh["pp"], r"a dimension of the mesh \('dp', 'tp'\), got 'pp'"),
        (lambda: mesh["tp", "dp"], "in the mesh's order"),
        (lambda: mesh.get_group(), "get_group: expected one of 2 dimensions"),
        (lambda: mesh.get_local_rank(2), "expected a dimension below 2, got 2"),
    )
    for call, text in wrong:
        with pytest.raises((DistributedError, ValueError), match=text):
            call()
