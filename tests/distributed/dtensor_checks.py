"""Divided tensors beside NumPy, with placements that are drawn; called by `job_checks.py`."""

import itertools

import numpy as np
import pytest

import weft as wf
import weft.distributed as dist
from weft.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    empty,
    full,
    ones,
    rand,
    randn,
    zeros,
)
from weft.errors import ArgumentError, DTypeError, ShapeError

CLOSE = {"rtol": 2e-4, "atol": 2e-4}
DRAWS = 2  # of each operation
SIZES = {8: (8, 7, 5, 2), 4: (4, 3, 1, 6)}  # what is drawn instead

OPERATIONS = {  # shapes of operands, of DTensors or tensors, of arrays
    "add": ([(8, 4), (8, 4)], lambda x, y: x + y, np.add),
    "sub": ([(4, 8), (8,)], lambda x, y: x - y, np.subtract),
    "mul": ([(8, 1, 4), (8, 4)], lambda x, y: x * y, np.multiply),
    "div": ([(8, 4), (8, 1)], lambda x, y: x / (y * y + 1.0), lambda x, y: x / (y * y + 1)),
    "numbers": ([(8, 4)], lambda x: 2.0 - (3.0 * x + 1.0) / 2.0, lambda x: 2 - (3 * x + 1) / 2),
    "maximum": ([(4, 4), (4, 4)], lambda x, y: x.maximum(y), np.maximum),
    "tanh": ([(8, 4)], lambda x: (-x).tanh(), lambda x: np.tanh(-x)),
    "matmul": ([(4, 8), (8, 4)], lambda x, y: x @ y, np.matmul),
    "batches": ([(4, 4, 8), (8, 4)], lambda x, y: x @ y, np.matmul),
    "many": ([(4, 1, 4, 4), (8, 4, 4)], lambda x, y: x @ y, np.matmul),
    "vectors": ([(8,), (8, 4)], lambda x, y: x @ y, np.matmul),
    "inner": ([(8,), (8,)], lambda x, y: x.matmul(y), np.matmul),
    "sum": ([(8, 4, 4)], lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "all": ([(8, 4)], lambda x: x.sum(), np.sum),
    "mean": ([(4, 8)], lambda x: x.mean(0, keepdim=True), lambda x: x.mean(0, keepdims=True)),
    "amax": ([(4, 8)], lambda x: x.amax(1), lambda x: x.max(1)),
    "softmax": ([(4, 8)], lambda x: x.softmax(-1),
                lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "transpose": ([(4, 8, 4)], lambda x: x.transpose(0, 2) * 2.0, lambda x: x.swapaxes(0, 2) * 2),
    "t": ([(4, 8)], lambda x: x.T, np.transpose),
    "unsqueeze": ([(4, 8)], lambda x: x.unsqueeze(1), lambda x: x[:, None]),
    "reshape": ([(4, 8)], lambda x: x.reshape(*x.shape[::-1]),
                lambda x: x.reshape(x.shape[::-1])),
}  # fmt: skip


def meshes(size):
    """Of all ranks, and of three, where the last is in none."""
    found = [dist.init_device_mesh("cpu", shape) for shape in ((size,), (2, size // 2))]
    return found if size == 2 else [*found, dist.DeviceMesh("cpu", [0, 1, 2])]


def drawn(rng, mesh, ndim):
    """Placements of a tensor of so many dimensions."""
    kinds = [Replicate(), Partial(), *map(Shard, range(ndim))]
    return tuple([kinds[rng.integers(len(kinds))] for _ in range(mesh.ndim)])


def drawn_arrays(rng, shapes):
    """Arrays of these shapes, but for sizes that are drawn."""
    sizes = {n: int(rng.choice(others)) for n, others in SIZES.items()}
    shapes = [[sizes.get(n, n) for n in shape] for shape in shapes]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def laid(whole, mesh, placements):
    """A DTensor of these placements; its summands differ from rank to rank."""
    cut = tuple([Replicate() if p == Partial() else p for p in placements])
    local = distribute_tensor(wf.tensor(whole), mesh, cut).to_local().clone()
    for i, p in enumerate(placements):
        if p == Partial():
            weights = np.arange(1.0, mesh.shape[i] + 1)
            local = local * float((weights / weights.sum())[mesh.get_local_rank(i)])
    found = DTensor.from_local(local.detach(), mesh, placements, shape=whole.shape)
    return found.requires_grad_()


def check_divided_operations(rank: int, size: int) -> None:
    """Values and gradients; what is refused is cut where it has to be whole."""
    every, refused = meshes(size), 0
    for i, (name, draw) in enumerate(itertools.product(OPERATIONS, range(DRAWS))):
        rng, mesh = np.random.default_rng(i), every[(i + i // DRAWS) % len(every)]
        if mesh.get_coordinate() is None:
            continue
        shapes, function, reference = OPERATIONS[name]
        arrays = drawn_arrays(rng, shapes)
        places = [drawn(rng, mesh, x.ndim) for x in arrays]
        case = f"{name} {[x.shape for x in arrays]} {places} on {mesh.shape}, draw {draw}"
        xs = [laid(x, mesh, p) for x, p in zip(arrays, places, strict=True)]
        try:
            found = function(*xs)
        except ArgumentError as error:
            assert name in ("amax", "softmax", "reshape") and "redistribute()" in str(error), case
            refused += 1
            continue
        wanted = reference(*arrays)
        assert found.shape == wanted.shape, case
        DTensor.from_local(found.to_local(), mesh, found.placements, shape=found.shape)
        np.testing.assert_allclose(found.full_tensor().detach(), wanted, **CLOSE, err_msg=case)
        weights = rng.standard_normal(wanted.shape).astype(np.float32)
        (found * distribute_tensor(wf.tensor(weights), mesh)).sum().backward()
        alone = [wf.tensor(x).requires_grad_() for x in arrays]
        (function(*alone) * wf.tensor(weights)).sum().backward()
        for x, y in zip(xs, alone, strict=True):
            np.testing.assert_allclose(x.grad.full_tensor(), y.grad, **CLOSE, err_msg=case)
    assert rank > 2 or 0 < refused < 3 * DRAWS, refused


def check_redistribution(rank: int, size: int) -> None:
    """Any placements from any others: the same values, and gradients."""
    for i, mesh in enumerate(meshes(size) * 7):
        if mesh.get_coordinate() is None:
            continue
        rng = np.random.default_rng(i)
        whole, weights = drawn_arrays(rng, [(8, 4, 8)] * 2)
        source, target = (drawn(rng, mesh, whole.ndim) for _ in range(2))
        target = tuple([Replicate() if t == Partial() != s else t
                        for s, t in zip(source, target, strict=True)])  # fmt: skip
        x = laid(whole, mesh, source)
        y = x.redistribute(placements=target)
        case = f"{whole.shape} {source} to {target} on {mesh.shape}"
        assert y.placements == target and y.shape == whole.shape, case
        DTensor.from_local(y.to_local(), mesh, target, shape=whole.shape)
        np.testing.assert_allclose(y.full_tensor().detach(), whole, **CLOSE, err_msg=case)
        (y * distribute_tensor(wf.tensor(weights), mesh)).sum().backward()
        np.testing.assert_allclose(x.grad.full_tensor(), weights, **CLOSE, err_msg=case)


def check_making_of_divided_tensors(rank: int, size: int) -> None:
    mesh, rows = dist.init_device_mesh("cpu", (size,)), [Shard(0)]
    for make, value in ((zeros, 0.0), (ones, 1.0)):
        x = make(4 * size, 3, device_mesh=mesh, placements=rows)
        assert x.shape == (4 * size, 3) and x.to_local().shape == (4, 3)
        assert (x.full_tensor() == value).all() and x.dtype is wf.float32
    x = full((size, 2), 7, dtype=wf.int64, device_mesh=mesh, placements=rows)
    assert x.to_local().tolist() == [[7, 7]] and x.sum().item() == 14 * size
    assert empty(size, device_mesh=mesh, placements=rows).to_local().shape == (1,)
    wf.manual_seed(rank)  # the first rank's values are taken
    for make in (rand, randn):
        x = make(size, 3, device_mesh=mesh, placements=rows, requires_grad=True)
        every = [None] * size
        dist.all_gather_object(every, x.full_tensor().detach())
        assert all([each.tolist() == every[0].tolist() for each in every]) and x.requires_grad
    assert (x > 0.0).full_tensor().tolist() == (every[0] > 0.0).tolist()
    local = DTensor.from_local(wf.full((2,), float(rank + 1)), mesh).requires_grad_()
    part = local.to_local(grad_placements=[Partial()])
    (part * float(rank)).sum().backward()
    assert local.grad.to_local().tolist() == [size * (size - 1) / 2] * 2
    local.grad = None
    assert local.grad is None and "placements=(Replicate(),)" in repr(local)


def check_equal_meshes_of_operands(rank: int, size: int) -> None:
    mesh, other = (dist.init_device_mesh("cpu", (size,)) for _ in range(2))
    x = distribute_tensor(wf.arange(3.0), mesh, [Shard(0)])  # of which some ranks have nothing
    y = distribute_tensor(wf.ones(3), other, [Replicate()])
    assert (x + y).full_tensor().tolist() == [1.0, 2.0, 3.0]
    assert x.redistribute(other, [Replicate()]).to_local().tolist() == [0.0, 1.0, 2.0]


def check_divided_tensors_that_cannot_be(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,))
    x = ones(size, 3, device_mesh=mesh, placements=[Shard(0)])
    with pytest.raises(ShapeError, match=r"from_local: expected this rank's part of a tensor of"):
        DTensor.from_local(wf.ones(2), mesh, [Shard(0)], shape=(size,))
    with pytest.raises(ArgumentError, match="expected a placement for each of the 1 dimensions"):
        distribute_tensor(wf.ones(4), mesh, [Shard(0), Replicate()])
    with pytest.raises(ArgumentError, match=r"a dimension of a tensor that has 1, got Shard"):
        distribute_tensor(wf.ones(4), mesh, [Shard(1)])
    with pytest.raises(ArgumentError, match=r"from_local\(\) makes a tensor of summands"):
        distribute_tensor(wf.ones(4), mesh, [Partial()])
    with pytest.raises(DTypeError, match=r"DTensor\.cumsum is not there; redistribute"):
        x.cumsum(0)
    with pytest.raises(DTypeError, match="add: expected a DTensor or a number, got a Tensor"):
        x + wf.ones(4)
    with pytest.raises(ShapeError, match="matmul: inner dimensions differ"):
        x @ x
    with pytest.raises(ShapeError, match="do not fit together"):
        x + ones(5, device_mesh=mesh)
    with pytest.raises(ArgumentError, match="expected dimension 0 whole on each rank, got Shard"):
        x.softmax(0)
    with pytest.raises(ArgumentError, match=r"expected Partial\(\) from another placement"):
        x.redistribute(placements=[Partial()])
    with pytest.raises(ArgumentError, match="expected tensors on equal meshes"):
        x + ones(size, 3, device_mesh=dist.init_device_mesh("cpu", (1, size)))
    with pytest.raises(ArgumentError, match="expected the tensor's mesh"):
        x.redistribute(dist.DeviceMesh("cpu", [*range(size)][::-1]), [Replicate()])
    with pytest.raises(ArgumentError, match="expected a tensor of one element, got shape"):
        x.backward()
    with pytest.raises(ArgumentError, match="expected a gradient as Shard"):
        x.to_local(grad_placements=[Partial()])
