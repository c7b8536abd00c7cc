"""What ranks do together, checked on each of them; run by `weft launch`."""

import hashlib
import sys
import time
from pathlib import Path

import horovod_checks
import horovod_graph_checks
import horovod_keras_checks
import mapped_checks
import mesh_checks
import numpy as np
import pipeline_checks
import shard_checks
import tensor_parallel_checks

import weft as wf
import weft.distributed as dist
import weft.horovod.tensorflow as tf_hvd
import weft.horovod.torch as hvd
import weft.tf1 as tf
from weft import func
from weft.datasets import load_digits
from weft.eager.tensor import lookup
from weft.eager.tensor.dispatch import call
from weft.errors import DistributedError, OptimizerError
from weft.ops.base import REGISTRY
from weft.transport import session


def check_reductions(rank: int, size: int) -> None:
    for dtype in (wf.float32, wf.float64, wf.float16, wf.bfloat16, wf.int64):
        for count in (1, 3, 40_000, 150_000, 3_000_001):  # below and above all limits
            x = wf.full((count,), rank + 1).to(dtype)
            dist.all_reduce(x)
            assert x.dtype is dtype and float(x[-1]) == size * (size + 1) / 2
    for count in range(1, 70):  # more shapes than a group keeps messages prepared for
        x = wf.full((count,), rank)
        for _ in range(2):
            dist.all_reduce(x)
        assert x.tolist() == [size * size * (size - 1) // 2] * count
    ops = {"MAX": size, "MIN": 1, "PRODUCT": np.prod(range(1, size + 1)), "AVG": (size + 1) / 2}
    for name, wanted in ops.items():
        x = wf.tensor(float(rank + 1))
        dist.all_reduce(x, op=dist.ReduceOp[name])
        assert x.shape == () and x.item() == wanted
    x = wf.tensor([1 << rank])
    dist.all_reduce(x, op=dist.ReduceOp.BOR)
    assert x.tolist() == [2**size - 1]


def check_sums_of_halves(rank: int, size: int) -> None:
    """2048 + 1 is no float16, 2048 + 2 is: sums in float16 would lose every 1."""
    x = wf.tensor([2048.0 if rank == 0 else 1.0] * 3, dtype=wf.float16)
    dist.all_reduce(x)
    assert x.tolist() == [float(np.float16(2048 + size - 1))] * 3


def check_movements(rank: int, size: int) -> None:
    rows = [wf.zeros(2) for _ in range(size)]
    dist.all_gather(rows, wf.full((2,), float(rank)))
    assert [r.tolist() for r in rows] == [[i, i] for i in range(size)]
    joined = wf.zeros(size, 2)
    dist.all_gather_into_tensor(joined, wf.full((1, 2), float(rank)))
    assert joined[:, 0].tolist() == list(range(size))
    x = wf.tensor([float(rank)])
    dist.broadcast(x, size - 1)
    assert x.tolist() == [size - 1]
    part = wf.zeros(2)
    dist.scatter(part, [wf.full((2,), 10.0 + i) for i in range(size)] if rank == 1 else None, 1)
    assert part.tolist() == [10.0 + rank] * 2
    dist.gather(part, rows if rank == 0 else None, 0)
    assert rank or [r.tolist() for r in rows] == [[10.0 + i] * 2 for i in range(size)]
    out = wf.zeros(2)
    dist.reduce_scatter(out, [wf.full((2,), float(i)) for i in range(size)])
    assert out.tolist() == [rank * size] * 2
    dist.reduce_scatter_tensor(out, wf.arange(2.0 * size))
    assert out.tolist() == [2 * rank * size, (2 * rank + 1) * size]
    dist.reduce(out, 0)
    there = wf.zeros(size)
    dist.all_to_all_single(there, wf.arange(float(size)) + 100 * rank)
    assert there.tolist() == [rank + 100 * i for i in range(size)]
    rows = [wf.zeros(i + 1) for i in range(size)]
    dist.all_to_all(rows, [wf.full((rank + 1,), float(rank))] * size)
    assert [r.tolist() for r in rows] == [[i] * (i + 1) for i in range(size)]
    dist.monitored_barrier(timeout=20)


def check_messages(rank: int, size: int) -> None:
    after, before = (rank + 1) % size, (rank - 1) % size
    x, y = wf.full((3,), float(rank)), wf.zeros(3)
    works = [dist.irecv(y, before), dist.isend(x, after)]
    assert all(work.wait() for work in works) and y.tolist() == [before] * 3
    try:
        works[0].wait()
        raise AssertionError("expected an error")
    except DistributedError as error:
        assert "the request has ended already" in str(error)
    ops = [dist.P2POp(dist.isend, x, after, tag=7), dist.P2POp(dist.irecv, y, before, tag=7)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    if rank == 0:
        dist.send(wf.tensor([5]), 1)
    elif rank == 1:
        found = wf.tensor([0])
        assert dist.recv(found, 0) == 0 and found.tolist() == [5]
    works = [dist.all_reduce(x, async_op=True), dist.broadcast(y, 0, async_op=True)]
    dist.barrier()  # behind both
    assert all(work.is_completed() for work in works) and x.tolist() == [rank] * 3
    for work in works:
        work.wait()
    assert x.tolist() == [size * (size - 1) / 2] * 3 and y.tolist() == [size - 1] * 3


def check_objects(rank: int, size: int) -> None:
    own = {"rank": rank, "text": "x" * rank, "tensor": wf.full((rank,), 0.5), "pair": (None, True)}
    every = [None] * size
    dist.all_gather_object(every, own)
    assert [e["rank"] for e in every] == list(range(size))
    assert every[-1]["tensor"].tolist() == [0.5] * (size - 1) and every[0]["pair"] == (None, True)
    some = [rank, {"a": [rank]}]
    dist.broadcast_object_list(some, 1)
    assert some == [1, {"a": [1]}]
    dist.scatter_object_list(some, [str(i) for i in range(size)] if rank == 0 else None)
    assert some[0] == str(rank)
    dist.gather_object(rank, every if rank == 1 else None, 1)
    assert rank != 1 or every == list(range(size))
    try:
        dist.all_gather_object(every, {"a": print})
        raise AssertionError("expected an error")
    except TypeError as error:
        assert "all_gather_object: expected tensors, numbers or texts" in str(error)


def check_groups(rank: int, size: int) -> None:
    even = dist.new_group(range(0, size, 2))
    assert dist.get_rank(even) == (rank // 2 if rank % 2 == 0 else -1)
    x = wf.ones(3)
    if rank % 2 == 0:
        dist.all_reduce(x, group=even)
        assert x.tolist() == [(size + 1) // 2] * 3
    else:
        try:
            dist.all_reduce(x, group=even)
        except DistributedError as error:
            assert f"all_reduce: rank {rank} is no member of the group of ranks" in str(error)
    dist.barrier()


def check_profile(rank: int, size: int) -> None:
    dist.communication_profile(reset=True)
    if rank == 1:
        time.sleep(0.2)
    dist.barrier()
    found = dist.communication_profile()
    assert found.straggler == 1 and found.waited_for(1) > 0.15, str(found)
    assert f"rank 1 was waited for longest, {found.waited_for(1):.3f} s" in str(found)
    assert all(r.calls >= 1 for r in found.ranks)


def check_gradients(rank: int, size: int) -> None:
    """A recorded sum over ranks: the gradient is that of the sum of all ranks' losses."""
    x = wf.tensor([1.0, 2.0 + rank], requires_grad=True)
    total = call(REGISTRY["all_reduce"], x, reduction="sum", group=0)
    (total * wf.tensor([1.0, 10.0]) * (rank + 1)).sum().backward()
    ranks = size * (size + 1) / 2
    assert x.grad.tolist() == [ranks, 10 * ranks]


def digits(model, rank: int, size: int, steps: int = 25) -> list[float]:
    """Train on digits; the losses over the whole batch."""
    images, answers = load_digits()
    x = wf.tensor(images.reshape(len(images), -1).astype(np.float32))
    y = wf.tensor(answers.astype(np.int64))
    optimizer = wf.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(steps):
        begin = step % 20 * 64
        rows = slice(begin + rank * 64 // size, begin + (rank + 1) * 64 // size)
        loss = wf.nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        if rank == 0 and step % 3 == 0:
            float(loss)  # one rank looks earlier than others
        optimizer.step()
        losses.append(loss.detach())
    return [float(x) for x in losses]


def network():
    wf.manual_seed(0)
    return wf.nn.Sequential(wf.nn.Linear(64, 32), wf.nn.ReLU(), wf.nn.Linear(32, 10))


def digest(model) -> str:
    data = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(data).hexdigest()


def check_data_parallel(rank: int, size: int) -> None:
    alone = network()
    digits(alone, 0, 1)
    net = network()
    if rank:  # rank 0's are taken
        wf.nn.init.zeros_(net[0].weight)
    losses = digits(wf.nn.parallel.DistributedDataParallel(net), rank, size)
    found = wf.tensor(list(bytes.fromhex(digest(net))))
    first = found.clone()
    dist.broadcast(first, 0)
    assert found.tolist() == first.tolist(), "parameters differ between ranks"
    for p, q in zip(net.parameters(), alone.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), atol=2e-3)
    assert losses[-1] < losses[0] / 2


def check_buckets(rank: int, size: int) -> None:
    """Many buckets, under way while the program goes on, give the bits of one."""
    found = []
    for cap in (None, 0.001):  # 8 MiB, 1 KiB
        model = wf.nn.parallel.DistributedDataParallel(network(), bucket_cap_mb=cap)
        optimizer = wf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        generator = wf.Generator().manual_seed(rank)
        for _ in range(6):
            model(wf.randn(4, 64, generator=generator)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        found.append(digest(model))
    assert found[0] == found[1]


def check_tables(rank: int, size: int) -> None:
    """Gradients of lookups are exchanged as rows, of other numbers on each rank, too."""
    ids = np.random.default_rng(5).integers(0, 40, (4, 3, size, 6))  # step, table's use, rank

    def trained(whole: bool, uneven: bool, least: int) -> tuple[str, list[float], list[bool]]:
        before, lookup.LARGE = lookup.LARGE, least
        wf.manual_seed(0)
        net = wf.nn.ModuleList([wf.nn.Embedding(40 * 8, 4), wf.nn.Linear(4, 1)])
        holder = net if whole else wf.nn.parallel.DistributedDataParallel(Holder(net))
        optimizer, rows = wf.optim.Adam(net.parameters(), lr=0.1), []
        for step in ids:

            def loss_of(r: int, step=step) -> wf.Tensor:
                count = 6 - (uneven and r % 2)
                return Holder(net)(wf.tensor(step[0, r, :count]), wf.tensor(step[1, r, :2]))

            if whole:
                loss = sum(loss_of(r) for r in range(size)) / size
            else:
                count = 6 - (uneven and rank % 2)
                loss = holder(wf.tensor(step[0, rank, :count]), wf.tensor(step[1, rank, :2]))
            loss.backward()
            p = net[0].weight
            rows.append(lookup.looked_up(p.lazy, p.grad.lazy, {}) > 0)
            optimizer.step()
            optimizer.zero_grad()
        lookup.LARGE = before
        return digest(net), net[0].weight.detach().numpy().ravel(), rows

    for uneven in (False, True):
        _, wanted, _ = trained(True, uneven, 1 << 20)
        for least in (1, 1 << 20):
            found, values, rows = trained(False, uneven, least)
            assert rows == [least == 1] * 4, rows
            np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-5)
            every = [None] * size
            dist.all_gather_object(every, found)
            assert every == [found] * size


class Holder(wf.nn.Module):
    """A loss by two lookups in one table."""

    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, ids, others):
        table, layer = self.parts
        return layer(table(ids)).square().mean() + table(others).sin().mean()


def check_unused(rank: int, size: int) -> None:
    net = wf.nn.ModuleDict({"a": wf.nn.Linear(2, 1), "b": wf.nn.Linear(2, 1)})
    net.forward = lambda x, name: net[name](x)
    strict = wf.nn.parallel.DistributedDataParallel(net)
    loss = strict(wf.ones(1, 2), "a").sum()
    try:
        loss.backward()
        raise AssertionError("expected an error")
    except DistributedError as error:
        assert "got none of b.weight, b.bias; pass find_unused_parameters=True" in str(error)
    del strict
    net.zero_grad()
    model = wf.nn.parallel.DistributedDataParallel(net, find_unused_parameters=True)
    model(wf.ones(1, 2), "a" if rank == 0 else "b").sum().backward()
    assert net["a"].bias.grad.item() == 1 / size
    assert net["b"].bias.grad.item() == (size - 1) / size
    net.zero_grad()
    with model.no_sync():
        model(wf.ones(1, 2), "a").sum().backward()
    assert net["a"].bias.grad.item() == 1 and net["b"].bias.grad is None
    model(wf.ones(1, 2) * rank, "a").sum().backward()
    assert net["a"].weight.grad.tolist() == [[1 + (size - 1) / 2] * 2]


def check_fixed_tree(rank: int, size: int) -> None:
    """Of one rank and of several, with 1 and 2 threads: the same bits."""
    found = []
    for threads in (1, 2):
        for ranks in (1, size):
            group = dist.new_group([0]) if ranks == 1 else None
            if rank < ranks:
                net = network()
                model = wf.nn.parallel.DistributedDataParallel(net, shards=4, process_group=group)
                with wf.config.override(threads=threads):
                    digits(model, rank, ranks, 4)
                found.append(digest(net))
    assert len(set(found)) == 1
    every = [None] * size
    dist.all_gather_object(every, found[0])
    assert set(every) == {found[0]}
    try:
        wf.nn.parallel.DistributedDataParallel(net, shards=3)
        raise AssertionError("expected an error")
    except ValueError as error:
        assert "expected shards, a power of two" in str(error)
    wf.config.change("compile", False)


def check_batch_norm(rank: int, size: int) -> None:
    """Statistics and gradients as of the whole batch on one rank."""
    wf.manual_seed(3)
    data, target = wf.randn(2 * size, 3, 2), wf.randn(2 * size, 3, 2)
    alone = wf.nn.BatchNorm1d(3)
    whole = data.clone().requires_grad_()
    (alone(whole) * target).sum().backward()
    net = wf.nn.SyncBatchNorm.convert_sync_batchnorm(wf.nn.Sequential(wf.nn.BatchNorm1d(3)))
    part = data[2 * rank : 2 * rank + 2].clone().requires_grad_()
    (net(part) * target[2 * rank : 2 * rank + 2]).sum().backward()
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(part.grad, whole.grad[2 * rank : 2 * rank + 2], **close)
    np.testing.assert_allclose(net[0].running_var, alone.running_var, **close)
    np.testing.assert_allclose(net[0].running_mean, alone.running_mean, **close)
    grads = net[0].weight.grad.clone()
    dist.all_reduce(grads)
    np.testing.assert_allclose(grads, alone.weight.grad, **close)
    net.eval(), alone.eval()
    np.testing.assert_allclose(net(data).detach(), alone(data).detach(), **close)


def check_divided_state(rank: int, size: int) -> None:
    """The same bits as of the whole optimizer; each rank has the state of some parameters."""
    nets = [network(), network()]
    whole = wf.optim.Adam(nets[0].parameters(), lr=0.01)
    parts = wf.optim.ZeroRedundancyOptimizer(nets[1].parameters(), wf.optim.Adam, lr=0.01)
    x = wf.randn(8, 64, generator=wf.Generator().manual_seed(5))
    for _ in range(3):
        for net, optimizer in zip(nets, (whole, parts), strict=True):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
    for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        np.testing.assert_allclose(p.detach(), q.detach(), rtol=1e-5, atol=1e-6)
    own = sum(p.numel() for group in parts.param_groups for p in group["params"])
    total = wf.tensor([own])
    dist.all_reduce(total)
    assert own < total.item() == sum(p.numel() for p in nets[0].parameters())
    own = wf.nn.Parameter(wf.full((2,), float(rank)))
    apart = wf.optim.ZeroRedundancyOptimizer(
        [own, whole.param_groups[0]["params"][0]], wf.optim.SGD
    )
    try:
        apart.step()
        raise AssertionError("expected an error")
    except DistributedError as error:
        assert "ZeroRedundancyOptimizer: parameters differ: rank 0 has parameter 0" in str(error)
    parts.consolidate_state_dict()
    # The state is that of the whole optimizer: on any number of ranks it goes on from there.
    file = Path(sys.argv[2], "zero.safetensors")
    if rank == 0:
        found = parts.state_dict()
        assert_same_state(found, whole.state_dict())
        earlier = wf.load(file) if file.exists() else found  # of a job of other ranks
        assert_same_state(earlier, found)
        wf.save(found, file)
    dist.barrier()
    again = wf.optim.ZeroRedundancyOptimizer(nets[1].parameters(), wf.optim.Adam, lr=1.0)
    again.load_state_dict(wf.load(file))
    for net, optimizer in zip(nets, (whole, again), strict=True):
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
    for p, q in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        np.testing.assert_allclose(p.detach(), q.detach(), rtol=1e-5, atol=1e-6)
    try:
        apart.load_state_dict(wf.load(file))
        raise AssertionError("expected an error")
    except OptimizerError as error:
        assert "expected a state of groups of [2] parameters, got [4]" in str(error)


def assert_same_state(found, wanted) -> None:
    assert list(found["state"]) == list(wanted["state"])
    assert found["param_groups"] == wanted["param_groups"]
    for number, entries in wanted["state"].items():
        for name, value in entries.items():
            np.testing.assert_allclose(found["state"][number][name], value, rtol=1e-4, atol=1e-7)


def check_horovod(rank: int, size: int) -> None:
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (rank, size, rank, size)
    assert hvd.allreduce(wf.tensor([float(rank)])).item() == (size - 1) / 2
    assert hvd.allreduce(wf.tensor([1]), op=hvd.Sum).item() == size
    assert hvd.allgather(wf.full((rank + 1, 2), rank)).shape == (size * (size + 1) // 2, 2)
    assert hvd.broadcast(wf.tensor([rank]), 1).item() == 1
    found = hvd.alltoall(wf.arange(2 * size) + 10 * rank)
    assert found[::2].tolist() == [2 * rank + 10 * i for i in range(size)]
    for compression in (hvd.Compression.none, hvd.Compression.fp16):
        net = network()
        if rank:
            wf.nn.init.ones_(net[0].weight)
        hvd.broadcast_parameters(net.state_dict(), root_rank=0)
        optimizer = hvd.DistributedOptimizer(
            wf.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), net.named_parameters(),
            compression,
        )  # fmt: skip
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        for step in range(3):
            optimizer.zero_grad()
            net(wf.full((1, 64), rank + step + 1.0)).square().mean().backward()
            optimizer.synchronize()
            wf.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            with optimizer.skip_synchronize():
                optimizer.step()
        assert len(set(hvd.allgather_object(digest(net)))) == 1


def check_horovod_graphs(rank: int, size: int) -> None:
    tf.reset_default_graph()
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.Variable([[float(rank + 1)], [0.0]])
    loss = tf.reduce_mean(tf.matmul(x, w))
    optimizer = tf_hvd.DistributedOptimizer(tf.train.MomentumOptimizer(1.0, 0.0))
    train = optimizer.minimize(loss)
    mean = tf_hvd.allreduce(tf.constant([float(rank)]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf_hvd.broadcast_global_variables(0))
        assert session.run(w).tolist() == [[1.0], [0.0]]
        session.run(train, {x: [[rank, 2.0]]})
        assert session.run(w).tolist() == [[1 - (size - 1) / 2], [-2.0]]
        assert session.run(mean).tolist() == [(size - 1) / 2]


def check_pmap(rank: int, size: int) -> None:
    """As one process computes it with all parts, gradients included."""
    x = wf.randn(size, 3, generator=wf.Generator().manual_seed(1)).requires_grad_()
    alone = x.detach().clone().requires_grad_()

    def part(row):
        total = func.psum(row.square().sum(), "i")
        every = func.all_gather(row, "i")
        scattered = func.psum_scatter(every * row, "i")
        after = func.ppermute(row, "i", [(i, (i + 1) % size) for i in range(size)])
        return row / total + every.sum(0) * 0.1 + scattered + after * row

    found = func.pmap(part, axis_name="i")(x)
    total, every = alone.square().sum(), alone
    wanted = alone / total + every.sum(0) * 0.1 + alone * alone.sum(0) + alone.roll(1, 0) * alone
    weights = wf.arange(3.0 * size).reshape(size, 3)
    (found * weights).sum().backward()
    (wanted * weights).sum().backward()
    close = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(found.detach(), wanted.detach(), **close)
    np.testing.assert_allclose(x.grad, alone.grad, **close)
    own = func.pmap(lambda row: row * 0 + func.axis_index("i"), "i")(x.detach())
    assert own[:, 0].tolist() == list(range(size)) and func.pmax(wf.tensor(rank)) == size - 1
    for wrong, text in ((x[:1], "whose dimension 0 is"), (x, "expected the axis name of a pmap")):
        try:
            func.pmap(lambda row: func.psum(row, "j"))(wrong)
            raise AssertionError("expected an error")
        except ValueError as error:
            assert text in str(error)


def check_sampler(rank: int, size: int) -> None:
    own = list(wf.utils.data.DistributedSampler(range(10 * size)))
    every = [None] * size
    dist.all_gather_object(every, own)
    assert sorted(i for each in every for i in each) == list(range(10 * size)) and len(own) == 10


def check_refusals(rank: int, size: int) -> None:
    try:
        wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(2 + rank % 2, 1))
        raise AssertionError("expected an error")
    except DistributedError as error:
        assert "models differ: rank 0 has weight float32 (1, 2), rank 1 has weight" in str(error)
    net = network()
    if rank == 1:
        wf.nn.init.zeros_(net[0].bias)
    try:
        wf.nn.parallel.DistributedDataParallel(net, init_sync=False)
        raise AssertionError("expected an error")
    except DistributedError as error:
        assert "parameters differ: rank 0 has 0.bias" in str(error)


MODULES = (
    sys.modules[__name__], horovod_checks, horovod_graph_checks, horovod_keras_checks,
    mapped_checks, mesh_checks, pipeline_checks, shard_checks, tensor_parallel_checks,
)  # fmt: skip


def main() -> None:
    dist.init_process_group("mpi", timeout=30)
    rank, size = dist.get_rank(), dist.get_world_size()
    assert size == int(sys.argv[1])
    joined = session.current()
    assert joined.world.channel is not None
    if sys.argv[3:] == ["messages"]:  # as ranks of several hosts
        joined.memory = joined.world.channel = None
    for module in MODULES:
        for name, check in list(vars(module).items()):
            if name.startswith("check_"):
                check(rank, size)
    dist.destroy_process_group()
    print("all well")


main()
