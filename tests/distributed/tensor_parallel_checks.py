"""Layers divided among ranks by a plan, as one process computes them; called by `job_checks.py`."""

import copy

import numpy as np
import pytest

import weft as wf
import weft.distributed as dist
from weft.distributed.fsdp import fully_shard
from weft.distributed.tensor import Replicate, Shard
from weft.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from weft.errors import ArgumentError, DistributedError, ShapeError

F = wf.nn.functional
WIDTH, HEADS, WORDS = 16, 4, 24


class Attention(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = [wf.nn.Linear(WIDTH, WIDTH) for _ in range(4)]

    def forward(self, x):
        rows = x.shape[0]
        heads = [
            layer(x).reshape(rows, -1, layer.weight.shape[0] // (WIDTH // HEADS), WIDTH // HEADS)
            for layer in (self.q, self.k, self.v)
        ]
        found = F.scaled_dot_product_attention(*[h.transpose(1, 2) for h in heads], is_causal=True)
        return self.out(found.transpose(1, 2).flatten(2))


class Block(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.attention = wf.nn.LayerNorm(WIDTH), Attention()
        self.norm2 = wf.nn.LayerNorm(WIDTH)
        self.mlp = wf.nn.Sequential(
            wf.nn.Linear(WIDTH, 2 * WIDTH), wf.nn.GELU(), wf.nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(wf.nn.Module):
    def __init__(self):
        super().__init__()
        wf.manual_seed(2)
        self.table = wf.nn.Embedding(WORDS, WIDTH, padding_idx=WORDS - 1)
        self.place = wf.nn.Embedding(8, WIDTH)
        self.blocks = wf.nn.ModuleList([Block()])
        self.norm = wf.nn.LayerNorm(WIDTH)
        self.head = wf.nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.table(tokens) + self.place(wf.arange(8))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


PLAN = {
    "table": RowwiseParallel(),
    "place": ColwiseParallel(output_layouts=Replicate()),
    "blocks.*.attention.[qkv]": ColwiseParallel(),
    "blocks.*.attention.out": RowwiseParallel(),
    "blocks.*.mlp.0": ColwiseParallel(),
    "blocks.*.mlp.2": RowwiseParallel(),
    "head": ColwiseParallel(output_layouts=Replicate()),
}
CUT = Shard(1)  # the sequence, between the layers that are divided
SEQUENCE_PLAN = {
    "table": RowwiseParallel(output_layouts=CUT),
    "place": PrepareModuleInputOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0)),
    "blocks.*.norm[12]": SequenceParallel(),
    "blocks.*.attention": PrepareModuleInput(input_layouts=CUT, desired_input_layouts=Replicate()),
    "blocks.*.attention.[qkv]": ColwiseParallel(),
    "blocks.*.attention.out": RowwiseParallel(output_layouts=CUT),
    "blocks.*.mlp.0": ColwiseParallel(input_layouts=CUT),
    "blocks.*.mlp.2": RowwiseParallel(output_layouts=CUT),
    "norm": SequenceParallel(),
    "head": ColwiseParallel(input_layouts=CUT, output_layouts=Replicate()),
}  # the gradients of what is computed on the whole sequence and again cut are partial sums


def words(count=4):
    return wf.randint(0, WORDS, (count, 8), generator=wf.Generator().manual_seed(1))


def loss_of(model, tokens):
    return F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def assert_parts(model, alone):
    """Parameters and gradients are the parts of those of one process."""
    for (name, p), q in zip(model.named_parameters(), alone.parameters(), strict=True):
        found = p.division.place(p.shape) if hasattr(p, "division") else ...
        close = {"rtol": 2e-4, "atol": 2e-5, "err_msg": name}
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy()[found], **close)
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy()[found], **close)


def check_plans(rank: int, size: int) -> None:
    """Losses, gradients and their norm, as of one process."""
    alone = GPT()
    wanted = loss_of(alone, words())
    wanted.backward()
    group = dist.init_device_mesh("cpu", (size,))
    for plan in (PLAN, SEQUENCE_PLAN):
        model = GPT()
        if rank:  # the first rank's values are taken
            wf.nn.init.zeros_(model.head.weight)
        assert parallelize_module(model, group, plan) is model
        assert model.blocks[0].mlp[0].weight.shape == (2 * WIDTH // size, WIDTH)
        loss = loss_of(model, words())
        loss.backward()
        np.testing.assert_allclose(loss.item(), wanted.item(), rtol=1e-5)
        assert_parts(model, alone)
        norms = [float(wf.nn.utils.clip_grad_norm_(m.parameters(), 1e9)) for m in (model, alone)]
        np.testing.assert_allclose(*norms, rtol=1e-4)
        saved = model.state_dict()
        assert saved["head.weight"].shape == (WORDS, WIDTH) and saved["norm.weight"].ndim == 1
        copy.deepcopy(model).load_state_dict(alone.state_dict())


def check_two_dimensions_of_a_mesh(rank: int, size: int) -> None:
    """Divided layers, whose parts are divided once more among the ranks with other data."""
    mesh = dist.init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    place, parts = mesh.get_local_rank("dp"), size // 2
    alone = GPT()
    models = [parallelize_module(GPT(), mesh["tp"], PLAN) for _ in range(2)]
    for block in models[0].blocks:
        fully_shard(block, mesh=mesh["dp"])
    sharded = fully_shard(models[0], mesh=mesh["dp"])
    group = mesh.get_group("dp")
    data_parallel = wf.nn.parallel.DistributedDataParallel(models[1], process_group=group)
    steps = ((alone, words()), *[(m, words()[place::parts]) for m in (sharded, data_parallel)])
    for model, tokens in steps:
        optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            loss_of(model, tokens).backward()
            wf.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    assert_parts(sharded, alone)
    assert sharded.head.weight.shape == (WORDS // size, WIDTH)
    with wf.no_grad():
        found = sharded(words())
    if rank == size - 1:  # others take part all the same
        np.testing.assert_allclose(found, alone(words()).detach(), rtol=2e-4, atol=2e-5)


def check_layouts_of_arguments_and_results(rank: int, size: int) -> None:
    class Pair(wf.nn.Module):
        def forward(self, x, y, scale=1.0):
            return x * scale, y

    group = dist.init_device_mesh("cpu", (size,))
    whole = wf.arange(2.0 * size).reshape(2, size).requires_grad_()
    style = PrepareModuleInput(
        input_layouts=(Replicate(), None), desired_input_layouts=(Shard(-1), None),
        input_kwarg_layouts={"scale": Replicate()},
        desired_input_kwarg_layouts={"scale": Shard(0)},
    )  # fmt: skip
    x, y = parallelize_module(Pair(), group, style)(whole, 3, scale=wf.arange(1.0 * size))
    assert x.tolist() == [[rank * rank], [(size + rank) * rank]] and y == 3
    (x.sum() * (rank + 1)).backward()
    assert whole.grad.tolist() == [[r * (r + 1.0) for r in range(size)]] * 2
    turn = PrepareModuleOutput(
        output_layouts=(Shard(0), None), desired_output_layouts=(Shard(1), None)
    )
    x, _ = parallelize_module(Pair(), group, turn)(wf.full((1, size), float(rank)), 0)
    assert x.tolist() == [[float(r)] for r in range(size)]


def check_plans_that_cannot_be(rank: int, size: int) -> None:
    group = dist.init_device_mesh("cpu", (size,))
    grid = dist.init_device_mesh("cpu", (1, size), mesh_dim_names=("dp", "tp"))
    column, odd = ColwiseParallel(), wf.nn.Sequential(wf.nn.Linear(3, 4 * size + 1))
    done = parallelize_module(wf.nn.Sequential(wf.nn.Linear(4, size)), group, {"0": column})
    wrong = (
        (GPT(), group, {"blocks.*.mpl.0": column}, ArgumentError, r"submodule \(table, place, blo"),
        (GPT(), grid, PLAN, ArgumentError, "a mesh of one dimension, got 2"),
        (odd, group, {"0": column}, ShapeError, rf"{size} ranks divide along dimension 0 of '0.we"),
        (odd, group, column, ArgumentError, "a Linear or an Embedding at '', got Sequential"),
        (done, group, {"0": column}, DistributedError, "ParallelLinear, which has a style already"),
        (
            fully_shard(wf.nn.Linear(4, size)), group, column, DistributedError,
            "'weight' is divided among ranks already; call parallelize_module before",
        ),
        (
            wf.nn.Embedding(size, 2, max_norm=1.0), group, RowwiseParallel(), ArgumentError,
            "without max_norm",
        ),
    )  # fmt: skip
    for module, mesh, plan, kind, text in wrong:
        with pytest.raises(kind, match=text):
            parallelize_module(module, mesh, plan)
    with pytest.raises(ArgumentError, match="use_local_output=True, got False"):
        ColwiseParallel(use_local_output=False)
    table = parallelize_module(wf.nn.Embedding(4 * size, 3), group, RowwiseParallel())
    for index in (4 * size, -1):
        with pytest.raises(IndexError, match=str(index)):
            table(wf.tensor([0, index])).tolist()
