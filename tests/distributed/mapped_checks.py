"""Functions over meshes of ranks, checked on each rank; called by job_checks.py.

Values and gradients are those that one process computes with all parts.
"""

import numpy as np

import weft as wf
import weft.distributed as dist
from weft import func
from weft.errors import ArgumentError, DistributedError, ShapeError, TracerError
from weft.func import PartitionSpec as P

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def drawn(*shape, seed=1):
    return wf.randn(*shape, generator=wf.Generator().manual_seed(seed))


def weighed(*ys):
    """A number that depends on all results, on each element in another way."""
    total = 0.0
    for y in ys:
        total = total + (y * wf.cos(wf.arange(float(y.numel()))).reshape(y.shape)).sum()
    return total


def compare(mapped, alone, *xs) -> None:
    """Results, gradients, gradients of gradients, over many examples, and compiled."""
    every = tuple(range(len(xs)))
    one, other = (lambda *a: weighed(*mapped(*a))), (lambda *a: weighed(*alone(*a)))
    for y, wanted in zip(mapped(*xs), alone(*xs), strict=True):
        np.testing.assert_allclose(y, wanted, **CLOSE)

    def twice(f):
        return func.grad(lambda *a: sum((g * g).sum() for g in func.grad(f, every)(*a)))

    def batched(f):
        return func.vmap(func.grad(f))

    many = [wf.stack([x, -2 * x]) for x in xs]
    for make, given in (
        (lambda f: func.grad(f, every), xs), (lambda f: func.jit(func.grad(f, every)), xs),
        (twice, xs), (batched, many), (lambda f: func.jit(batched(f)), many),
    ):  # fmt: skip
        found, wanted = make(one)(*given), make(other)(*given)
        pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
        for g, w in pairs:
            np.testing.assert_allclose(g, w, **CLOSE)
    move = func.jvp(lambda x: mapped(x, *xs[1:])[0], (xs[0],), (wf.ones_like(xs[0]),))[1]
    wanted = func.jvp(lambda x: alone(x, *xs[1:])[0], (xs[0],), (wf.ones_like(xs[0]),))[1]
    np.testing.assert_allclose(move, wanted, **CLOSE)


def check_one_axis(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("x",))

    def part(x):
        there = func.all_to_all(x, "x", split_axis=1, concat_axis=0, tiled=True)
        grid = func.all_to_all(x.reshape(size, -1), "x", 0, 0)
        added = func.psum_scatter(x, "x", scatter_dimension=1, tiled=True)
        every = func.all_gather(x, "x", axis=1, tiled=True)
        beside = func.all_gather(x, "x", axis=-1)
        after = func.ppermute(x, "x", [(i, i + 1) for i in range(size - 1)])
        return there, grid * grid, added, every * x[:, :1], beside.sum(-1), after * x

    def alone(x):
        blocks = x.reshape(size, size, -1)
        grid = blocks.reshape(size, size, -1).transpose(0, 1).reshape(size * size, -1)
        every = wf.cat([*blocks], 1)
        after = wf.cat([wf.zeros_like(blocks[:1]), blocks[:-1]]).reshape(x.shape)
        return (
            x, grid * grid, blocks.sum(0), every.tile(size, 1) * x[:, :1],
            blocks.sum(0), after * x,
        )  # fmt: skip

    specs = (P(None, "x"), P("x"), P(None, "x"), P("x"), P(), P("x"))
    compare(func.shard_map(part, mesh, P("x"), specs), alone, drawn(size * size, 2 * size))


def check_two_axes(rank: int, size: int) -> None:
    for shape in ((2, size // 2), (1, size)):
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=("x", "y"))

        def part(x, w, b):
            y = func.psum(x @ w, "y") + b
            total = func.psum(y.sum(), ("x", "y")) / func.axis_size("y")
            return y * y, total, func.pmean(w.sum(), "y"), x * b.sum()

        def alone(x, w, b, n=shape[1]):
            y = x @ w + b
            return y * y, y.sum(), w.sum() / n, x * b.sum()

        specs = (P("x", "y"), P("y", None), None), (P("x"), P(), P(), P("x", "y"))
        mapped = func.shard_map(part, mesh, *specs)
        if shape[0] == 2:
            compare(mapped, alone, drawn(4, 8), drawn(8, 3, seed=2), drawn(3, seed=3))
        both = P(("x", "y"))
        numbers = func.shard_map(lambda x: x * 0 + func.axis_index(("x", "y")), mesh, both, both)
        assert numbers(wf.zeros(size)).tolist() == list(range(size))
        every = func.shard_map(lambda x: func.all_gather(x, ("x", "y")), mesh, both, P())
        assert every(wf.arange(2 * size)).tolist() == [[2 * i, 2 * i + 1] for i in range(size)]


def check_values_from_outside(rank: int, size: int) -> None:
    """Their gradients are added up over ranks; trees go in and out."""
    mesh = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("x",))
    x, w = drawn(2 * size, 3), drawn(3, seed=2)

    def loss(w):
        @func.shard_map(mesh=mesh, in_specs=({"x": P("x")},), out_specs={"a": P("x"), "b": P()})
        def part(tree):
            y = (tree["x"] * w).sum(1)
            return {"a": y, "b": func.pmean((y * y).mean(), "x")}

        found = part({"x": x})
        return found["a"].sum() + found["b"]

    y = (x * w).sum(1)
    np.testing.assert_allclose(loss(w), y.sum() + (y * y).mean(), **CLOSE)
    wanted = x.sum(0) + 2 * (y[:, None] * x).mean(0)
    np.testing.assert_allclose(func.grad(loss)(w), wanted, **CLOSE)
    leaf = w.clone().requires_grad_()
    loss(leaf).backward()
    np.testing.assert_allclose(leaf.grad, wanted, **CLOSE)
    shared = func.pmap(lambda row, w: (row * w, func.psum(row.sum(), "i")), "i", in_axes=(1, None),
                       out_axes=(-1, None))  # fmt: skip
    rows = drawn(3, size)
    scaled, total = shared(rows, w)
    np.testing.assert_allclose(scaled, rows * w[:, None], **CLOSE)
    np.testing.assert_allclose(total, rows.sum(), **CLOSE)


def check_mapped_refusals(rank: int, size: int) -> None:
    mesh = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("x",))
    x = wf.ones(size, 3)

    own = P("x")

    def run(f, in_specs=own, out_specs=own):
        return func.shard_map(f, mesh, in_specs, out_specs)(x)

    cases = [
        (lambda: run(lambda x: x, P(None, "x")), ShapeError,
         f"a dimension that the {size} ranks along 'x' divide, got 3 in ({size}, 3)"),
        (lambda: run(lambda x: x, P("z")), ArgumentError, "axes of the mesh (x), got 'z'"),
        (lambda: run(lambda x: x, P("x", None, None)), ShapeError, "at most 2 entries"),
        (lambda: run(lambda x: func.psum(x, "y")), ArgumentError, "around it (x), got 'y'"),
        (lambda: run(lambda x: x.add_(1)), TracerError, "changes no tensor in place"),
        (lambda: run(lambda x: x.sum().item()), TracerError, ""),
        (lambda: run(lambda x: x * (rank + 1.0), out_specs=P()).tolist(), DistributedError,
         "result 0 to be the same on all ranks, as it is not divided along their axis, but rank 1"),
        (lambda: P("x", "x"), ArgumentError, "expected each axis once"),
        (lambda: func.shard_map(lambda x: x, None, P(), P()), ArgumentError, "expected a mesh"),
        (lambda: func.psum_scatter(x, None, scatter_dimension=1), ShapeError,
         f"a dimension of {size}, the number of ranks, got 3"),
        (lambda: func.ppermute(x, None, [(0, 1), (1, 1)]), ArgumentError, "pairs of different"),
    ]  # fmt: skip
    for wrong, kind, text in cases:
        try:
            wrong()
            raise AssertionError(f"expected an error: {text}")
        except kind as error:
            assert text in str(error), error

    kept = func.shard_map(lambda x: x * (rank + 1.0), mesh, own, P(), check_vma=False)(x)
    assert kept.tolist() == [[rank + 1.0] * 3]
