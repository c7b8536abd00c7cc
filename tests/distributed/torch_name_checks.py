"""PyTorch's names for several ranks, checked on each of them; called by job_checks.py."""

import functools
import warnings

import numpy as np

import weft as wf
import weft.distributed as dist
import weft.horovod.torch as hvd
from weft.distributed import nn
from weft.distributed.algorithms import Join
from weft.distributed.algorithms import default_hooks as hooks
from weft.distributed.algorithms.checkpoint_wrapper import apply_activation_checkpointing
from weft.distributed.fsdp import (
    FullStateDictConfig,
    MixedPrecision,
    ShardingStrategy,
    StateDictType,
)  # fmt: skip
from weft.distributed.fsdp import FullyShardedDataParallel as FSDP
from weft.distributed.fsdp.wrap import ModuleWrapPolicy, size_based_auto_wrap_policy
from weft.errors import ArgumentError

DDP = wf.nn.parallel.DistributedDataParallel


def slope(function, rank):
    x = wf.tensor([1.0 + rank, 2.0], requires_grad=True)
    y = function(x)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


def check_gradients_of_collectives(rank: int, size: int) -> None:
    """Each is that of the sum of all ranks' losses."""
    total = size * (size + 1) / 2
    assert slope(lambda x: nn.all_reduce(x * 3), rank) == ([3 * total, 6 * size], [3 * size] * 2)
    assert slope(lambda x: nn.broadcast(x * (rank + 1), 1), rank)[1] == (
        [2 * size] * 2 if rank == 1 else [0, 0]
    )
    assert slope(lambda x: nn.reduce(x, 0), rank)[1] == [1, 1]
    y, g = slope(lambda x: sum((i + 1) * (rank + 1) * y for i, y in enumerate(nn.all_gather(x))),
                 rank)  # fmt: skip
    assert y[1] == 2 * total * (rank + 1) and g == [(rank + 1) * total] * 2
    y, g = slope(lambda x: nn.reduce_scatter(None, [x * (i + 1) for i in range(size)]), rank)
    assert y == [(rank + 1) * total, 2 * size * (rank + 1)] and g == [total] * 2
    y, g = slope(lambda x: nn.scatter([x * (i + 1) for i in range(size)], 1), rank)
    assert y == [2 * (rank + 1), 2 * (rank + 1)] and g == ([total] * 2 if rank == 1 else [0, 0])


def check_hooks_of_gradients(rank: int, size: int) -> None:
    for hook, exact in (
        (hooks.allreduce_hook, True), (hooks.bf16_compress_hook, False),
        (hooks.fp16_compress_hook, False),
    ):  # fmt: skip
        wf.manual_seed(0)
        model = DDP(wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Linear(4, 2)), bucket_cap_mb=3e-5)
        x = wf.rand(5, 3) + rank
        model(x).square().mean().backward()
        wanted = [p.grad.numpy().copy() for p in model.parameters()]
        model.zero_grad()
        seen = []
        model.register_comm_hook((seen, hook), lambda s, b: s[0].append(b.index()) or s[1](None, b))
        model(x).square().mean().backward()
        for p, g in zip(model.parameters(), wanted, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-6 if exact else 2e-2, atol=1e-3)
        assert seen == list(range(len(seen))) and len(seen) > 1


def check_ranks_with_more_batches(rank: int, size: int) -> None:
    model = DDP(wf.nn.Sequential(wf.nn.Linear(2, 1), wf.nn.BatchNorm1d(1)))
    optimizer = wf.optim.SGD(model.parameters(), 0.1)
    with Join([model]):
        for _ in range(2 + rank):
            model(wf.rand(3, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert model.module[1].num_batches_tracked.item() == 1 + size
    every = [None] * size
    dist.all_gather_object(every, [p.tolist() for p in model.parameters()])
    assert every == [every[0]] * size


def check_groups_and_objects(rank: int, size: int) -> None:
    own, groups = dist.new_subgroups(1)
    assert own.ranks == (rank,) and len(groups) == size and dist.group.WORLD.size == size
    if rank == 0:
        dist.send_object_list([{"a": 1}, "b"], size - 1)
    elif rank == size - 1:
        objects = [None, None]
        assert dist.recv_object_list(objects) == 0 and objects == [{"a": 1}, "b"]
    xs = [wf.ones(2), wf.ones(3)]
    future = dist.all_reduce_coalesced(xs, async_op=True).get_future()
    assert [x.tolist() for x in future.wait()] == [[size] * 2, [size] * 3]


class Net(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.Tanh())
        self.last = wf.nn.Linear(8, 2)

    def forward(self, x):
        return self.last(self.first(x))


def check_sharded_wrapper(rank: int, size: int) -> None:
    found = []
    sized = functools.partial(size_based_auto_wrap_policy, min_num_params=20)
    for options, units in (
        ({}, 1), ({"auto_wrap_policy": ModuleWrapPolicy({wf.nn.Linear})}, 3),
        ({"auto_wrap_policy": sized, "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP}, 2),
        ({"sharding_strategy": ShardingStrategy.NO_SHARD}, 1),
        ({"mixed_precision": MixedPrecision(wf.bfloat16, wf.float32)}, 1),
    ):  # fmt: skip
        wf.manual_seed(0)
        model = FSDP(Net(), **options)
        assert len(FSDP.fsdp_modules(model)) == units and isinstance(model, FSDP)
        apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, wf.nn.Linear))
        optimizer = wf.optim.Adam(model.parameters(), 0.1)
        for i in range(2):
            optimizer.zero_grad()
            model(wf.ones(2, 4) * (rank + i)).square().sum().backward()
            model.clip_grad_norm_(1.0)
            optimizer.step()
        with FSDP.state_dict_type(
            model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)
        ):
            assert len(model.state_dict()) == (0 if rank else 4)
        whole = model.state_dict()
        assert len(FSDP.optim_state_dict(model, optimizer)["state"]) == 4
        with FSDP.summon_full_params(model):
            assert tuple(model.last.weight.shape) == (2, 8)
        model.load_state_dict(whole)
        found.append(whole["last.weight"].float().numpy().copy())
    for other in found[1:4]:
        np.testing.assert_allclose(other, found[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[4], found[0], rtol=0.1, atol=0.02)


def check_horovods_names(rank: int, size: int) -> None:
    xs = [wf.ones(2) * rank, wf.ones(1)]
    rows = hvd.synchronize(hvd.grouped_allgather_async(xs))
    assert rows[0].tolist() == [i for i in range(size) for _ in range(2)]
    assert hvd.synchronize(hvd.grouped_reducescatter_async([wf.ones(size)], op=hvd.Sum))[0] == size
    handle = hvd.allreduce_async(wf.ones(1), name="twice")
    try:
        hvd.allreduce_async(wf.ones(1), name="twice")
        raise AssertionError("expected an error")
    except ArgumentError as error:
        assert "another name than that of a call in flight, got 'twice'" in str(error)
    hvd.synchronize(handle)
    hvd.synchronize(hvd.allreduce_async(wf.ones(1), name="twice"))
    half = wf.tensor([100.0], dtype=wf.float16)
    scaled = hvd.allreduce(half, op=hvd.Sum, postscale_factor=0.1915)
    assert scaled.item() == np.float16(np.float32(100 * size) * np.float32(0.1915))
    ys = hvd.grouped_allreduce([x.requires_grad_() for x in xs], op=hvd.Sum)
    for y in ys:  # each alone
        y.sum().backward()
    assert [x.grad.tolist() for x in xs] == [[size] * 2, [size]]
    optimizer = hvd.DistributedOptimizer(wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], 0.1))
    optimizer.synchronize()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        optimizer.step()
    assert "without optimizer.skip_synchronize()" in str(told[0].message)
    entries = wf.tensor([0.0, rank + 1.0, 0.0]).to_sparse()
    whole = hvd.sparse_allreduce_async(entries, op=hvd.Sum)()
    assert whole.to_dense().tolist() == [0, size * (size + 1) / 2, 0]
    comm = __import__("mpi4py.MPI").MPI.COMM_SELF
    assert hvd.ProcessSet(comm).ranks == [rank]
