"""What ranks do together, checked on each of them; run by `weft launch`."""

import collections
import sys
import time
import warnings

import data_parallel_checks
import dtensor_checks
import gradient_checks
import horovod_checks
import horovod_graph_checks
import horovod_keras_checks
import horovod_passes_checks
import mapped_checks
import mesh_checks
import numpy as np
import pipeline_checks
import saved_checks
import shape_checks
import shard_checks
import shard_option_checks
import tensor_parallel_checks
import torch_name_checks
from data_parallel_checks import digest, network

import weft as wf
import weft.distributed as dist
import weft.horovod.tensorflow as tf_hvd
import weft.horovod.torch as hvd
import weft.tf1 as tf
from weft import func
from weft.errors import DistributedError
from weft.library import payoff
from weft.transport import session

payoff.COMPILE_SECONDS = 0.0  # type: ignore[misc]  # the fourth run is a program's


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
        assert "all_gather_object: expected tensors, numbers or strings" in str(error)


def check_groups(rank: int, size: int) -> None:
    even = dist.new_group(range(0, size, 2))
    assert dist.get_rank(even) == (rank // 2 if rank % 2 == 0 else -1)
    x = wf.ones(3)
    if rank % 2 == 0:
        dist.all_reduce(x, group=even)
        assert x.tolist() == [(size + 1) // 2] * 3
    else:
        calls = {
            "all_reduce": lambda: dist.all_reduce(x, group=even),
            "broadcast": lambda: dist.broadcast(x, 0, even),
            "gather_object": lambda: dist.gather_object(1, group=even),
            "recv": lambda: dist.recv(x, group=even),
        }
        for name, call in calls.items():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                assert call() in (None, -1)
            assert f"{name}: rank {rank} is no member of the group of ranks" in str(told[0].message)
        assert x.tolist() == [1] * 3
    if rank:  # rank 0 does not know of it
        local = [dist.new_group(range(1, size), use_local_synchronization=True) for _ in range(2)]
        for group in local:
            x = wf.ones(2)
            dist.all_reduce(x, group=group)
            assert x.tolist() == [size - 1] * 2
    dist.barrier(device_ids=[0], timeout=20)


def check_roots_and_asynchronous_calls(rank: int, size: int) -> None:
    """Roots by their rank in a group of another order; every call also later."""
    group = dist.new_group(range(1, size)) if size > 2 else dist.new_group()
    first, last, count = group.ranks[0], group.ranks[-1], group.size
    if group.index < 0:
        dist.barrier()
        return
    place = {"group": group, "async_op": True}
    x, y, z, out = (wf.tensor([float(rank)]) for _ in range(4))
    rows = [wf.zeros(1) for _ in group.ranks]
    swapped = [wf.zeros(1) for _ in group.ranks]
    works = [
        dist.broadcast(x, group_src=count - 1, **place),
        dist.reduce(y, group_dst=0, **place),
        dist.gather(z, rows if rank == last else None, group_dst=count - 1, **place),
        dist.scatter(z, [wf.full((1,), float(i)) for i in range(count)] if rank == first else None,
                     group_src=0, **place),
        dist.reduce_scatter(out, [wf.full((1,), float(i)) for i in range(count)], **place),
        dist.all_to_all(swapped, [wf.tensor([float(rank)])] * count, **place),
    ]  # fmt: skip
    for work in works:
        work.wait()
    assert x.item() == last and (rank != first or y.item() == sum(group.ranks))
    assert rank != last or [r.item() for r in rows] == list(group.ranks)
    assert z.item() == group.index and out.item() == group.index * count
    assert [r.item() for r in swapped] == list(group.ranks)
    some = [rank]
    dist.broadcast_object_list(some, group=group, group_src=count - 1)
    assert some == [last]
    if group.index == 0:
        found = sorted([dist.recv(x, group=group, tag=5) for _ in range(count - 1)])
        assert found == list(group.ranks[1:]) and x.item() in found
    else:
        dist.send(wf.tensor([float(rank)]), group=group, tag=5, group_dst=0)
    for wrong in ({}, {"src": first, "group_src": 0}, {"group_src": count}):
        try:
            dist.broadcast(x, group=group, **wrong)
            raise AssertionError("expected an error")
        except DistributedError as error:
            assert "broadcast: expected a" in str(error)
    dist.barrier()


Pair = collections.namedtuple("Pair", "a b")


def check_types_of_objects(rank: int, size: int) -> None:
    local = collections.namedtuple("Local", "c")
    own = {
        "array": np.arange(3), "float": np.float32(1.5), "bool": np.bool_(True), "t": wf.ones(1),
        "pair": Pair(rank, [Pair(np.int32(3), None)]), "here": local(2.0),
        "ordered": collections.OrderedDict(b=1, a=(collections.Counter("aab"),)),
        "default": collections.defaultdict(list, {1: [collections.OrderedDict()]}),
    }  # fmt: skip
    every = [None] * size
    dist.all_gather_object(every, own)
    found = every[1]
    kinds = {k: type(v).__name__ for k, v in found.items()}
    assert kinds == {k: type(v).__name__ for k, v in own.items()}
    assert found["pair"] == Pair(1, [Pair(3, None)]) and type(found["pair"][1][0]) is Pair
    assert found["ordered"] == own["ordered"] and type(found["ordered"]["a"][0]).__name__ == (
        "Counter"
    )
    assert found["default"][2] == [] and found["here"].c == 2.0
    for wrong in (collections.defaultdict(lambda: 1), type("Mine", (dict,), {})()):
        try:
            dist.all_gather_object(every, [wrong])
            raise AssertionError("expected an error")
        except TypeError as error:
            assert "all_gather_object: expected dicts, lists, tuples, named" in str(error)


def check_profile(rank: int, size: int) -> None:
    dist.communication_profile(reset=True)
    if rank == 1:
        time.sleep(0.2)
    dist.barrier()
    found = dist.communication_profile()
    assert found.straggler == 1 and found.waited_for(1) > 0.15, str(found)
    assert f"rank 1 was waited for longest, {found.waited_for(1):.3f} s" in str(found)
    assert all(r.calls >= 1 for r in found.ranks)


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


HERE = sys.modules[__name__]
MODULES = {
    "brief": (HERE,),
    "messages": (HERE, data_parallel_checks),
    "2": (
        gradient_checks, horovod_graph_checks, horovod_keras_checks, horovod_passes_checks,
        saved_checks, shape_checks, shard_checks,
    ),
    "4": (
        HERE, data_parallel_checks, dtensor_checks, horovod_checks, mapped_checks, mesh_checks,
        pipeline_checks, saved_checks, shard_checks, shard_option_checks, tensor_parallel_checks,
        torch_name_checks,
    ),
}  # fmt: skip
"""By the last argument, or else the number of ranks: a mesh of two dimensions takes four."""


def main() -> None:
    dist.init_process_group("mpi", timeout=30)
    rank, size = dist.get_rank(), dist.get_world_size()
    assert size == int(sys.argv[1])
    joined = session.current()
    assert joined.world.channel is not None
    if sys.argv[3:] == ["messages"]:  # as ranks of several hosts
        joined.memory = joined.world.channel = None
    asked = sys.argv[3] if sys.argv[3:] else sys.argv[1]
    found = [pair for module in MODULES[asked] for pair in vars(module).items()]
    if asked == "brief":
        found.append(("check_data_parallel", data_parallel_checks.check_data_parallel))
    for check in [check for name, check in found if name.startswith("check_")]:
        check(rank, size)
    for _ in range(300 if rank == 1 else 0):  # notes that are not yet sent when it ends
        joined.monitor.announce("joined", turn=0, text="x" * 3000)
    dist.destroy_process_group()
    print("all well")


main()
