"""Value-dependent errors as in PyTorch: indices out of range, invalid probabilities.

A call must be refused where PyTorch refuses it, interpreted and compiled, and give the same else.
"""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import as_array  # noqa: E402
from weft import config  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5)).astype(np.float32)
PLACES = [-1, 3, 0, -4, 5, 4, -6, 2**40]  # every second one is compiled


def at(m, i, *shape):
    return m.tensor(np.full(shape or (1,), i, np.int64))


def functional(m):
    return m.nn.functional


def unpooled(spatial):
    shape = (1, 1, *(1,) * (spatial - 1), 3)

    def run(m, i):
        return getattr(functional(m), f"max_unpool{spatial}d")(m.ones(shape), at(m, i, *shape), 2)

    return run


def bags(m, i, **options):
    options = {"per_sample_weights": m.ones(2, 2), **options} if "scaled" in options else options
    options.pop("scaled", None)
    return functional(m).embedding_bag(at(m, i, 2, 2), m.tensor(X), **options)


def put(m, i, value):
    x = m.tensor(X)
    x[i] = value
    return x


OF_PLACES = {
    "gather": lambda m, i: m.gather(m.tensor(X), 1, at(m, i, 4, 1)),
    "take": lambda m, i: m.take(m.tensor(X), at(m, i)),
    "index_select": lambda m, i: m.index_select(m.tensor(X), 1, at(m, i)),
    "x[i]": lambda m, i: m.tensor(X)[at(m, i)],
    "x[:, i]": lambda m, i: m.tensor(X)[:, at(m, i)],
    "x[i, j]": lambda m, i: m.tensor(X)[at(m, 0), at(m, i)],
    "x[number]": lambda m, i: m.tensor(X)[i],
    "x[i] = v": lambda m, i: put(m, at(m, i), 0.5),
    "index_put": lambda m, i: m.index_put(m.tensor(X), (at(m, i),), m.tensor(1.0)),
    "put": lambda m, i: m.tensor(X).put(at(m, i), m.tensor([1.0])),
    "scatter": lambda m, i: m.scatter(m.tensor(X), 1, at(m, i, 4, 1), 2.0),
    "scatter_add": lambda m, i: m.scatter_add(m.tensor(X), 1, at(m, i, 4, 1), m.ones(4, 1)),
    "scatter_reduce": lambda m, i: m.scatter_reduce(
        m.tensor(X), 1, at(m, i, 4, 1), m.ones(4, 1), "amax"
    ),
    "index_add": lambda m, i: m.index_add(m.tensor(X), 0, at(m, i), m.ones(1, 5)),
    "index_copy": lambda m, i: m.index_copy(m.tensor(X), 0, at(m, i), m.ones(1, 5)),
    "index_fill": lambda m, i: m.index_fill(m.tensor(X), 0, at(m, i), 2.0),
    "select_scatter": lambda m, i: m.select_scatter(m.tensor(X), m.ones(4), 1, i),
    "embedding": lambda m, i: functional(m).embedding(at(m, i), m.tensor(X), padding_idx=1),
    "bag": lambda m, i: bags(m, i),
    "bag_max": lambda m, i: bags(m, i, mode="max"),
    "bag_padded": lambda m, i: bags(m, i, padding_idx=1),
    "bag_scaled": lambda m, i: bags(m, i, mode="sum", scaled=True),
    "bag_at_offsets": lambda m, i: functional(m).embedding_bag(
        at(m, i, 3), m.tensor(X), m.tensor([0, 2])
    ),
    "nll_loss": lambda m, i: functional(m).nll_loss(m.tensor(X), at(m, i, 4)),
    "nll_loss_of_images": lambda m, i: functional(m).nll_loss(
        m.tensor(X).reshape(1, 5, 2, 2), at(m, i, 1, 2, 2), weight=m.ones(5)
    ),
    "cross_entropy": lambda m, i: functional(m).cross_entropy(m.tensor(X), at(m, i, 4)),
    "cross_entropy_smoothed": lambda m, i: functional(m).cross_entropy(
        m.tensor(X), at(m, i, 4), label_smoothing=0.1, ignore_index=-1
    ),
    "multi_margin": lambda m, i: functional(m).multi_margin_loss(m.tensor(X), at(m, i, 4)),
    "multilabel_margin": lambda m, i: functional(m).multilabel_margin_loss(
        m.tensor(X), at(m, i, 4, 5)
    ),
    "one_hot": lambda m, i: functional(m).one_hot(at(m, i), 5),
    "bincount": lambda m, i: m.bincount(at(m, min(i, 9))),
    "max_unpool1d": unpooled(1),
    "max_unpool2d": unpooled(2),
    "max_unpool3d": unpooled(3),
    "searchsorted": lambda m, i: m.searchsorted(
        m.tensor(X[0]), m.tensor([0.0]), sorter=at(m, i, 5)
    ),
    "unravel_index": lambda m, i: m.unravel_index(at(m, i), (2, 3))[1],
}  # fmt: skip
NUMBERS = [-7.0, -1e-6, 0.5, 0.0, 1.7, 1.0, np.nan, np.inf]


def two(m, v):
    return m.tensor(np.full(2, v, np.float32))


OF_NUMBERS = {
    "bce": lambda m, v: functional(m).binary_cross_entropy(two(m, v), two(m, 1.0)),
    "bce_unreduced": lambda m, v: functional(m).binary_cross_entropy(
        two(m, v), two(m, 0.25), weight=two(m, 2.0), reduction="none"
    ),
    "bce_of_targets": lambda m, v: functional(m).binary_cross_entropy(two(m, 0.25), two(m, v)),
    "gaussian_nll": lambda m, v: functional(m).gaussian_nll_loss(two(m, 0), two(m, 1), two(m, v)),
    "gaussian_nll_of_one": lambda m, v: functional(m).gaussian_nll_loss(two(m, 0), two(m, 1), v),
    "kl_div": lambda m, v: functional(m).kl_div(two(m, -0.5), two(m, v), reduction="sum"),
    "bernoulli": lambda m, v: m.bernoulli(two(m, v)) * 0,
    "bernoulli_": lambda m, v: two(m, 0.5).bernoulli_(two(m, v)) * 0,
    "multinomial": lambda m, v: m.multinomial(two(m, v), 1) * 0,
    "normal": lambda m, v: m.normal(two(m, 0.0), two(m, v)) * 0,
    "huber": lambda m, v: functional(m).huber_loss(two(m, 1.0), two(m, 2.0), delta=v),
    "smooth_l1": lambda m, v: functional(m).smooth_l1_loss(two(m, 1.0), two(m, 2.0), beta=v),
    "softshrink": lambda m, v: functional(m).softshrink(two(m, 1.0), v),
    "hardtanh": lambda m, v: functional(m).hardtanh(two(m, 1.0), v, 0.75),
    "celu": lambda m, v: functional(m).celu(two(m, -1.0), v),
    "rrelu": lambda m, v: functional(m).rrelu(two(m, -1.0), v, 0.75),
    "triplet_margin": lambda m, v: functional(m).triplet_margin_loss(
        m.ones(2, 3), m.ones(2, 3) * 2, m.ones(2, 3) * 3, margin=v
    ),
    "batch_norm": lambda m, v: functional(m).batch_norm(
        m.tensor(X), None, None, training=True, eps=v
    ),
    "pdist": lambda m, v: functional(m).pdist(m.tensor(X), p=v),
    "quantile": lambda m, v: m.quantile(m.tensor(X[0]), two(m, v)),
}  # fmt: skip


def found(m, call, value):
    """The computed result of a call; `None` if it raises."""
    try:
        y = call(m, value)
        return tuple(y) if not hasattr(y, "detach") else as_array(y.detach())
    except (RuntimeError, ValueError, IndexError, NotImplementedError):
        return None


def check(call, values, compiled):
    for value in values[::2] if compiled else values:
        expected, given = found(torch, call, value), found(wf, call, value)
        assert (given is None) == (expected is None), (value, given, expected)
        if expected is not None:
            np.testing.assert_allclose(given, expected, rtol=2e-5, atol=1e-6, err_msg=str(value))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", OF_PLACES)
def test_places_outside(name, compiled):
    with config.override(compile=compiled):
        check(OF_PLACES[name], PLACES, compiled)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers_outside(name, compiled):
    with config.override(compile=compiled):
        check(OF_NUMBERS[name], NUMBERS, compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_gradient_of_an_unread_loss_raises(compiled):
    x = wf.tensor([0.5, 1.5], requires_grad=True)
    with config.override(compile=compiled):
        wf.nn.functional.binary_cross_entropy(x * 1.0, wf.ones(2)).backward()
        with pytest.raises(IndexError, match="expected an input of numbers from 0 to 1, got 1 oth"):
            x.grad.tolist()


WHOLE = [0, -7, 255, 256, 2**31, 2**62 + 1, 2**63 - 3, 2**63 + 1, 1e30, -7.25, 65536.0]
TYPES = [None, "bool", "uint8", "int8", "int32", "int64", "float16", "float32"]


def typed(m, dtype):
    return None if dtype is None else getattr(m, dtype)


OF_WHOLE = {
    "tensor": lambda m, v, dtype: m.tensor([0, v], dtype=dtype),
    "tensor of one": lambda m, v, dtype: m.tensor(v, dtype=dtype),
    "arange": lambda m, v, dtype: m.arange(v, v + 2, dtype=dtype),
    "linspace": lambda m, v, dtype: m.linspace(v, v + 2, 3, dtype=dtype),
    "fill_": lambda m, v, dtype: m.ones(2, dtype=dtype).fill_(v),
    "masked_fill": lambda m, v, dtype: m.masked_fill(
        m.ones(2, dtype=dtype), m.tensor([True, False]), v
    ),
    "pad": lambda m, v, dtype: functional(m).pad(m.ones(2, dtype=dtype), (1, 0), value=v),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", OF_WHOLE)
def test_numbers_that_a_type_does_not_hold(name, dtype):
    for v in WHOLE:
        if name in ("pad", "arange", "linspace") and abs(v) > 2**53:
            continue  # which PyTorch computes in float64
        if name in ("linspace", "pad") and dtype == "uint8" and v < 0:
            continue  # PyTorch wraps it around or raises, by processor

        def call(m, v):
            return OF_WHOLE[name](m, v, typed(m, dtype))

        expected, given = found(torch, call, v), found(wf, call, v)
        assert (given is None) == (expected is None), (v, given, expected)
        assert expected is None or given.tolist() == expected.tolist(), v


def test_whole_numbers_in_order_stay_within_64_bits():
    for call in (
        lambda m: m.arange(2**63 - 2, 2**63 + 1),
        lambda m: m.arange(0, 2, dtype=m.bool),
        lambda m: m.linspace(0, 1, 3, dtype=m.bool),
        lambda m: m.linspace(0, 300, 3, dtype=m.uint8),
        lambda m: m.tensor([True]) // 0,
        lambda m: m.tensor([True]) ** -1,
    ):
        for m in (torch, wf):
            with pytest.raises((RuntimeError, TypeError)):
                as_array(call(m))
    assert wf.arange(126, 130, dtype=wf.int8).tolist() == [126, 127, -128, -127]


@pytest.mark.parametrize("number", [65536, 1e6, -70000.0])
def test_half_precision_beside_numbers_that_it_lacks(number):
    def results(m):
        x = m.tensor([0.0, 0.25, -3.0], dtype=m.float16, requires_grad=True)
        ys = [x * number, x / number, x + number, number - x]
        ys[0].sum().backward()
        return [y.detach().tolist() for y in ys], (x < number).tolist(), x.grad.tolist()

    assert results(wf) == results(torch)
