"""Valid and invalid arguments of functions, as in PyTorch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import same  # noqa: E402

GIVEN = {
    "nested": lambda m: m.tensor([m.tensor(1.0, requires_grad=True), m.tensor(2.0)]),
    "nested_deeper": lambda m: m.tensor([[m.tensor(1.0, requires_grad=True), 3.0], [0.0, 1.0]]),
    "new_list": lambda m: m.ones(2, dtype=m.int64).new([3, 4]),
    "new_nothing": lambda m: m.ones(2).new(),
    "sections": lambda m: m.tensor_split(m.arange(5), sections=2),
    "indices": lambda m: m.arange(5).tensor_split(indices=(1, 3)),
    "scalar_tensor": lambda m: m.scalar_tensor(True),
    "scalar_tensor_typed": lambda m: m.scalar_tensor(2.5, dtype=m.int64),
    "isreal": lambda m: m.isreal(m.tensor([True, False])),
    "bincount": lambda m: m.bincount(m.tensor([1, 1, 0]), minlength=4),
    "histc": lambda m: m.histc(m.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3),
    "index_reduce": lambda m: m.ones(3).index_reduce(
        0, m.tensor([0, 0]), m.tensor([2.0, 3.0]), "mean"
    ),
    "masked_by_one": lambda m: _set(m.ones(3), m.ones(3) > 0, m.tensor([2])),
    "leading_ones": lambda m: _set(m.zeros(2, 3), slice(None), m.ones(1, 1, 2, 3)),
    "leading_ones_of_masked": lambda m: _set(m.zeros(2), m.zeros(2) < 1, m.ones(1, 1, 2)),
    "complex_nan": lambda m: m.view_as_real(
        m.nan_to_num(m.tensor([1j, complex(m.nan, m.inf), complex(-m.inf, 2)]), posinf=3.0)
    ),
    "histogramdd": lambda m: m.histogramdd(m.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]), [2, 2])[
        0
    ],
    "histogramdd_limits": lambda m: m.histogramdd(
        m.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]),
        2,
        range=[0.0, 4.0, 0.0, 1.0],
        weight=m.tensor([1.0, 2.0, 4.0]),
        density=True,
    )[0],
    "histogramdd_edges": lambda m: m.histogramdd(
        m.tensor([[0.0, 1.0], [1.0, 0.0]]), [m.tensor([0.0, 0.5, 2.0]), m.tensor([0.0, 1.0])]
    )[1][0],
    "row": lambda m: _set(m.ones(3, 2), 0, m.tensor([2, 3])),
}

REFUSED = {
    "tensor_split": lambda m: m.tensor_split(m.arange(5)),
    "unflatten": lambda m: m.ones(1).unflatten(0, []),
    "normal": lambda m: m.normal(0.0, -1.0, (2,)),
    "multinomial_integers": lambda m: m.multinomial(m.tensor([1, 2]), 1),
    "multinomial_none": lambda m: m.multinomial(m.tensor([1.0, 2.0]), 0),
    "randint": lambda m: m.randint(0, 300, (2,), dtype=m.uint8),
    "randperm": lambda m: m.randperm(300, dtype=m.uint8),
    "index_reduce": lambda m: m.ones(3).index_reduce(0, m.tensor([0]), m.ones(1), "sum"),
    "pdist": lambda m: m.nn.functional.pdist(m.ones(3)),
    "bincount": lambda m: m.bincount(m.tensor([1]), minlength=-1),
    "histc_bins": lambda m: m.histc(m.ones(2), bins=0),
    "histc_order": lambda m: m.histc(m.ones(2), bins=2, min=3, max=2),
    "histc_infinite": lambda m: m.histc(m.tensor([1.0, m.inf])).tolist(),
    "arange": lambda m: m.arange(0, m.inf),
    "triu_indices": lambda m: m.triu_indices(-1, 3),
    "meshgrid": lambda m: m.meshgrid(),
    "block_diag": lambda m: m.block_diag(m.ones(1, 1, 1)),
    "tolerance": lambda m: m.isclose(m.ones(1), m.ones(1), rtol=-1.0),
    "histogramdd_bins": lambda m: m.histogramdd(m.ones(2, 3), [2, 2]),
    "lerp": lambda m: m.lerp(m.ones(2), m.ones(2, dtype=m.float64), 0.5),
    "floor": lambda m: m.floor(m.ones(2, dtype=m.complex64)),
    "item_of_another_type": lambda m: _set(m.ones(3), m.tensor([0]), m.tensor(2)),
    "rows_of_another_type": lambda m: _set(m.ones(3), m.ones(3) > 0, m.tensor([1, 2, 3])),
    "state": lambda m: m.Generator().set_state(m.zeros(3, dtype=m.uint8)),
}


def _set(x, key, value):
    x[key] = value
    return x


@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch's
@pytest.mark.parametrize("name", GIVEN)
def test_given(name):
    same(GIVEN[name](wf), GIVEN[name](torch))


@pytest.mark.parametrize("name", REFUSED)
def test_errors(name):
    for m in (torch, wf):
        with pytest.raises((RuntimeError, TypeError, ValueError, NotImplementedError)):
            REFUSED[name](m)


def test_formats_are_for_numbers():
    assert f"{wf.tensor(1.5):.3f}" == "1.500"
    with pytest.raises(TypeError, match=r"format: '\.3f' is for a number"):
        format(wf.ones(2), ".3f")


def test_a_generator_continues_from_its_state():
    generator = wf.Generator().manual_seed(3)
    assert generator.device == wf.device("cpu")
    state = generator.get_state()
    assert state.dtype is wf.uint8
    first = wf.rand(3, generator=generator)
    generator.set_state(state)
    assert wf.equal(first, wf.rand(3, generator=generator))


def test_limits_are_equal_by_their_type():
    assert wf.finfo(wf.float32) == wf.finfo(wf.complex64) != wf.finfo(wf.float64)
    assert wf.iinfo(wf.int8) == wf.iinfo(wf.int8) != wf.iinfo(wf.uint8)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        expected = torch.finfo(getattr(torch, dtype)).resolution
        assert wf.finfo(getattr(wf, dtype)).resolution == pytest.approx(expected, rel=1e-12)


def test_types_of_parts():
    for dtype in ("float32", "float64", "complex64", "complex128"):
        ours, theirs = getattr(wf, dtype), getattr(torch, dtype)
        assert f"torch.{ours.to_real()}" == str(theirs.to_real())
        assert f"torch.{ours.to_complex()}" == str(theirs.to_complex())


def test_typed_by_the_name_of_tensors():
    x = wf.tensor([1.5]).type(wf.IntTensor)
    assert x.dtype is wf.int32 and x.tolist() == [1]


@pytest.mark.parametrize("power", [1.3, 1.3 + 0.2j, 2])
def test_numbers_beside_float64_keep_their_digits_in_powers(power):
    x = [1.7, 2.3]
    for dtype in ("float64", "float32"):
        found = [
            (m.float_power(m.tensor(x, dtype=getattr(m, dtype)), power).tolist())
            + m.float_power(power, m.tensor(x, dtype=getattr(m, dtype))).tolist()
            for m in (wf, torch)
        ]
        assert found[0] == pytest.approx(found[1], rel=1e-13)


@pytest.mark.filterwarnings("ignore:range:UserWarning")
def test_ranges_with_their_end():
    assert wf.range(0, 3).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert wf.range(1, 0, -0.5).tolist() == [1.0, 0.5, 0.0]
    assert wf.range(0, 1, 0.3, dtype=wf.float64).tolist() == pytest.approx([0, 0.3, 0.6, 0.9])
    with pytest.raises(wf.errors.ShapeError, match="leads from 1 to 0"):
        wf.range(1, 0)


def test_arrays_of_another_byte_order_are_not_shared():
    array = np.arange(3, dtype=np.dtype(np.int32).newbyteorder())
    with pytest.raises(wf.errors.DTypeError, match="byte order"):
        wf.from_numpy(array)
    assert wf.tensor(array).tolist() == [0, 1, 2]


NEGATIVE = {
    "gather": lambda m, k: m.zeros(3).gather(0, k),
    "scatter": lambda m, k: m.zeros(3).scatter(0, k, 1.0),
    "scatter_add": lambda m, k: m.zeros(3).scatter_add(0, k, m.ones(1)),
    "scatter_reduce": lambda m, k: m.zeros(3).scatter_reduce(0, k, m.ones(1), "amax"),
    "index_select": lambda m, k: m.zeros(3, 2).index_select(0, k),
    "index_add": lambda m, k: m.zeros(3).index_add(0, k, m.ones(1)),
    "index_copy": lambda m, k: m.zeros(3).index_copy(0, k, m.ones(1)),
    "index_fill": lambda m, k: m.zeros(3).index_fill(0, k, 1.0),
    "put": lambda m, k: m.zeros(3).put(k, m.ones(1)),
    "take": lambda m, k: m.arange(3.0).take(k),
    "take_along_dim": lambda m, k: m.take_along_dim(m.arange(3.0), k, 0),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_places_from_the_end(name):
    function = NEGATIVE[name]
    try:
        theirs = function(torch, torch.tensor([-1])).tolist()
    except (RuntimeError, IndexError):
        for _ in range(4):  # interpreted, then compiled
            with pytest.raises(IndexError):
                function(wf, wf.tensor([-1])).tolist()
    else:
        assert function(wf, wf.tensor([-1])).tolist() == theirs
    assert function(wf, wf.tensor([2])).tolist() == function(torch, torch.tensor([2])).tolist()
