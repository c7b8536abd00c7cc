"""Arguments and edge cases in programs written for PyTorch mean the same here."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, draw  # noqa: E402

SAME = {
    "flip by name": lambda m, x: m.flip(x, dims=(0, 1)),
    "flip of no axis": lambda m, x: x.flip(dims=()),
    "diff of no order": lambda m, x: m.diff(x, 0),
    "a correction that is no whole number": lambda m, x: m.var(x, dim=1, correction=1.3),
    "std_mean of all": lambda m, x: m.std_mean(x, True),
    "var_mean of all, biased": lambda m, x: m.var_mean(x, False),
    "cdist that counts": lambda m, x: m.cdist(x, x.round(), p=0),
    "cdist by a way": lambda m, x: m.cdist(x, x[:2] + 1, 2.0, "use_mm_for_euclid_dist"),
    "circular padding that cuts": lambda m, x: m.nn.functional.pad(
        x[None], (-1, 1), mode="circular"
    ),
    "reflection of an empty batch": lambda m, x: m.nn.functional.pad(
        x[:0, None], (1, 2), mode="reflect"
    ),
}


@pytest.mark.parametrize("what", SAME)
def test_of_floating_numbers(what):
    agree(SAME[what], draw((3, 4), -2, 2, 0))


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin"])
def test_extremes_of_truth_values(name):
    agree(lambda m, x: getattr(m, name)(x), np.array([[True, False], [False, False]]), grad=False)


@pytest.mark.parametrize("bounds", [(0.0, -8.000001, -4.0), (-0.9, 2.1, 2.0), (0.1, -7.9, -4)])
def test_ranges_of_whole_numbers_cut_their_bounds(bounds):
    assert (
        wf.arange(*bounds, dtype=wf.int64).tolist()
        == torch.arange(*bounds, dtype=torch.int64).tolist()
    )
    with pytest.raises(wf.errors.ShapeError, match="whole step"):
        wf.arange(0, 3, 0.5, dtype=wf.int64)


def test_even_steps_of_whole_numbers_cut_their_bounds():
    for ours, theirs in ((wf.linspace, torch.linspace), (wf.logspace, torch.logspace)):
        found = ours(0.5, 2.7, 5, dtype=wf.int64)
        assert found.tolist() == theirs(0.5, 2.7, 5, dtype=torch.int64).tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: m.ones(2, 3) @ m.ones(2, 3),
        lambda m: m.ones(2, 3).reshape(4),
        lambda m: m.ones(2) + m.ones(3),
        lambda m: m.ones(2) << 1,
        lambda m: m.einsum("ij,ij->k", m.ones(2, 2), m.ones(2, 2)),
    ],
)
def test_errors_are_those_that_programs_catch(wrong):
    for m in (torch, wf):
        with pytest.raises(RuntimeError):
            wrong(m)


def test_extremes_along_a_dimension_under_either_name():
    agree(lambda m, x: x.max(axis=1), draw((3, 4), -2, 2, 0))
    agree(lambda m, x: m.min(x, axis=0), draw((3, 4), -2, 2, 0))
    agree(lambda m, x: m.std_mean(x, axis=(0, 1)), draw((3, 4), -2, 2, 0))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_equal_numbers_share_the_gradient(name):
    x, y = np.array([1.0, 2, np.inf]), np.array([2.0, 2, np.inf])
    agree(lambda m, x, y: getattr(m, name)(x, y), x, y)
    agree(lambda m, x, y: m.clamp(x, min=y), x, np.array([1.0, 3.0, 3.0]))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reduce(reduce, include_self):
    index = np.array([[0, 2, 2, 0], [1, 1, 1, 0]])
    x, source = draw((3, 4), -2, 2, 0), draw((2, 4), -2, 2, 1)

    def reduced(m, x, index, source):
        return x.scatter_reduce(0, index, source, reduce, include_self=include_self)

    agree(reduced, x, index, source)
    agree(
        lambda m, x, i, s: x.clone().scatter_reduce_(0, i, s, reduce, include_self=include_self),
        x,
        index,
        source,
        grad=False,
    )
    whole = [(a * 5).astype(np.int64) for a in (x, source)]
    agree(reduced, whole[0], index, whole[1], grad=False)


def test_powers():
    agree(lambda m, y: 0**y, np.array([-2.0, -1.0, 0.0, 1.0]))
    agree(lambda m, x, y: x**y, np.array([0.0, 0.0, 2.0]), np.array([0.3, -0.3, -1.0]))
    for m in (torch, wf):
        with pytest.raises(RuntimeError):
            m.tensor([1, 2]) ** -2


@pytest.mark.parametrize("exponent", [-1, 0.5, 2, 3, 4])
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "float16"])
def test_small_powers_at_zero_and_infinity(kind, exponent):
    numbers = [0.0, -0.0, 1.0, 2.5, -3.75, math.inf, -math.inf, math.nan, 1e20, -1e-30]

    def found(m):
        x = m.tensor(numbers).to(getattr(m, kind)).requires_grad_()
        y = x**exponent
        y.sum().backward()
        return [np.array(v.detach().double().tolist()) for v in (y, x.grad)]

    rtol = 1e-2 if kind.endswith("16") else 1e-6
    for got, want in zip(found(wf), found(torch), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-38)
        assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


def test_limits_and_promotion():
    for name in ("float16", "bfloat16", "float32", "float64"):
        found, wanted = wf.finfo(getattr(wf, name)), torch.finfo(getattr(torch, name))
        for part in ("min", "max", "eps", "tiny", "smallest_normal", "bits", "dtype"):
            assert getattr(found, part) == getattr(wanted, part), (name, part)
    assert repr(wf.finfo()) == repr(torch.finfo())
    for name in ("int8", "uint8", "int16", "int32", "int64"):
        found, wanted = wf.iinfo(getattr(wf, name)), torch.iinfo(getattr(torch, name))
        for part in ("min", "max", "bits", "dtype"):
            assert getattr(found, part) == getattr(wanted, part), (name, part)
    with pytest.raises(wf.errors.DTypeError, match="use iinfo"):
        wf.finfo(wf.int8)
    with pytest.raises(wf.errors.DTypeError, match="integer dtype"):
        wf.iinfo(wf.float32)
    names = ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32"]
    for a in names:
        for b in names:
            ours, theirs = (
                (
                    m.promote_types(getattr(m, a), getattr(m, b)),
                    m.can_cast(getattr(m, a), getattr(m, b)),
                )
                for m in (wf, torch)
            )
            assert f"torch.{ours[0].name}" == str(theirs[0])
            assert ours[1] == theirs[1], (a, b)
    for m in (wf, torch):
        assert m.result_type(m.tensor([1, 2]), 1.0) == m.float32
        assert m.result_type(2, m.tensor([1], dtype=m.int8)) == m.int8
        assert m.result_type(m.tensor([1.0]), m.tensor(2.0, dtype=m.float64)) == m.float32


def test_questions_about_tensors():
    for m in (wf, torch):
        x = m.ones(2, 3)
        assert (x.ndimension(), x.get_device(), x.is_signed(), x.is_complex()) == (
            2,
            -1,
            True,
            False,
        )
        assert x.is_same_size(m.zeros(2, 3))
        assert not x.is_same_size(m.zeros(2))
        assert m.is_nonzero(m.tensor(2.0))
        assert not m.tensor([0]).is_nonzero()
        assert not m.is_complex(x)
        assert x.char().dtype == m.int8


def test_pooling_and_resizing_of_whole_numbers():
    x = (draw((1, 2, 6, 6), -9, 9, 0) * 5).astype(np.int64)
    for ours in (False, True):
        agree(
            lambda m, x, both=ours: m.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=both),
            x,
            grad=False,
        )
    pixels = np.arange(48, dtype=np.uint8).reshape(1, 3, 4, 4)
    for mode in ("nearest", "nearest-exact"):
        agree(
            lambda m, x, mode=mode: m.nn.functional.interpolate(x, (6, 3), mode=mode),
            pixels,
            grad=False,
        )


def test_norms_that_count():
    x = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 0.5]])
    agree(lambda m, x: m.nn.functional.normalize(x, p=0, dim=1), x)


def test_printed_cells():
    for kind in ("tanh", "relu"):
        assert repr(wf.nn.RNNCell(2, 3, nonlinearity=kind)) == repr(
            torch.nn.RNNCell(2, 3, nonlinearity=kind)
        )


def test_integers_beside_arrays_of_indices_come_first():
    x = draw((3, 4, 5), -2, 2, 0)
    i, mask = np.array([0, 2]), np.array([True, False, True, False, True])
    agree(lambda m, x: x[0, :, m.tensor(i)], x)
    agree(lambda m, x: x[1, ..., m.tensor(mask)], x)
    agree(lambda m, x: x[m.tensor(i), None, :, 1], x)
    agree(lambda m, x: x[1, m.tensor(i), 1:3], x)
    agree(lambda m, x: x[..., m.tensor(mask)], x)
    for m in (wf, torch):
        y = m.tensor(x)
        y[0, :, m.tensor(i)] = m.arange(8.0).reshape(4, 2)
        assert y[0, :, 2].tolist() == [1, 3, 5, 7]
        assert y[1].tolist() == x[1].tolist()


def test_windows_along_an_axis():
    x = draw((4, 7), -2, 2, 0)
    agree(lambda m, x: x.unfold(1, 3, 2), x)
    agree(lambda m, x: x.unfold(0, 4, 1), x)
    for m in (wf, torch):
        with pytest.raises(RuntimeError):
            m.ones(3).unfold(0, 4, 1)


def test_channels_of_matrices_drop_alone():
    wf.manual_seed(0)
    y = wf.nn.functional.dropout2d(wf.ones(200, 50), 0.5)
    assert 0.45 < (y == 0).float().mean().item() < 0.55
    assert set(y.unique().tolist()) == {0.0, 2.0}


def test_where_tensors_are():
    for m in (wf, torch):
        x = m.ones(2)
        assert (x.is_cpu, x.is_cuda, x.is_xpu, x.is_mps, x.is_sparse) == (True, *[False] * 4)


def test_gradients_of_what_has_no_influence_as_zeros():
    for m in (wf, torch):
        x, y = m.ones(2, requires_grad=True), m.ones(3, requires_grad=True)
        found = m.autograd.grad((x * x).sum(), (x, y), materialize_grads=True)
        assert [g.tolist() for g in found] == [[2, 2], [0, 0, 0]]


def test_functions_of_networks_beside_those_of_tensors():
    x, w = draw((2, 3, 8), -2, 2, 0), draw((4, 3, 3), -2, 2, 1)
    agree(lambda m, x, w: m.conv1d(x, w, padding=1), x, w)
    agree(lambda m, x: m.cosine_similarity(x[0], x[1], dim=0), x)
    agree(lambda m, x: m.layer_norm(x, (8,)), x)
    agree(lambda m, x: m.pairwise_distance(x[0], x[1]), x)
    assert "conv2d" in dir(wf)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "RMSprop", "Adagrad"])
def test_how_an_optimizer_is_to_compute_has_no_influence(name):
    results = []
    for options in ({}, {"foreach": True}) + (({"fused": True},) if name != "RMSprop" else ()):
        x = wf.ones(3, requires_grad=True)
        optimizer = getattr(wf.optim, name)([x], lr=0.1, **options)
        (x * x).sum().backward()
        optimizer.step()
        results.append(x.tolist())
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("length", [True, 0, 2, 5])
def test_a_window_takes_its_length_from_a_tensor(length):
    for name in ("bartlett", "blackman", "hamming", "hann", "kaiser"):
        found = [getattr(m.signal.windows, name)(m.tensor(length)) for m in (torch, wf)]
        np.testing.assert_allclose(found[1], found[0], atol=1e-6)
