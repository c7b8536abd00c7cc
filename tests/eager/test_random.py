"""Random tensors: reproducible, of the right distribution, and one program for all calls."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft import errors
from weft.eager.record.run import tier_choice
from weft.eager.tensor.generator import splitmix64

COUNT = 20_000
DRAWS = {
    "rand": lambda n, **k: wf.rand(n, **k),
    "randn": lambda n, **k: wf.randn(n, **k),
    "randint": lambda n, **k: wf.randint(0, 100, (n,), **k),
    "randperm": lambda n, **k: wf.randperm(n, **k),
    "normal": lambda n, **k: wf.normal(1.0, 2.0, (n,), **k),
    "bernoulli": lambda n, **k: wf.bernoulli(wf.full((n,), 0.3), **k),
    "multinomial": lambda n, **k: wf.multinomial(wf.ones(3), n, replacement=True, **k),
    "uniform_": lambda n, **k: wf.zeros(n).uniform_(1, 2, **k),
    "normal_": lambda n, **k: wf.zeros(n).normal_(1, 2, **k),
    "bernoulli_": lambda n, **k: wf.zeros(n).bernoulli_(0.3, **k),
    "exponential_": lambda n, **k: wf.zeros(n).exponential_(2, **k),
    "random_": lambda n, **k: wf.zeros(n).random_(0, 9, **k),
}


def close(a, b):
    """Equal but for the last bit, which may differ between interpreted and compiled programs."""
    return np.allclose(a, b, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_says_what_comes(name):
    draw = DRAWS[name]
    wf.manual_seed(5)
    first, second = draw(50).tolist(), draw(50).tolist()
    assert first != second
    wf.manual_seed(5)
    assert close(draw(50).tolist(), first)
    generator = wf.Generator().manual_seed(5)
    assert close(draw(50, generator=generator).tolist(), first)
    assert close(draw(50, generator=generator).tolist(), second)
    wf.manual_seed(6)
    assert draw(50).tolist() != first


def test_neither_seeds_nor_calls_are_other_programs():
    def look():
        return wf.randn(7, 3).tolist()

    for _ in range(3):
        look()
    before = len(tier_choice._tiers)
    for seed in range(5):
        wf.manual_seed(seed)
        look()
        look()
    assert len(tier_choice._tiers) == before


def test_states_go_back():
    wf.manual_seed(1)
    wf.rand(3).tolist()
    state = wf.get_rng_state()
    expected = wf.rand(3).tolist()
    wf.set_rng_state(state)
    assert wf.rand(3).tolist() == expected
    assert wf.initial_seed() == 1
    assert wf.seed() == wf.initial_seed()
    assert wf.Generator().initial_seed() != wf.Generator().initial_seed()


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))]
)
def test_copies_of_generators_draw_the_same(again):
    g = wf.Generator().manual_seed(3)
    wf.rand(1, generator=g)
    h = again(g)
    assert wf.rand(5, generator=h).tolist() == wf.rand(5, generator=g).tolist()
    assert h.initial_seed() == 3
    wf.rand(1, generator=h)
    assert wf.rand(5, generator=h).tolist() != wf.rand(5, generator=g).tolist()


def test_seeds_are_far_apart():
    starts = sorted(splitmix64(seed) for seed in range(1000))
    assert min(b - a for a, b in itertools.pairwise(starts)) > 1 << 32
    assert splitmix64(0) == 0xE220A8397B1DCDAF  # the reference's first number


@pytest.mark.parametrize(
    ("name", "mean", "std"),
    [
        ("rand", 0.5, 12**-0.5),
        ("randn", 0, 1),
        ("randint", 49.5, 833.25**0.5),
        ("normal", 1, 2),
        ("bernoulli", 0.3, 0.21**0.5),
        ("multinomial", 1, (2 / 3) ** 0.5),
        ("uniform_", 1.5, 12**-0.5),
        ("normal_", 1, 2),
        ("bernoulli_", 0.3, 0.21**0.5),
        ("exponential_", 0.5, 0.5),
        ("random_", 4, (80 / 12) ** 0.5),
    ],
)
def test_means_and_deviations(name, mean, std):
    wf.manual_seed(0)
    x = DRAWS[name](COUNT).numpy().astype(np.float64)
    assert abs(x.mean() - mean) < 5 * std / COUNT**0.5
    assert abs(x.std() - std) < 0.05 * std


@at_most(20)
@given(
    shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
    dtype=st.sampled_from([wf.float32, wf.float64, wf.float16, wf.bfloat16]),
)
def test_shapes_and_types(shape, dtype):
    for x in (
        wf.rand(shape, dtype=dtype),
        wf.randn(*shape, dtype=dtype),
        wf.normal(size=shape, dtype=dtype),
    ):
        assert (x.shape, x.dtype) == (shape, dtype)
        for like in (
            wf.rand_like(x),
            wf.randn_like(x),
            wf.randint_like(x, 3),
            wf.bernoulli(x, 0.5),
        ):
            assert (like.shape, like.dtype) == (shape, dtype)
    unit = wf.rand(*shape, dtype=dtype).numpy()
    assert ((unit >= 0) & (unit < 1)).all()


def test_permutations_and_integers():
    assert sorted(wf.randperm(100).tolist()) == list(range(100))
    assert set(wf.randint(3, (200,)).tolist()) == {0, 1, 2}
    assert set(wf.randint(-1, 1, (200,), dtype=wf.int32).tolist()) == {-1, 0}
    assert set(wf.zeros(50, dtype=wf.bool).random_().tolist()) == {True, False}
    assert wf.zeros(50, dtype=wf.int64).random_().numpy().max() > 1 << 32


def test_moments_may_be_tensors():
    means = wf.arange(3.0).reshape(3, 1)
    x = wf.normal(means, wf.tensor([1e-3, 1e-4]))
    assert x.shape == (3, 2) and np.allclose(x.numpy(), means.numpy(), atol=0.01)


def test_multinomial():
    wf.manual_seed(0)
    weights = wf.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]])
    drawn = wf.multinomial(weights, 4000, replacement=True)
    assert drawn.shape == (2, 4000) and drawn.dtype is wf.int64
    assert not drawn[1].numpy().any()
    assert abs((drawn[0].numpy() == 2).mean() - 0.75) < 0.04
    firsts = [wf.multinomial(wf.tensor([1.0, 1.0, 6.0]), 3).tolist() for _ in range(60)]
    assert all(sorted(row) == [0, 1, 2] for row in firsts)
    assert sum(row[0] == 2 for row in firsts) > 30


def test_leaves_are_filled_without_gradient():
    x = wf.zeros(3, requires_grad=True)
    with wf.no_grad():
        x.normal_()
    assert x.requires_grad and x.is_leaf and x.tolist() != [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: wf.rand(2, dtype=wf.int64),
            errors.DTypeError,
            "rand: expected a floating-point dtype, got int64",
        ),
        (
            lambda: wf.randint(3, 3, (2,)),
            errors.ShapeError,
            "randint: expected low < high, got 3 and 3",
        ),
        (
            lambda: wf.multinomial(wf.ones(2), 3),
            errors.ShapeError,
            "multinomial: cannot draw 3 of 2",
        ),
        (
            lambda: wf.multinomial(wf.ones(1, 1, 1), 1),
            errors.ShapeError,
            "multinomial: expected weights of rank 1 or 2, got (1, 1, 1)",
        ),
        (
            lambda: wf.zeros(2, dtype=wf.int64).normal_(),
            errors.DTypeError,
            "normal_: expected a floating-point dtype, got int64",
        ),
        (
            lambda: wf.zeros(2, requires_grad=True).normal_(),
            errors.GradientError,
            "normal_: a leaf that requires grad cannot be changed",
        ),
    ],
)
def test_bad_input(call, error, text):
    with pytest.raises(error) as found:
        call()
    assert str(found.value).startswith(text) and "test_random.py" in str(found.value)


def test_complex_numbers_have_variance_1_and_parts_from_0_to_1():
    wf.manual_seed(3)
    z = wf.randn(20_000, dtype=wf.complex64).numpy()
    assert z.dtype == np.complex64 and abs(z.real.var() - 0.5) < 0.02 > abs(z.imag.var() - 0.5)
    u = wf.rand_like(wf.zeros(3, 4, dtype=wf.complex128), device="cpu").numpy()
    assert u.dtype == np.complex128 and ((u.real >= 0) & (u.imag >= 0) & (u.real < 1)).all()
    assert len(set(u.real.ravel()) | set(u.imag.ravel())) == 24


@pytest.mark.parametrize(
    "count,p", [(1, 0.4), (7, 0.5), (40, 0.9), (3000, 0.01), (5, 0.0), (5, 1.0)]
)
def test_binomial_numbers(count, p):
    wf.manual_seed(0)
    x = wf.binomial(wf.full((COUNT,), float(count)), wf.tensor(p)).numpy()
    assert ((x >= 0) & (x <= count) & (x == np.floor(x))).all()
    std = (count * p * (1 - p)) ** 0.5
    assert abs(x.mean() - count * p) <= 4 * std / COUNT**0.5
    assert abs(x.std() - std) <= 0.05 * std


@pytest.mark.parametrize("rate", [0.0, 0.2, 3.0, 250.0])
def test_poisson_numbers(rate):
    wf.manual_seed(0)
    x = wf.poisson(wf.full((COUNT,), rate)).numpy()
    assert (x >= 0).all() and (x == np.floor(x)).all()
    assert abs(x.mean() - rate) <= 4 * (rate / COUNT) ** 0.5
    assert abs(x.var() - rate) <= 0.05 * rate


def test_probabilities_of_counts():
    wf.manual_seed(0)
    x = wf.binomial(wf.full((COUNT,), 3.0), wf.tensor(0.3)).numpy()
    shares = [(x == k).mean() for k in range(4)]
    np.testing.assert_allclose(shares, [0.343, 0.441, 0.189, 0.027], atol=0.015)


def test_counts_that_cannot_be():
    found = wf.binomial(wf.tensor([-1.0, 2.5, 3.0, 3.0]), wf.tensor([0.5, 0.5, 1.5, float("nan")]))
    assert np.isnan(found.numpy()).all()
    for rate in (-1.0, float("nan")):
        with pytest.raises(
            errors.OutOfRangeError, match="poisson: expected rates >= 0, got 1 other"
        ):
            wf.poisson(wf.tensor([0.5, rate])).numpy()
    with pytest.raises(errors.DTypeError, match="binomial: expected floating-point tensors of one"):
        wf.binomial(wf.tensor([1]), wf.tensor([0.5]))
    with pytest.raises(errors.DTypeError, match="poisson: expected floating rates"):
        wf.poisson(wf.tensor([1]))


@pytest.mark.parametrize("draw", [lambda x: wf.binomial(x, x / 10), wf.poisson, wf.bernoulli])
def test_examples_draw_as_a_batch_does(draw):
    x = wf.linspace(0.1, 0.9, 12).reshape(3, 4).ceil()
    wf.manual_seed(3)
    batch = draw(x)
    wf.manual_seed(3)
    examples = wf.func.vmap(draw, randomness="different")(x)
    assert examples.tolist() == batch.tolist()
    generator = wf.Generator().manual_seed(3)
    assert draw is not wf.poisson or wf.poisson(x, generator).tolist() == batch.tolist()


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (
            lambda: wf.multinomial(wf.tensor([2.0, -1.0]), 1),
            "multinomial: .* none negative .* got 1",
        ),
        (
            lambda: wf.multinomial(wf.tensor([2.0, wf.nan]), 1, True),
            "multinomial: .* finite .* got 1",
        ),
        (lambda: wf.multinomial(wf.tensor([2.0, wf.inf]), 1), "multinomial: .* finite .* got 1"),
        (lambda: wf.multinomial(wf.eye(2)[:, :1], 1), "a weight above 0 in each, got 1 other"),
        (lambda: wf.bernoulli(wf.tensor([0.5, 1.5])), "bernoulli: .* from 0 to 1, got 1 other"),
        (lambda: wf.bernoulli(wf.ones(2), wf.nan), "bernoulli: expected p from 0 to 1, got nan"),
        (lambda: wf.ones(2).bernoulli_(wf.tensor(-0.5)), "bernoulli: .* got 1 other"),
        (lambda: wf.normal(0.0, wf.tensor([1.0, -1.0])), "normal: expected std >= 0, got 1 other"),
    ],
)
def test_what_no_number_can_be_drawn_with_is_an_error_when_it_is_computed(draw, text):
    for _ in range(4):  # interpreted, then compiled
        with pytest.raises(RuntimeError, match=text):
            draw().tolist()


def test_weights_of_some_classes_may_be_zero():
    for _ in range(4):
        assert wf.multinomial(wf.eye(2), 1).tolist() == [[0], [1]]
        assert wf.bernoulli(wf.tensor([0.0, 1.0])).tolist() == [0.0, 1.0]
        assert wf.normal(wf.ones(2), wf.zeros(2)).tolist() == [1.0, 1.0]
        assert wf.multinomial(wf.ones(0, 3), 1).shape == (0, 1)
