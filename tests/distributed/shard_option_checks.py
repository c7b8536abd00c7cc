"""`fully_shard` with other reductions and other dimensions; called by `job_checks.py`."""

import numpy as np
import pytest
from shard_checks import Net, sharded, train, whole

import weft as wf
import weft.distributed as dist
from weft.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from weft.distributed.tensor import Replicate, Shard
from weft.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from weft.errors import ArgumentError, DistributedError

CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def grid(size):
    return dist.init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("copy", "part"))


def columns(p):
    return Shard(-1) if p.ndim > 1 else None


def check_gradients_reduced_over_copies_later(rank: int, size: int) -> None:
    """As where each backward pass reduces them over all ranks; until then nobody sees them."""
    mesh, nets = grid(size), []
    for _ in range(3):
        wf.manual_seed(3)
        net = wf.nn.Sequential(wf.nn.Linear(3, 5), wf.nn.Linear(5, 3))
        fully_shard(net[1], mesh=mesh).set_gradient_divide_factor(3.0)
        nets.append(fully_shard(net, mesh=mesh))
    for step in range(4):
        for net in nets:
            net.set_requires_gradient_sync(net is not nets[2] or step > 0)
            net.set_requires_all_reduce(net is nets[0] or step == 3)
            x = wf.arange(6.0).reshape(2, 3) * (rank + step)
            (net(x).square().mean() + net(-x).sum()).backward()  # two calls before it
            assert (net[0].weight.grad is None) == (net is not nets[0] and step < 3)
    for _ in range(2):  # the second time nothing is left of what was held back
        wanted, *others = [[p.grad for p in net.parameters()] for net in nets]
        for found in others:
            for g, w in zip(found, wanted, strict=True):
                np.testing.assert_allclose(g, w, **CLOSE)
        for net in nets:
            net.zero_grad()
            net(wf.ones(1, 3)).sum().backward()


def check_divisors_of_gradients(rank: int, size: int) -> None:
    """Sums over all ranks by the number that is given, for one unit alone."""
    half = MixedPrecisionPolicy(param_dtype=wf.float16)
    for mesh, policy in ((None, None), (grid(size), None), (None, half), (grid(size), half)):
        net = wf.nn.Sequential(wf.nn.Linear(4, 4, bias=False), wf.nn.Linear(4, 4, bias=False))
        for layer in net:
            wf.nn.init.eye_(layer.weight)
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(net, mesh=mesh, mp_policy=policy)
        net[1].set_gradient_divide_factor(factor := 0.5 * size)
        for sync, reduces in ((True, True), (False, True), (True, False), (True, True)):
            net.set_requires_gradient_sync(sync)
            net.set_requires_all_reduce(reduces)
            x = wf.full((1, 4), 30_000.0 if policy else rank + 1.0)  # whose sum is no float16
            net(x).sum().backward()
        total = 4 * (30_000 * size if policy else size * (size + 1) / 2)
        for layer, divisor in ((net[0], size), (net[1], factor)):
            for g in layer.weight.grad.reshape(-1).tolist():
                assert g == pytest.approx(total / divisor, rel=1e-3), (divisor, policy, mesh)
    net.set_force_sum_reduction_for_comms(True)
    for wrong in (0, -1.0, float("inf"), "2"):
        with pytest.raises(ArgumentError, match="expected a positive number, got"):
            net.set_gradient_divide_factor(wrong)


def check_parts_along_other_dimensions(rank: int, size: int) -> None:
    """The same losses, norms and whole parameters as of rows; slices that checkpoints take."""
    wanted, _ = train(rows := sharded(), rank, size, most=0.1)
    for options in ({}, {"again": 2, "mesh": grid(size)}):
        net = Net(rank)
        for part in (*net.blocks, net):
            fully_shard(
                part, mesh=options.get("mesh"), reshard_after_forward=options.get("again"),
                shard_placement_fn=columns,
            )  # fmt: skip
        ranks, place = (2, rank % 2) if "mesh" in options else (size, rank)
        each = -(-6 // ranks)
        assert net.head.weight.shape == (11, max(0, min(each, 6 - each * place)))
        found, _ = train(net, rank, size, most=0.1)
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
        with whole(net) as ours, whole(rows) as theirs:
            for name, x in theirs.items():
                np.testing.assert_allclose(ours[name], x, **CLOSE, err_msg=name)
        saved = net.state_dict()["head.weight"]
        assert saved.shape == (11, 6) and saved.start == (0, min(each * place, 6))
        values = np.arange(66, dtype=np.float32).reshape(11, 6)
        net.load_state_dict({"head.weight": wf.tensor(values)}, strict=False)
        assert net.head.weight.tolist() == values[saved.place].tolist()
    layer = wf.nn.Linear(3, 2 * size, bias=False)
    mesh = grid(size)
    parallelize_module(layer, mesh["part"], ColwiseParallel(output_layouts=Replicate()))
    fully_shard(layer, mesh=mesh["copy"], shard_placement_fn=lambda p: Shard(1))
    assert layer(wf.ones(2, 3)).shape == (2, 2 * size)
    piece = layer.state_dict()["weight"]
    each = -(-3 // (size // 2))
    assert piece.shape == (2 * size, 3) and piece.start == (size * (rank % 2), each * (rank // 2))
    for give, text in ((lambda p: Shard(2), r"got Shard\(dim=2\)"), (lambda p: 1, "got 1")):
        with pytest.raises(ArgumentError, match=rf"Shard\(\) of one of the 2 .* 'weight', {text}"):
            fully_shard(wf.nn.Linear(2, 2), shard_placement_fn=give)
    with pytest.raises(DistributedError, match=r"placements differ: rank 0 has weight Shard\(0\)"):
        fully_shard(wf.nn.Linear(2, 2, bias=False), shard_placement_fn=lambda p: Shard(rank % 2))
