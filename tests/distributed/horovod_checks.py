"""Horovod's names, checked on each rank; called by job_checks.py."""

import json
import tempfile
import warnings
from pathlib import Path

import numpy as np

import weft as wf
import weft.distributed as dist
import weft.horovod.torch as hvd
from weft.datasets import load_digits
from weft.errors import ArgumentError, DistributedError, OptimizerError, ShapeError
from weft.transport import session


def network():
    wf.manual_seed(0)
    return wf.nn.Sequential(wf.nn.Linear(4, 3), wf.nn.Tanh(), wf.nn.Linear(3, 2))


def check_horovod_reductions(rank: int, size: int) -> None:
    x, total = wf.tensor([float(rank + 1), 2.0]), size * (size + 1) / 2
    assert hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)[0] == total
    assert hvd.allreduce(wf.tensor([rank, 5])).tolist() == [(size - 1) // 2, 5]  # rounded down
    assert hvd.allreduce(x, op=hvd.Max).tolist() == [size, 2]
    handles = [hvd.allreduce_async(x, op=hvd.Sum), hvd.allreduce_async_(x), hvd.allgather_async(x)]
    found = [hvd.synchronize(h) for h in handles]
    assert found[0].tolist() == [total, 2.0 * size] and found[1] is x
    assert x.tolist() == [total / size, 2.0] and found[2].shape == (2 * size,)
    pair = [wf.ones(2) * rank, wf.ones(3, dtype=wf.int64)]
    found = hvd.synchronize(hvd.grouped_allreduce_async(pair, op=hvd.Sum))
    assert found[0].tolist() == [size * (size - 1) / 2] * 2 and found[1].tolist() == [size] * 3
    part = hvd.reducescatter(wf.arange(2.0 * size + 1) + rank, op=hvd.Sum)
    whole = size * np.arange(2 * size + 1) + size * (size - 1) / 2
    np.testing.assert_allclose(part, np.array_split(whole, size)[rank])
    assert hvd.grouped_reducescatter([wf.ones(size, 2)])[0].tolist() == [[1.0, 1.0]]
    one = wf.tensor([1.0, 0.0] if rank % 2 else [0.0, 2.0])
    found = hvd.allreduce(one, op=hvd.Adasum)
    assert found.tolist() == ([1.0, 2.0])  # at right angles added, alike averaged
    try:
        hvd.synchronize(handles[0])
        raise AssertionError("expected an error")
    except DistributedError as error:
        assert "expected the handle of a call that was not waited for" in str(error)


def check_horovod_movements(rank: int, size: int) -> None:
    rows = hvd.allgather(wf.full((rank, 2), rank))
    assert rows[:, 0].tolist() == [i for i in range(size) for _ in range(i)]
    sent = wf.arange(float(sum(range(size)) + size)) + 100 * rank
    splits = wf.tensor([i + 1 for i in range(size)])
    found, taken = hvd.alltoall(sent, splits)
    begin = rank * (rank + 1) // 2
    wanted = [begin + j + 100.0 * i for i in range(size) for j in range(rank + 1)]
    assert found.tolist() == wanted and taken.tolist() == [rank + 1] * size
    for wrong, kind, text in (
        (lambda: hvd.allgather(wf.ones(1, 1 + rank % 2)), ShapeError, "in their first dimension"),
        (lambda: hvd.alltoall(wf.ones(3), [3] * size), ShapeError, "splits that add up to 3 rows"),
        (lambda: hvd.allreduce(wf.ones(1), average=True, op=hvd.Sum), ArgumentError, "got both"),
        (lambda: hvd.broadcast(wf.ones(1), size), DistributedError, "root_rank among"),
    ):
        try:
            wrong()
            raise AssertionError("expected an error")
        except kind as error:
            assert text in str(error), error


class Halved(hvd.Compression.none):
    """A compressor of a program's own."""

    @staticmethod
    def compress(tensor):
        return tensor * 0.5, tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.to(ctx) * 2


def check_arguments_as_horovods(rank: int, size: int) -> None:
    net = wf.nn.Linear(2, 1)
    sgd = wf.optim.SGD(net.parameters(), lr=1.0)
    for named, text in (
        (net.parameters(), "something else than pairs"),
        ([("a", net.weight), ("a", net.bias)], "a name twice"),
        ([("a", net.weight)], r"no name of its parameters [1]"),
        (wf.nn.Linear(2, 1).named_parameters(), "parameters of another model"),
    ):
        try:
            hvd.DistributedOptimizer(sgd, named)
            raise AssertionError("expected an error")
        except ValueError as error:
            assert text in str(error), error
    pairs = [hvd.add_process_set([0]), range(size)]
    for ranks in ([0], pairs[1]):
        try:
            hvd.add_process_set(ranks)
            raise AssertionError("expected an error")
        except ValueError as error:
            assert "expected ranks of no other process set" in str(error)
    assert hvd.remove_process_set(pairs[0])
    x = wf.full((2,), float(rank))
    assert hvd.allreduce(x, compression=Halved).tolist() == [(size - 1) / 2] * 2
    hvd.broadcast_parameters(net.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(sgd, net.named_parameters(), compression=Halved)
    optimizer.zero_grad()
    before = net.bias.item()
    (net(wf.ones(1, 2)).sum() * (rank + 1)).backward()
    optimizer.step()
    assert abs(before - net.bias.item() - (size + 1) / 2) < 1e-5
    low, kind = hvd.Compression.fp16.compress(x)
    assert low.dtype is wf.float16 and hvd.Compression.fp16.decompress(low, kind).dtype is x.dtype
    hvd.join(-1)


def check_process_sets(rank: int, size: int) -> None:
    even = hvd.add_process_set(range(0, size, 2))
    assert even.included() == (rank % 2 == 0) and even.size() == size // 2 == len(even.ranks)
    if even.included():
        found = hvd.allreduce(wf.tensor([float(rank)]), op=hvd.Sum, process_set=even)
        assert found.item() == sum(range(0, size, 2))
        assert hvd.broadcast_object("x" * rank, 0, process_set=even) == ""
    assert hvd.remove_process_set(even) and not hvd.remove_process_set(hvd.global_process_set)
    try:
        hvd.allreduce(wf.ones(1), process_set=even)
        raise AssertionError("expected an error")
    except DistributedError as error:
        assert "call hvd.add_process_set on all ranks first" in str(error)


def check_optimizers(rank: int, size: int) -> None:
    """However gradients travel, parameters are those of the whole batch, the same on all ranks."""
    x = wf.randn(4 * size, 4, generator=wf.Generator().manual_seed(1))
    alone = network()
    wf.optim.SGD(alone.parameters(), lr=0.1)
    alone(x).square().mean().backward()
    wanted = [p - 0.1 * p.grad for p in alone.parameters()]
    own = x[4 * rank : 4 * rank + 4]
    for options in (
        {}, {"groups": 2}, {"gradient_predivide_factor": 2.0},
        {"compression": hvd.Compression.fp16},
        {"groups": "first"}, {"backward_passes_per_step": 2, "op": hvd.Sum},
    ):  # fmt: skip
        net = network()
        if options.get("groups") == "first":
            options = {"groups": [[net[2].weight, net[0].weight]]}
        sgd = wf.optim.SGD(net.parameters(), lr=0.1)
        optimizer = hvd.DistributedOptimizer(sgd, net.named_parameters(), **options)
        passes = options.get("backward_passes_per_step", 1)
        for part in own.chunk(passes):
            scale = passes * size if passes > 1 else 1
            (net(part).square().mean() / scale).backward()
        optimizer.step()
        for p, w in zip(net.parameters(), wanted, strict=True):
            np.testing.assert_allclose(p.detach(), w.detach(), rtol=2e-3, atol=1e-4)
        assert len(set(hvd.allgather_object(net[0].weight.detach().numpy().tobytes().hex()))) == 1
    net = network()
    sgd = wf.optim.SGD(net.parameters(), lr=0.1)
    optimizer = hvd.DistributedOptimizer(sgd, net.named_parameters(), op=hvd.Adasum)
    net(x).square().mean().backward()  # the same on all ranks: so is their combination
    optimizer.step()
    for p, w in zip(net.parameters(), wanted, strict=True):
        np.testing.assert_allclose(p.detach(), w.detach(), rtol=1e-4, atol=1e-5)
    try:
        hvd.DistributedOptimizer(sgd, op=hvd.Sum, gradient_predivide_factor=2.0)
        raise AssertionError("expected an error")
    except OptimizerError as error:
        assert "expected op=hvd.Average with a gradient_predivide_factor" in str(error)


def check_row_sparse_gradients(rank: int, size: int) -> None:
    """Of large tables ranks exchange the rows that they looked up, unless told otherwise."""
    ids = wf.tensor([[1, 5, 5], [9, 2, rank]][: 1 + rank % 2])  # ranks look up different numbers
    transport = session.world().transport
    found = {}
    for op in (hvd.Average, hvd.Sum):
        for dense in (False, True):
            wf.manual_seed(3)
            net = wf.nn.Sequential(wf.nn.Embedding(1 << 14, 64), wf.nn.Linear(64, 1))
            sgd = wf.optim.SGD(net.parameters(), lr=1.0)
            optimizer = hvd.DistributedOptimizer(
                sgd, net.named_parameters(), op=op, sparse_as_dense=dense
            )
            transport.tally.spans = spans = []
            for _ in range(2):
                optimizer.zero_grad()
                net(ids).square().mean().backward()
                optimizer.step()
            wf.synchronize()
            transport.tally.spans = None
            assert any("all_gather of" in span.what for span in spans) != dense
            found[dense] = net[0].weight.detach().numpy().copy()
        np.testing.assert_allclose(found[False], found[True], rtol=1e-5, atol=1e-6)


def check_the_start(rank: int, size: int) -> None:
    """Ranks that begin with different parameters are told before the first update."""
    for op in (hvd.Average, hvd.Adasum):
        net = wf.nn.Linear(2, 1)
        wf.nn.init.constant_(net.weight, 1.0 + (rank == size - 1))
        named = net.named_parameters()
        optimizer = hvd.DistributedOptimizer(wf.optim.SGD(net.parameters(), lr=1.0), named, op=op)
        net(wf.ones(1, 2)).sum().backward()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            optimizer.step()  # as Horovod does
        text = str(told[0].message)
        assert "parameters differ: rank 0 has weight" in text, text
        assert f"rank {size - 1} has weight" in text and "broadcast_parameters" in text, text


def check_parameters_that_take_no_part(rank: int, size: int) -> None:
    """On this rank: another may have used them."""
    net = wf.nn.ModuleList([wf.nn.Linear(2, 1, bias=False) for _ in range(2)])
    optimizer = hvd.DistributedOptimizer(wf.optim.SGD(net.parameters(), lr=1.0))
    before = [p.detach().clone() for p in net.parameters()]
    net[min(rank, 1)](wf.ones(1, 2)).sum().backward()
    optimizer.step()
    for i, (p, old) in enumerate(zip(net.parameters(), before, strict=True)):
        share = (1, size - 1)[i] / size
        np.testing.assert_allclose((old - p).detach(), [[share] * 2], rtol=1e-5)


def check_join(rank: int, size: int) -> None:
    """Ranks with less data contribute zeros; twice, with small and large gradients."""
    for last, wide in ((size - 1, 3), (0, 40_000)):
        net = wf.nn.Linear(wide, 1, bias=False)
        wf.nn.init.zeros_(net.weight)
        optimizer = hvd.DistributedOptimizer(wf.optim.SGD(net.parameters(), lr=1.0))
        steps = 5 if rank == last else 2 + rank % 2
        for _ in range(steps):
            optimizer.zero_grad()
            net(wf.ones(1, wide)).sum().backward()
            optimizer.step()
            hvd.allreduce(wf.ones(2), name="metric")
        assert hvd.join() == last
        hvd.broadcast_parameters(net.state_dict(), root_rank=last)
        counts = [5 if i == last else 2 + i % 2 for i in range(size)]
        assert abs(net.weight[0, 0].item() + sum(counts) / size) < 1e-5
    assert hvd.allreduce(wf.ones(1), op=hvd.Sum).item() == size


def check_timeline(rank: int, size: int) -> None:
    folder = hvd.broadcast_object(tempfile.mkdtemp() if rank == 0 else "")
    path = Path(folder, "trace.json")
    hvd.start_timeline(path)
    hvd.allreduce(wf.ones(3), name="loss")
    net = network()
    optimizer = hvd.DistributedOptimizer(
        wf.optim.SGD(net.parameters(), lr=0.1), net.named_parameters(), groups=2
    )
    net(wf.ones(1, 4)).sum().backward()
    optimizer.step()
    hvd.stop_timeline()
    if rank == 0:
        events = json.loads(path.read_text())
        rows = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        seen = {(rows[e["pid"]], e["name"]) for e in events if e["ph"] == "X"}
        names = {"loss", *[name for name, _ in net.named_parameters()]}
        assert seen == {(n, k) for n in names for k in ("NEGOTIATE_ALLREDUCE", "ALLREDUCE")}
        assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in events if e["ph"] == "X")


def check_elastic_state(rank: int, size: int) -> None:
    net = wf.nn.Linear(2, 1)
    wf.nn.init.constant_(net.weight, rank)
    adam = wf.optim.Adam(net.parameters(), lr=0.1)
    state = hvd.elastic.TorchState(net, adam, epoch=rank, names=["a"])
    state.sync()
    assert net.weight.tolist() == [[0.0, 0.0]] and state.epoch == 0
    net(wf.ones(1, 2)).sum().backward()
    adam.step()
    state.epoch = 1
    state.restore()
    assert net.weight.tolist() == [[0.0, 0.0]] and state.epoch == 0
    adam.step()
    kept = net.weight.tolist()
    state.commit()
    adam.step()
    state.restore()
    assert net.weight.tolist() == kept


def joined(lists: list[list[int]]) -> set[int]:
    return {i for each in lists for i in each}


def check_elastic_sampler(rank: int, size: int) -> None:
    """Processed samples do not come again in their epoch, also on other numbers of ranks."""
    sampler = hvd.elastic.ElasticSampler(range(22), seed=1)
    every = hvd.allgather_object(list(sampler))
    assert len(sampler) == -(-22 // size) == len(every[0]) and joined(every) == set(range(22))
    sampler.record_batch(0, 2)
    sampler.record_batch(1, 2)
    seen = hvd.allgather_object(sampler.get_indices(0, 2) + sampler.get_indices(1, 2))
    assert sampler.processed_indices == joined(seen)
    state = hvd.elastic.TorchState(sampler=sampler)
    state.sync()  # goes on with what is left
    left = hvd.allgather_object(list(sampler))
    assert joined(left) == set(range(22)) - sampler.processed_indices
    sampler.set_epoch(1)
    again = hvd.allgather_object(list(sampler))
    assert joined(again) == set(range(22)) and again != every


def check_mnist(rank: int, size: int) -> None:
    """Horovod's PyTorch example, on the bundled digits; its import apart."""
    images, answers = load_digits()
    data = wf.utils.data.TensorDataset(
        wf.tensor(images.reshape(len(images), -1).astype(np.float32)),
        wf.tensor(answers.astype(np.int64)),
    )
    wf.manual_seed(42)
    sampler = wf.utils.data.DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
    loader = wf.utils.data.DataLoader(data, batch_size=64 // size, sampler=sampler)
    model = wf.nn.Sequential(wf.nn.Linear(64, 50), wf.nn.ReLU(), wf.nn.Linear(50, 10))
    optimizer = wf.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=hvd.Compression.none,
        op=hvd.Average, gradient_predivide_factor=1.0,
    )  # fmt: skip
    model.train()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, target in loader:
            optimizer.zero_grad()
            loss = wf.nn.functional.nll_loss(wf.nn.functional.log_softmax(model(x), 1), target)
            loss.backward()
            optimizer.step()
    right = (model(data.tensors[0]).argmax(1) == data.tensors[1]).float().mean()
    assert hvd.allreduce(right, name="avg_accuracy").item() > 0.6
    dist.barrier()
