"""Modules whose parameters are divided among ranks; called by `job_checks.py`."""

import contextlib
import copy
import itertools
import sys
import types

import numpy as np
import pytest

import weft as wf
import weft.distributed as dist
from weft.checkpoint import Checkpointer
from weft.collectives.elements import compute_pending
from weft.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from weft.errors import ArgumentError, DistributedError, OptimizerError
from weft.transport import session

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
    """The same losses as with whole parameters on each rank; each keeps its rows.

    A tied table's gradient is added up in another order: rows of lookups, then those of the layer.
    """
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
                    np.testing.assert_allclose(found[name], p.numpy(force=True), 1e-5, 1e-6)
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
    net = fully_shard(wf.nn.Linear(1, 1, bias=False))  # two calls before the backward pass
    for sync, scales in ((False, (1.0, 2.0)), (True, (4.0,))):
        net.set_requires_gradient_sync(sync)
        sum(net(wf.full((1, 1), scale + rank)).sum() for scale in scales).backward()
    assert [p.grad.tolist() for p in net.parameters() if p.numel()] == [
        [[7.0 + 3 * (size - 1) / 2]]
    ] * (rank == 0)
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


def check_order_of_gathers(rank: int, size: int) -> None:
    """The next unit's parameters are on their way while one computes, also in a backward pass."""
    transport = session.world().transport
    widths = (3, 4, 5, 6)
    net = wf.nn.Sequential(*[wf.nn.Linear(a * size, b * size, bias=False)
                             for a, b in itertools.pairwise(widths)])  # fmt: skip
    for layer in net:
        fully_shard(layer)
    fully_shard(net)
    parts = {12 * size: "a", 20 * size: "b", 30 * size: "c"}
    seen: list[str] = []

    def calls() -> str:
        transport.worker.drain()
        found = [span.what.split() for span in transport.tally.spans or ()]
        transport.tally.spans = []
        names = [parts[int(words[-2])] for words in found]
        pairs = zip(found, names, strict=True)
        return " ".join([n if words[0] == "all_gather" else n.upper() for words, n in pairs])

    def look(module, args, y) -> None:
        float(y.sum())
        seen.append(calls())

    x = wf.ones(2, 3 * size).requires_grad_()
    hook = net[0].register_forward_hook(look)
    for first in ("a", "a b"):  # what follows is known after the first call
        transport.tally.spans = []
        net(x).sum().backward()
        float(net[0].weight.grad.sum()) if rank == 0 and net[
            0
        ].weight.numel() else compute_pending()
        assert seen.pop() == first
        assert calls() == f"{'b ' if first == 'a' else ''}c c b C a B A"
    hook.remove()
    net[0].set_modules_to_forward_prefetch([net[2], net[1]])
    net[2].set_modules_to_backward_prefetch([net[1], net[0]])
    net(x).sum().backward()
    compute_pending()
    assert calls() == "a c b c b a C B A"
    assert type(net[:2]) is wf.nn.Sequential
    with wf.no_grad():
        net[0](x)  # what was begun for others ends as well
        net[0].reshard()
        compute_pending()
    assert calls() == "a c b"
    net.set_reshard_after_backward(False)
    for wanted in ("a c b C B A", "C B A"):
        net(x).sum().backward()
        compute_pending()
        assert calls() == wanted
    transport.tally.spans = None


def check_what_programs_call(rank: int, size: int) -> None:
    """A handle of `unshard`, a method besides `forward`, parts kept by neighboring ranks."""
    net, tokens = sharded(), batch(0, rank, size)
    wanted = net(tokens).detach()
    handle = net.unshard(async_op=True)
    assert net.table.weight.shape != (11, 6)
    handle.wait()
    assert net.table.weight.shape == (11, 6)
    net.reshard()
    net.unshard(async_op=True)
    assert net(tokens).tolist() == wanted.tolist()
    net.unshard(async_op=True)
    net.reshard()
    net.look_up = types.MethodType(lambda self, x: self.table(x), net)
    register_fsdp_forward_method(net, "look_up")
    assert net.look_up(tokens).shape == (8 // size, 4, 6)
    with pytest.raises(ArgumentError, match="FSDPNet has no method 'generate'"):
        register_fsdp_forward_method(net, "generate")
    with pytest.raises(ArgumentError, match="expected modules that are sharded, got a Linear"):
        net.set_modules_to_forward_prefetch([wf.nn.Linear(1, 1)])
    with pytest.raises(ArgumentError, match="expected a bool, got 2"):
        net.set_reshard_after_forward(2)
    losses = train(net, rank, size)[0]
    other = sharded()
    optimizer = wf.optim.AdamW(other.parameters(), lr=0.05)
    for step, loss in enumerate(losses):  # whole parameters are there before each call
        with wf.no_grad():
            other.unshard()
        found = loss_of(other, batch(step, rank, size))
        found.backward()
        assert float(found) == pytest.approx(loss, rel=1e-5)
        assert other.table.weight.shape != (11, 6)
        optimizer.step()
        optimizer.zero_grad()
    for count in (1, 2, size):
        other = sharded(again=count)
        np.testing.assert_allclose(train(other, rank, size)[0], losses, rtol=1e-5)
    with pytest.raises(ArgumentError, match=rf"divides {size}, the number of ranks, got 3"):
        fully_shard(Net(), reshard_after_forward=3, offload_policy=CPUOffloadPolicy())


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
