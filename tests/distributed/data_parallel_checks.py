"""Gradients, data-parallel modules and divided optimizers; called by `job_checks.py`."""

import copy
import hashlib
import sys
from pathlib import Path

import numpy as np

import weft as wf
import weft.distributed as dist
from weft.collectives.recorded import run_pending_collectives
from weft.datasets import load_digits
from weft.eager.tensor import lookup
from weft.eager.tensor.dispatch import call
from weft.errors import DistributedError, OptimizerError
from weft.ops.declaration import REGISTRY
from weft.transport import collective, session
from weft.transport.native import CALLS


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


def check_native_reductions(rank: int, size: int) -> None:
    """A program reduces in shared memory without Python, and gives the bits that Python gives."""
    world = session.current().world
    words, found, calls = world.transport.words, [], []
    for spans in (None, None, []):  # Python notes them
        world.transport.tally.spans = spans
        model = wf.nn.parallel.DistributedDataParallel(network())
        optimizer = wf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        generator, before = wf.Generator().manual_seed(rank), words[CALLS]
        for _ in range(8):
            model(wf.randn(7, 64, generator=generator)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        run_pending_collectives()
        calls.append(words[CALLS] - before)
        found.append(digest(model))
    world.transport.tally.spans = None
    native = 0 if world.channel is None else 1
    assert calls == [5 * native, 8 * native, 0], calls  # of programs
    assert found[1] == found[2]


def check_batches_that_one_rank_alone_has_in_new_sizes(rank: int, size: int) -> None:
    """Programs differ from rank to rank, at steps at which the others have known sizes."""
    alone, own = network(), network()
    model = wf.nn.parallel.DistributedDataParallel(own, bucket_cap_mb=0.001)
    optimizers = [wf.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9) for net in (own, alone)]

    def batch(step: int, r: int) -> wf.Tensor:
        rows = 24 + step if r == 1 else 8
        return wf.randn(rows, 64, generator=wf.Generator().manual_seed(100 * step + r))

    for step in range(12):
        model(batch(step, rank)).square().sum().backward()
        optimizers[0].step()
        optimizers[0].zero_grad()
    run_pending_collectives()
    for step in range(12):
        sum(alone(batch(step, r)).square().sum() / size for r in range(size)).backward()
        optimizers[1].step()
        optimizers[1].zero_grad()
    for p, q in zip(own.parameters(), alone.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), atol=1e-4)


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


def check_products(rank: int, size: int) -> None:
    """Gradients of linear layers are computed from all ranks' rows, if all have as few."""
    data = np.random.default_rng(6).standard_normal((4, size, 2, 96)).astype(np.float32)

    def trained(whole: bool, uneven: bool, least: int) -> tuple[str, list[np.ndarray], int]:
        before, lookup.LARGE = lookup.LARGE, least
        wf.manual_seed(0)
        first = wf.nn.Linear(96, 128)
        net = wf.nn.Sequential(first, wf.nn.ReLU(), wf.nn.Linear(128, 96), wf.nn.Linear(96, 3))
        model = net if whole else wf.nn.parallel.DistributedDataParallel(net)
        optimizer = wf.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        dist.communication_profile(reset=True)
        for step in data:
            parts = [wf.tensor(x[: 2 - (uneven and r % 2)]) for r, x in enumerate(step)]
            if whole:
                loss = sum(net(x).square().mean() for x in parts) / size
            else:
                loss = model(parts[rank]).square().mean()
            loss.backward()
            if rank == 0:
                first.weight.grad.sum().item()  # one rank looks
            optimizer.step()
            optimizer.zero_grad()
        lookup.LARGE = before
        sent = dist.communication_profile().as_json()[rank]["sent"]
        return digest(net), [p.detach().numpy() for p in net.parameters()], sent

    for uneven in (False, True):
        _, wanted, _ = trained(True, uneven, 1 << 20)
        _, _, plain = trained(False, uneven, 1 << 20)
        found, values, sent = trained(False, uneven, 1)
        assert (sent < plain / 2) == (not uneven), (sent, plain)
        for a, b in zip(values, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        every = [None] * size
        dist.all_gather_object(every, found)
        assert every == [found] * size


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


class Noisy(wf.nn.Module):
    """Layers that draw, and a program's own numbers of both kinds of generators."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = wf.nn.Sequential(
            wf.nn.Linear(64, 32), wf.nn.RReLU(), wf.nn.Dropout(0.3), wf.nn.Linear(32, 10),
            wf.nn.AlphaDropout(0.1),
        )  # fmt: skip
        self.own = wf.Generator().manual_seed(7 + dist.get_rank())

    def forward(self, x):
        noise = wf.rand(x.shape[0], 10) + wf.randn(10, generator=self.own)
        mask = wf.nn.functional.dropout(wf.ones(x.shape[0], 1, 10), 0.2)
        kept = wf.bernoulli(wf.full((x.shape[0], 1), 0.9))  # a depth drawn for each example
        y = wf.utils.checkpoint.checkpoint(self.layers, x, use_reentrant=False)
        return (y + 0.1 * noise) * mask[:, 0] * kept


def check_random_layers_in_shards(rank: int, size: int) -> None:
    """Of one rank and of several, whose generators begin differently: the same bits."""
    found = []
    for ranks in (1, size):
        group = dist.new_group([0]) if ranks == 1 else None
        if rank < ranks:
            wf.manual_seed(3)
            net = Noisy()
            wf.manual_seed(5 + rank)
            model = wf.nn.parallel.DistributedDataParallel(net, shards=4, process_group=group)
            digits(model, rank, ranks, 4)
            wf.rand(rank + 1)
            digits(model, rank, ranks, 1)
            found.append(digest(net))
    wf.config.change("compile", False)
    every = [None] * size
    dist.all_gather_object(every, found[-1])
    assert {*found, *every} == {found[0]}
    plain = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Dropout())
    model = wf.nn.parallel.DistributedDataParallel(plain, shards=4)
    model(wf.ones(8, 2))
    assert copy.deepcopy(model)(wf.ones(8, 2)).shape == (8, 2)
    net = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.SyncBatchNorm(2))
    model = wf.nn.parallel.DistributedDataParallel(net, shards=4)
    wf.config.change("compile", False)
    try:
        model(wf.ones(8, 2))
        raise AssertionError("expected an error")
    except ValueError as error:
        assert "SyncBatchNorm: expected a DistributedDataParallel without shards" in str(error)


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


def check_lists_of_arrays(rank: int, size: int) -> None:
    """Of other numbers, types and lengths on each rank; also more than the shared memory holds."""
    kinds = (np.float32, np.uint8, np.float64)
    for more in (0, 1):
        sizes = [(3, 0, 700, 5), (100_000 + more * 300_000, 1, 3001), (), (262_144, 7)][:size]
        found = [
            [np.full(n, i * 10 + k if i == rank else 99, kinds[k % 3]) for k, n in enumerate(row)]
            for i, row in enumerate(sizes)
        ]
        for _ in range(2):
            collective.all_gather_lists(session.world(), found, "lists")
        for i, row in enumerate(found):
            for k, x in enumerate(row):
                assert (x == i * 10 + k).all(), (i, k)


def assert_same_state(found, wanted) -> None:
    assert list(found["state"]) == list(wanted["state"])
    assert found["param_groups"] == wanted["param_groups"]
    for number, entries in wanted["state"].items():
        for name, value in entries.items():
            np.testing.assert_allclose(found["state"][number][name], value, rtol=1e-4, atol=1e-7)
