"""Modules whose parameters are divided among ranks; called by `job_checks.py`."""

import contextlib
import copy
import sys

import numpy as np
import pytest

import weft as wf
import weft.distributed as dist
from weft.checkpoint import Checkpointer
from weft.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from weft.errors import ArgumentError, DistributedError, OptimizerError

HALF = MixedPrecisionPolicy(param_dtype=wf.bfloat16, reduce_dtype=wf.float32)


class Net(wf.nn.Module):
    """Rows that no number of ranks divides, a table that is also the last layer, one element."""

    def __init__(self, seed=0):
        super().__init__()
        wf.manual_seed(seed)
        self.table = wf.nn.Embedding(11, 6)
        blocks = [wf.nn.Sequential(wf.nn.Linear(6, 9), wf.nn.GELU(), wf.nn.Linear(9, 6))] * 1
        blocks.append(wf.nn.Sequential(wf.nn.LayerNorm(6), wf.nn.Linear(6, 6)))
        self.blocks = wf.nn.ModuleList(blocks)
        self.scale = wf.nn.Parameter(wf.tensor([1.5]))
        self.head = wf.nn.Linear(6, 11, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        x = self.table(tokens)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x) * self.scale


def sharded(again=None, mesh=None, policy=None, seed=0):
    net = Net(seed)
    for part in (*net.blocks, net):
        fully_shard(part, mesh=mesh, reshard_after_forward=again, mp_policy=policy)
    return net


def batch(step, rank, size):
    tokens = wf.randint(0, 11, (8, 4), generator=wf.Generator().manual_seed(step))
    return tokens[rank * 8 // size : (rank + 1) * 8 // size]


def loss_of(model, tokens):
    return wf.nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())


def train(model, rank, size, steps=2, look=False, most=None):
    """Losses of training steps; `look` has one rank see values before others do."""
    optimizer = wf.optim.AdamW(model.parameters(), lr=0.05)
    found = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, batch(step, rank, size))
        if look and rank == 0:
            float(loss)
        loss.backward()
        if most is not None:
            found.append(wf.nn.utils.clip_grad_norm_(model.parameters(), most))
        optimizer.step()
        found.append(loss.detach())
    return [float(x) for x in found], optimizer


@contextlib.contextmanager
def whole(net):
    """Inside, a sharded model has its whole parameters."""
    units = [m for m in net.modules() if isinstance(m, FSDPModule)]
    for unit in units:
        unit.unshard()
    yield {name: p.detach().numpy() for name, p in net.named_parameters()}
    for unit in units:
        unit.reshard()


def check_as_data_parallel(rank: int, size: int) -> None:
    """The same bits as of whole parameters on each rank; each keeps its rows."""
    with wf.config.override(compile=True):
        alone = Net()
        model = wf.nn.parallel.DistributedDataParallel(alone)
        wanted, _ = train(model, rank, size, look=False)
        for again in (None, False):
            net = sharded(again, seed=rank)  # the first rank's values are taken
            assert isinstance(net, FSDPModule) and isinstance(net, Net)
            assert net.table.weight is net.head.weight
            assert train(net, rank, size, look=True)[0] == wanted
            with whole(net) as found:
                for name, p in alone.named_parameters():
                    assert found[name].tolist() == p.tolist(), name
    rows = -(-11 // size)
    assert net.table.weight.shape == (min(rows, 11 - rows * rank), 6)
    assert net.table.weight.grad.shape == net.table.weight.shape
    assert net.scale.shape == (int(rank == 0),)
    with wf.no_grad():
        found = net(batch(0, 0, 1))
    if rank == 0:  # others gather all the same
        np.testing.assert_allclose(found, alone(batch(0, 0, 1)).detach(), rtol=1e-5, atol=1e-5)


def check_norms_and_half_precision(rank: int, size: int) -> None:
    wanted, _ = train(wf.nn.parallel.DistributedDataParallel(Net()), rank, size, most=0.1)
    found, _ = train(sharded(), rank, size, most=0.1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    half, _ = train(sharded(policy=HALF), rank, size, most=0.1)
    np.testing.assert_allclose(half, wanted, rtol=0.05)
    assert half != found
    net = sharded()
    loss_of(net, batch(0, rank, size)).backward()
    whole_net = Net()
    loss_of(whole_net, batch(0, 0, 1)).backward()
    for p in (1.0, 0.0, float("inf")):
        nets = (net, whole_net)
        norms = [float(wf.nn.utils.clip_grad_norm_(n.parameters(), 1e9, p)) for n in nets]
        np.testing.assert_allclose(*norms, rtol=1e-4)


def check_gradients_that_add_up(rank: int, size: int) -> None:
    """Without reduction until the last part of a batch, as with it for each."""
    nets = (sharded(), sharded())
    for net, syncs in zip(nets, ((False, False, True), (True, True, True)), strict=True):
        for step, sync in enumerate(syncs):
            net.set_requires_gradient_sync(sync)
            loss_of(net, batch(step, rank, size)).backward()
            assert (net.scale.grad is None) == (not sync)
    for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad, rtol=1e-4, atol=1e-6)
    other = copy.deepcopy(nets[0])
    assert other.scale is not nets[0].scale and isinstance(other, FSDPModule)
    loss_of(other, batch(0, rank, size)).backward()
    assert other.head.weight.grad.shape == nets[0].head.weight.shape


def check_loss_scaling(rank: int, size: int) -> None:
    """An infinite gradient of one rank leaves out the step on all."""
    layer = fully_shard(wf.nn.Linear(size, size))
    scaler, optimizer = wf.GradScaler(init_scale=4.0), wf.optim.SGD(layer.parameters(), lr=1.0)
    before = layer.weight.detach().clone()
    for scale, changes in ((float("inf"), False), (1.0, True)):
        optimizer.zero_grad()
        x = wf.ones(1, size)
        rows = wf.tensor([scale] + [1.0] * (size - 1))  # of rank 0
        scaler.scale((layer(x) * rows).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert bool((layer.weight != before).any()) == changes, scale
    assert scaler.get_scale() == 2.0


def check_two_dimensions(rank: int, size: int) -> None:
    """Divided along one dimension of a mesh, and the same along the other."""
    mesh = dist.init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("copy", "part"))
    wanted, _ = train(wf.nn.parallel.DistributedDataParallel(Net()), rank, size, 2)
    net = sharded(mesh=mesh)
    np.testing.assert_allclose(train(net, rank, size, 2)[0], wanted, rtol=1e-4)
    assert net.table.weight.shape == ((6, 6), (5, 6))[rank % 2]


def check_checkpoints(rank: int, size: int) -> None:
    """What two ranks save, four restore: parameters, and the optimizer's state."""
    net = sharded()
    _, optimizer = train(net, rank, size, 2)
    state = {"model": net, "optimizer": optimizer}
    saved = net.state_dict()["table.weight"]
    assert saved.shape == (11, 6) and saved.tensor.shape == net.table.weight.shape
    with Checkpointer(sys.argv[2], rank=rank, world_size=size) as checkpoints:
        missing = checkpoints.latest() is None
        dist.barrier()
        if missing:
            checkpoints.save(1, state)
            checkpoints.wait()
        dist.barrier()
        other = sharded(seed=5)
        adam = wf.optim.AdamW(other.parameters(), lr=0.5)
        found = checkpoints.restore({"model": other, "optimizer": adam}).state
    assert adam.param_groups[0]["lr"] == 0.05
    with whole(other) as restored:
        for name, x in found["model"].items():
            name = name.replace("head", "table")
            assert restored[name].ravel().tolist() == x.ravel().tolist()
    mean = adam.state[other.table.weight]["exp_avg"]
    assert mean.shape == other.table.weight.shape
    if size == 2:
        assert mean.tolist() == optimizer.state[net.table.weight]["exp_avg"].tolist()
    Net().load_state_dict(found["model"])
    train(other, rank, size, 1)


def check_units_of_several_modules(rank: int, size: int) -> None:
    """The same losses and parameters as of one unit each; a shared parameter is gathered once."""
    wanted, _ = train(sharded(), rank, size, 3)
    net = Net()
    assert fully_shard(list(net.blocks)) == list(net.blocks)
    fully_shard((net.table, net.head))
    fully_shard(net)
    np.testing.assert_allclose(train(net, rank, size, 3)[0], wanted, rtol=1e-5)
    other = copy.deepcopy(net)
    with whole(net) as found, whole(other) as copied:
        assert found["table.weight"].shape == (11, 6)
        assert all(np.array_equal(found[name], copied[name]) for name in found)
    with wf.no_grad():
        net(batch(0, rank, size))
    net.load_state_dict({name: wf.tensor(x) for name, x in copied.items()}, strict=False)
    with pytest.raises(DistributedError, match="this FSDPEmbedding is sharded already"):
        fully_shard([net.table, net.head])


def check_shards_that_cannot_be(rank: int, size: int) -> None:
    net = sharded()
    with pytest.raises(DistributedError, match=r"fully_shard: this FSDPNet is sharded already"):
        fully_shard(net)
    mesh = dist.init_device_mesh("cpu", (1, 1, size))
    with pytest.raises(ArgumentError, match="a mesh of one or two dimensions, got 3"):
        fully_shard(Net(), mesh=mesh)
    tied = Net()
    fully_shard(tied.head)
    with pytest.raises(DistributedError, match=r"'table.weight' is the parameter 'head.weight',"):
        fully_shard(tied)
    with pytest.raises(DistributedError, match="models differ: rank 0 has weight float32"):
        fully_shard(wf.nn.Linear(2, 2 + rank % 2))
    with pytest.raises(ArgumentError, match=r"fully_shard: expected a module, got int"):
        fully_shard([wf.nn.Linear(1, 1), 3])
    with pytest.raises(ArgumentError, match=r"'weight' has no shape yet"):
        fully_shard(wf.nn.LazyLinear(3))
    scalar = wf.nn.Module()
    scalar.scale = wf.nn.Parameter(wf.tensor(1.0))
    with pytest.raises(ArgumentError, match=r"'scale' is a scalar, which has no rows"):
        fully_shard(scalar)
    with pytest.raises(OptimizerError, match="LAMB: expected whole parameters"):
        wf.optim.LAMB(net.parameters())
