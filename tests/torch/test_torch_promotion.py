"""Dtypes of results, and errors, as in PyTorch."""

import itertools
import operator

import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402

TYPES = (
    "bool", "uint8", "int8", "int16", "int64", "bfloat16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
PAIRS = list(itertools.product(TYPES, TYPES))
NUMBERS = (True, 2, 2.5, 1 + 1j)


def ones(m, dtype, shape=(2,)):
    return m.ones(shape, dtype=getattr(m, dtype))


def outcome(function, m):
    """The type and the elements that `function(m)` gives, or that it raises."""
    try:
        y = function(m)
    except (RuntimeError, TypeError, NotImplementedError):
        return "raises"
    return str(y.dtype).removeprefix("torch."), y.tolist()


def check(function):
    assert outcome(function, wf) == outcome(function, torch)


@pytest.mark.parametrize("name", ["add", "mul", "where", "floor_divide", "sub"])
@pytest.mark.parametrize("shapes", [((2,), (2,)), ((2,), ()), ((), (2,))])
def test_two_tensors(name, shapes):
    def function(m, a, b):
        x, y = ones(m, a, shapes[0]), ones(m, b, shapes[1])
        if name == "where":
            return m.where(m.tensor([True, False]), x, y)
        return getattr(m, name)(x, y)

    for a, b in PAIRS:
        check(lambda m: function(m, a, b))  # noqa: B023


def test_result_and_promoted_types():
    for a, b in PAIRS:
        found = wf.promote_types(getattr(wf, a), getattr(wf, b))
        assert f"torch.{found}" == str(torch.promote_types(getattr(torch, a), getattr(torch, b)))
        for s, t in itertools.product(((), (2,)), repeat=2):
            found = wf.result_type(ones(wf, a, s), ones(wf, b, t))
            expected = torch.result_type(ones(torch, a, s), ones(torch, b, t))
            assert f"torch.{found}" == str(expected), (a, s, b, t)


@pytest.mark.parametrize("name", ["add", "sub"])
def test_alpha_is_of_the_kind_of_the_result(name):
    for (a, b), alpha in itertools.product(PAIRS, NUMBERS):
        check(lambda m: getattr(m, name)(ones(m, a), ones(m, b), alpha=alpha))  # noqa: B023


@pytest.mark.parametrize("name", ["addcmul", "addmm"])
def test_factors_with_a_fraction_raise_for_integers(name):
    def function(m, dtype, factor):
        x = ones(m, dtype, (2, 2))
        option = "value" if name == "addcmul" else "beta"
        return getattr(m, name)(x, x, x, **{option: factor})

    assert function(wf, "int64", 2).dtype is wf.int64
    check(lambda m: function(m, "int64", 2.0))
    assert function(wf, "float32", 2.5).dtype is wf.float32
    for dtype, factor in (("int64", 2.5), ("int64", 1j), ("float32", 1j)):
        with pytest.raises(
            wf.errors.DTypeError, match=r"(an integer|a real number) as (value|beta)"
        ):
            function(wf, dtype, factor)


def test_whole_factors_of_integers_that_are_added_at_indices():
    for factor in (2.0, -1, 1j):
        check(
            lambda m: m.zeros(2, dtype=m.int64).index_add(
                0,
                m.tensor([1]),
                m.tensor([3]),
                alpha=factor,  # noqa: B023
            )
        )


def test_numbers_are_not_subtracted_from_truth_values():
    x = ones(wf, "float32")
    for function in (
        lambda: x - True, lambda: True - x, lambda: ones(wf, "bool") - x,
        lambda: 1 - ones(wf, "bool"), lambda: operator.isub(x, ones(wf, "bool")),
    ):  # fmt: skip
        with pytest.raises(wf.errors.DTypeError, match="subtract: expected numbers"):
            function()


def test_powers_in_float64():
    for a, b in PAIRS:
        check(lambda m: m.float_power(ones(m, a), ones(m, b)))  # noqa: B023


def test_scaled_by_powers_of_two():
    for a, b in itertools.product(("bfloat16", "float32", "float64", "int64"), ("int64", "uint8")):
        check(lambda m: m.ldexp(ones(m, a), ones(m, b)))  # noqa: B023
    assert wf.ldexp(ones(wf, "float64"), wf.tensor(200)).tolist() == [2.0**200] * 2


def test_sums_as_truth_values_and_of_complex_numbers_as_real_ones():
    for dtype in TYPES:
        check(lambda m: m.tensor([0, 2], dtype=getattr(m, dtype)).sum(dtype=m.bool))  # noqa: B023
        check(lambda m: m.tensor([0, 2], dtype=getattr(m, dtype)).prod(dtype=m.bool))  # noqa: B023
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        assert ones(wf, "complex64").cumsum(0, dtype=wf.float32).tolist() == [1.0, 2.0]


def test_closeness_and_mixtures_of_complex_numbers():
    def close(m):
        return m.isclose(m.tensor([1 + 1j, 2, 3j]), m.tensor([1 + 1.1j, 2 + 1e-9j, 3]))

    def mixed(m, weight):
        x = m.lerp(m.tensor([1 + 1j, 2]), m.tensor([3j, 4]), weight)
        return m.view_as_real(x).round(decimals=4)

    check(close)
    for weight in (0.25, 0.75, -2.0, 0.5 + 0.5j):
        check(lambda m: mixed(m, weight))  # noqa: B023


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x, y: x.index_add(0, m.tensor([0, 1]), y),
        lambda m, x, y: x.index_copy(0, m.tensor([0, 1]), y),
        lambda m, x, y: x.scatter(0, m.tensor([0, 1]), y),
        lambda m, x, y: x.scatter_add(0, m.tensor([0, 1]), y),
        lambda m, x, y: x.index_put((m.tensor([0, 1]),), y),
        lambda m, x, y: x.put_(m.tensor([0, 1]), y),
        lambda m, x, y: x.masked_scatter(m.tensor([True, False]), y),
        lambda m, x, y: x.scatter_reduce(0, m.tensor([0, 1]), y, "amax"),
    ],
)
def test_what_is_put_into_a_tensor_has_its_type(function):
    for a, b in (("int64", "float32"), ("float32", "float64"), ("int64", "int64")):
        check(lambda m: function(m, ones(m, a), ones(m, b)))  # noqa: B023
