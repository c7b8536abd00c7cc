"""Loops that read no value: how they are cut into programs."""

from collections import OrderedDict

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.eager.record.pending import loop_cut, state
from weft.eager.record.pending.state import trace
from weft.eager.record.run import program, shortcut, tier_choice
from weft.eager.record.run.compiled_tier import Compiled
from weft.func import grad, jvp, vjp
from weft.nn import functional as F

BLOCK, VOCABULARY, WIDTH = 12, 17, 32


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.size()
        parts = self.qkv(x).split(c, dim=2)
        q, k, v = [y.view(b, t, 2, c // 2).transpose(1, 2) for y in parts]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Text(nn.Module):
    """Predicts the next word, and continues a text."""

    def __init__(self, blocks):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(blocks)])
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, words):
        x = self.words(words) + self.places(wf.arange(0, words.size(1), dtype=wf.int64))
        for block in self.blocks:
            x = block(x)
        return self.out(x[:, [-1], :])

    @wf.no_grad()
    def generate(self, words, count, top=5):
        for _ in range(count):
            seen = words if words.size(1) <= BLOCK else words[:, -BLOCK:]
            scores = self(seen)[:, -1, :] / 0.8
            best, _ = wf.topk(scores, top)
            scores[scores < best[:, [-1]]] = -float("inf")
            word = wf.multinomial(F.softmax(scores, dim=-1), num_samples=1)
            words = wf.cat((words, word), dim=1)
        return words


@pytest.fixture
def sizes(monkeypatch):
    """How many records each program has that is run."""
    found = []
    before = program._compute_whole

    def compute(structure, *rest):
        found.append(len(structure.records))
        return before(structure, *rest)

    monkeypatch.setattr(program, "_compute_whole", compute)
    wf.synchronize()
    found.clear()
    state.set_shortcut(lambda now: False)  # which would run some
    yield found
    state.set_shortcut(shortcut.taken)


@pytest.fixture
def compiled(monkeypatch):
    """Counts compilations, starting from empty caches."""
    found = []
    before = Compiled.__init__

    def compiled(self, structure, *options):
        found.append(structure)
        before(self, structure, *options)

    monkeypatch.setattr(Compiled, "__init__", compiled)
    monkeypatch.setattr(tier_choice, "_tiers", OrderedDict())
    return found


def test_generating_text_is_a_program_a_turn_and_compiles_little(sizes, compiled):
    wf.manual_seed(0)
    model = Text(1).eval()
    start = wf.zeros((1, 1), dtype=wf.int64)
    compiles, programs = [], []
    for _ in range(5):
        sizes.clear()
        before = len(compiled)
        model.generate(start, 30).numpy()
        compiles.append(len(compiled) - before)
        programs.append(list(sizes))
    assert max(programs[1]) < 2 * loop_cut.FEW  # two turns, or three
    assert len(set(programs[1])) <= 5  # of the kinds: at first, short, at its limit, long, at last
    assert programs[1:] == [programs[1]] * 4
    assert sum(compiles) <= len(programs[1])


def test_a_loop_of_plain_functions_is_cut_where_it_comes_round(sizes):
    def turned(x, angle):
        return wf.stack([x[0] * wf.cos(angle) - x[1], x[1] + x[0] * wf.sin(angle)]) * 0.5

    x = wf.tensor([1.0, 0.0])
    for _ in range(100):
        x = turned(x, wf.tensor(0.1))
    assert len(trace.now.pending) < 2 * loop_cut.FEW
    assert np.isfinite(x.numpy()).all()
    assert max(sizes) < 2 * loop_cut.FEW
    assert len(set(sizes[1:-1])) == 1


def test_a_call_of_a_model_is_one_program(sizes):
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(loop_cut.FEW + 20)])
    wf.synchronize()
    x = wf.ones(2, 4)
    x.numpy()
    sizes.clear()
    with wf.no_grad():
        model(x).numpy()
    assert len(sizes) == 1
    assert sizes[0] > loop_cut.FEW


def test_what_a_model_repeats_very_often_is_cut_too(sizes):
    class Repeated(nn.Module):
        def forward(self, x):
            for _ in range(2 * loop_cut.MANY):
                x = wf.sin(x) + 1.0
            return x

    with wf.no_grad():
        Repeated()(wf.ones(3)).numpy()
    assert len(sizes) > 1
    assert max(sizes) <= loop_cut.MANY + 4


def test_a_step_of_training_is_one_program(sizes):
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(20)])
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    x = wf.ones(2, 4)
    x.numpy()
    wf.synchronize()
    for _ in range(3):
        sizes.clear()
        for _ in range(loop_cut.FEW):
            x = x * 1.0  # data, prepared without gradients
        y = x
        for _ in range(4):
            y = model(y)
        y.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        wf.synchronize()
    assert sizes == [max(sizes)]
    assert sizes[0] > 2 * loop_cut.FEW


@pytest.mark.parametrize("differentiated", ["grad", "vjp", "jvp", "nested"])
def test_a_loop_of_derivatives_is_cut_though_they_were_tracked(sizes, differentiated):
    def loss(w):
        return (wf.tanh(w) * wf.arange(3.0)).sum()

    def slope(w):
        if differentiated == "grad":
            return grad(loss)(w)
        if differentiated == "vjp":
            return vjp(loss, w)[1](wf.tensor(1.0))[0]
        if differentiated == "jvp":
            return jvp(loss, (w,), (w,))[1]
        return grad(lambda v: (grad(loss)(v) ** 2).sum())(w)

    w = wf.ones(3)
    for _ in range(60):
        w = w - 0.1 * slope(w)
    assert len(trace.now.pending) < 2 * loop_cut.FEW
    assert np.isfinite(w.numpy()).all()
    assert max(sizes) < 2 * loop_cut.FEW
    assert len(set(sizes[1:-1])) == 1


def test_a_step_of_parameters_stays_whole_around_a_derivative(sizes):
    w = wf.ones(3, requires_grad=True)
    y = w
    for _ in range(2 * loop_cut.FEW):
        y = y * 0.5 + grad(lambda x: (x * x).sum())(wf.ones(3))
    y.sum().backward()
    assert w.grad is not None and w.grad.sum().item() < 1.0
    assert max(sizes) > 4 * loop_cut.FEW
