"""Corner cases from PyTorch's own tests: the same values, dtypes and errors."""

import operator
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
from tests.torch.tensor_case import agree, same  # noqa: E402
from weft.utils.dlpack import from_dlpack, to_dlpack  # noqa: E402


def _filled_at(m):
    """Changes by way of scalar tensors that are not computed yet."""
    x, index = m.zeros(4, 3), m.arange(3) + 1
    for i in range(3):
        m.maximum(x[index[i]], m.full((3,), float(i)), out=x[index[i]])
    x[index[0], 1:].add_(5.0)
    return x


def _slope_at(m):
    x = m.ones(3, 2, requires_grad=True)
    ((x * 2)[(m.arange(4).sum() - 5), 1] * 3).backward()
    return x.grad


def _written(m, function, out, *args, **options):
    function(*args, out=out, **options)
    return out


def _buffer(m):
    memory = np.arange(4, dtype=np.float32)
    x = m.frombuffer(memory, dtype=m.float32, count=2, offset=4)
    x[0] = 7
    assert x.tolist() == [7, 2]  # which makes it computed
    return memory.tolist()


def _asarray(m):
    memory = np.arange(3, dtype=np.float32)
    shared, copied = m.asarray(memory), m.asarray(memory, copy=True)
    shared[0] = 9
    x = m.ones(2, requires_grad=True) * 2
    assert shared.tolist() == [9, 1, 2]
    flows = (
        m.asarray(x, requires_grad=False).requires_grad,
        m.asarray(x, requires_grad=True).requires_grad,
    )
    return shared, copied, memory.tolist(), flows, m.asarray([1, 2.5]), m.asarray(memory).double()


def _half(m):
    """What float16 holds, though sums of powers on the way there are larger."""
    x = m.tensor([[100.0, 1.0, 2.0], [0.5, 0.25, 0.75]]).half()
    alike = m.nn.functional.cosine_similarity(x * 300, x * 300)
    return (
        m.round(x, decimals=3),
        m.linalg.vector_norm(x * 100, 3),
        m.renorm(x, 3, 0, 3.0),
        alike.round(),
    )


SAME = {
    "sums of float16": _half,
    "any and all of bytes": lambda m: [
        f(m.tensor([[0, 3]], dtype=m.uint8), **k)
        for f in (m.any, m.all)
        for k in ({}, {"dim": 1}, {"dim": 0, "keepdim": True})
    ],
    "median of nothing": lambda m: m.zeros(0).median(),
    "running extremes of truth values": lambda m: [
        tuple(f(m.tensor([[True, False], [False, True]]), 1)) for f in (m.cummax, m.cummin)
    ],
    "negative numbers as bytes": lambda m: [
        m.tensor([[-1, 2], [-255, 255]], dtype=m.uint8),
        m.zeros(2, dtype=m.uint8).fill_(-3),
        m.zeros(2, dtype=m.uint8) + -1,
        m.ones(3, dtype=m.uint8).index_fill(0, m.tensor([1]), -1),
    ],
    "adjoint": lambda m: m.view_as_real(
        m.adjoint(m.tensor([[1 + 2j, 3j], [4 + 0j, 5 - 1j]])).resolve_conj()
    ),
    "vectors of a complex svd": lambda m: [
        m.view_as_real(m.svd(m.tensor([[1 + 2j, 3j], [4, 5 - 1j]]))[k].abs().to(m.complex64))
        for k in (0, 2)
    ],
    "spread of complex numbers": lambda m: [
        m.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]]).var(),
        m.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]]).std(1, correction=0),
        m.var_mean(m.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]]), 0)[0],
    ],
    "scattered complex factors": lambda m: m.view_as_real(
        m.ones(3, dtype=m.complex64).scatter_reduce(
            0, m.tensor([0, 0, 2]), m.tensor([1j, 2, 1 + 1j]), "prod"
        )
    ),
    "scalar tensors choose views": _filled_at,
    "scalar tensors choose with gradients": _slope_at,
    "seeds below 0": lambda m: (m.manual_seed(-1).initial_seed(), m.initial_seed()),
    "windows of a scalar": lambda m: (m.tensor(0.5).unfold(0, 0, 1), m.tensor(2.0).unfold(0, 1, 1)),
    "reversed": lambda m: reversed(m.arange(6).reshape(3, 2)),
    "nothing scattered": lambda m: m.ones(4).scatter(
        0, m.zeros((0, 4), dtype=m.int64), m.ones(4, 4)
    ),
    "slopes in another order": lambda m: list(
        m.gradient(m.arange(6.0).reshape(2, 3) ** 2, dim=(-1, 0))
    ),
    "slopes of infinite numbers": lambda m: m.gradient(
        m.tensor([2, -2, np.inf, np.inf, -np.inf, 3, 1, np.nan, 4, 5])
    )[0],
    "pairs of no rows": lambda m: [m.nn.functional.pdist(m.zeros(n, 2)) for n in (0, 1)],
    "diagonals filled": lambda m: [
        m.zeros(7, 3).fill_diagonal_(1.5),
        m.zeros(7, 3).fill_diagonal_(1.5, wrap=True),
        m.zeros(2, 4).fill_diagonal_(1.5),
        m.zeros(3, 3, 3).fill_diagonal_(2),
        m.zeros(3, 2, 3)[:, 1].fill_diagonal_(2),
    ],
    "functions of elements": lambda m: [
        m.arange(4).apply_(lambda a: a * a),
        m.arange(3.0).map_(m.ones(1), lambda a, b: a + b),
        m.ones(2, 2).map2_(m.arange(2.0), m.full((2, 1), 3.0), lambda a, b, c: a + b * c),
    ],
    "numbers before tensors": lambda m: [
        f(x)
        for x in (m.tensor([1.5, -2.0]), m.tensor([3, 4]))
        for f in (
            lambda x: 2.0 * x, lambda x: 1 - x, lambda x: 3.0 / x, lambda x: 2 + x,
            lambda x: 7 // x, lambda x: True + x, lambda x: 2**x.abs(),
        )
        for _ in range(2)
    ],
    "out= of several": lambda m: _written(
        m, m.cummax, (m.zeros(0), m.zeros(0, dtype=m.int64)), m.tensor([1.0, 3, 2]), dim=0
    ),
    "out= decides the type": lambda m: [
        _written(m, m.full, m.zeros(2, dtype=m.int64), (2,), 3),
        _written(m, m.sum, m.zeros(3, dtype=m.uint8), m.ones(2, 3, dtype=m.uint8), 0),
        _written(m, m.mode, (m.zeros(0), m.zeros(0, dtype=m.int64)), m.tensor([1.0, 3, 3]), 0),
    ],
    "shared buffers": _buffer,
    "arrays as tensors": _asarray,
    "complex numbers beside others": lambda m: [
        m.view_as_real(x)
        for x in (m.ones(2, dtype=m.complex64) + 1j, m.ones(2, dtype=m.int64) * 1j, 1j + m.ones(1))
    ],
    "sums of complex numbers": lambda m: [
        m.view_as_real(f(m.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]])))
        for f in (
            m.sum, m.prod, m.mean, m.trace, lambda x: m.sum(x, 1),
            lambda x: m.cumsum(x, 0), lambda x: m.cumprod(x, 1),
            lambda x: m.put(x, m.tensor([0, 0]), x[0], accumulate=True),
        )
    ],
    "traces and powers of small integers": lambda m: [
        m.trace(m.ones(2, 2, dtype=m.int16)), m.vander(m.tensor([3, -5], dtype=m.int8), 6)
    ],
    "sums with a factor": lambda m: [
        m.ones(2).add(m.ones(2), alpha=1.5), m.tensor([3]).sub(m.tensor([1]), alpha=2),
        m.rsub(m.ones(2), 3, alpha=0.5), m.tensor([True]).add(m.tensor([True]), alpha=True),
    ],
    "products that what is there does not count for": lambda m: [
        f(m.full(shape, float("nan")), *[m.ones(*s) for s in shapes], beta=0, alpha=2)
        for f, shape, shapes in (
            (m.addmm, (2, 2), ((2, 3), (3, 2))), (m.addmv, (2,), ((2, 3), (3,))),
            (m.addbmm, (2, 2), ((4, 2, 3), (4, 3, 2))), (m.addr, (2, 3), ((2,), (3,))),
            (m.baddbmm, (4, 2, 2), ((4, 2, 3), (4, 3, 2))),
        )
    ],
    "products of small integers": lambda m: [
        f(*[m.full((2, 2), 7, dtype=m.int8)] * n)
        for f, n in (
            (m.addmm, 3), (m.inner, 2), (m.tensordot, 2), (m.mm, 2),
            (lambda *xs: m.einsum("ij,jk->ik", *xs), 2),
        )
    ],
    "a complex vector conjugated": lambda m: m.view_as_real(
        m.vdot(m.tensor([1 + 2j, 3 - 1j]), m.tensor([2j, 1 + 1j]))
    ),
    "sums over numbered axes": lambda m: [
        m.einsum(m.arange(6.0).reshape(2, 3), [0, 1], m.ones(3, 2), [1, 51], [51, 0]),
        m.einsum(m.ones(4, 2, 3), [..., 1], m.arange(3.0), [1]),
    ],
    "the first argument by name": lambda m: [
        m.sum(input=m.ones(2, 3), dim=1), m.linalg.vector_norm(m.ones(2, 3), dim=1),
        m.addmv(input=m.ones(2), mat=m.ones(2, 2), vec=m.ones(2)),
    ],
    "out= in weft.linalg": lambda m: _written(
        m, m.linalg.vector_norm, m.zeros(2), m.arange(6.0).reshape(2, 3), dim=1
    ),
    "even steps written to a part": lambda m: [
        _written(m, f, x.narrow(1, 1, 2), 0, 3, 4) is None or x
        for f in (m.linspace, m.logspace)
        for x in [m.zeros(2, 3)]
    ],
    "even steps of complex numbers": lambda m: m.view_as_real(m.linspace(1, 3 + 2j, 3)),
    "places as often as is said": lambda m: m.repeat_interleave(m.tensor([2, 0, 3])),
    "large arguments of Bessel functions": lambda m: [
        f(m.tensor([-1.7e308, -1e4, 0.0, 0.5, 1.7e308], dtype=m.float64))
        for f in (m.special.i0, m.special.i1)
    ],
    "a mask that is larger": lambda m: m.zeros(1, 3).masked_scatter(
        m.tensor([[True, False, True], [False, True, True]]), m.arange(1.0, 9)
    ),
    "numbers of known bounds": lambda m: [
        m.randint(high=1, size=(2, 3)), m.ones(2, dtype=m.int8).random_(127, None)
    ],
    "whole complex numbers": lambda m: (float(m.tensor(2 + 0j)), int(m.tensor(3 + 0j))),
    "complex from integers": lambda m: m.view_as_real(m.tensor([1, 2]).cfloat()),
}  # fmt: skip


@pytest.mark.parametrize("what", SAME)
def test_the_same(what):
    same(SAME[what](wf), SAME[what](torch))


@pytest.mark.filterwarnings("ignore:cov")
def test_covariances_of_nothing():
    def found(m):
        empty = [m.zeros(0, 3), m.zeros(0, 0), m.zeros(0)]
        return [x.cov() for x in empty], empty[0].corrcoef()

    same(found(wf), found(torch))


@pytest.mark.parametrize("p", [0.5, 1.5, 3.0])
def test_distances_of_equal_rows_have_slopes(p):
    agree(lambda m, x: m.cdist(x, x[:2], p), np.float32([[1, 2], [1, 2], [3, 2]]))


def test_complex_numbers_become_real_with_a_warning():
    for m in (torch, wf):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = m.zeros(2).copy_(m.tensor([1 + 2j, 3]))
        assert found.tolist() == [1, 3]
        assert m is torch or ["imaginary" in str(w.message) for w in told] == [True]  # once
    with pytest.warns(UserWarning, match="imaginary"):
        assert wf.tensor([1 + 2j]).to(wf.int32).tolist() == [1]
    with pytest.raises(wf.errors.DTypeError, match="does not fit"):
        wf.zeros(1).add_(wf.tensor([1j]))


def test_the_older_spelling_of_fused_products():
    rows, wide = np.float32([[1, 2], [3, 4]]), np.float32([[[1, 2], [3, 5]]])
    cases = {
        "addcmul": (rows, 2, rows, rows), "addcdiv": (rows, 2, rows, rows),
        "addmm": (2, rows, 3, rows, rows), "addbmm": (2, rows, wide, wide),
        "baddbmm": (2, wide, 0.5, wide, wide), "addmv": (2, rows[0], rows, rows[1]),
    }  # fmt: skip
    for name, given in cases.items():
        names = ("value",) if name.startswith("addc") else ("beta", "alpha")
        with pytest.warns(UserWarning, match="by name"):
            arguments = [wf.tensor(x) if isinstance(x, np.ndarray) else x for x in given]
            found = getattr(wf, name)(*arguments)
        tensors = [torch.tensor(x) for x in given if isinstance(x, np.ndarray)]
        plain = [x for x in given if not isinstance(x, np.ndarray)]
        options = dict(zip(names, plain, strict=False))
        same(found, getattr(torch, name)(*tensors, **options))


class Asked:
    """An operand that knows what to do with tensors."""

    def __radd__(self, other):
        return "radd"

    __rmul__ = __rsub__ = __rpow__ = __rtruediv__ = __rmatmul__ = __rand__ = __rlshift__ = __radd__


@pytest.mark.parametrize("name", [
    "add", "mul", "sub", "truediv", "pow", "matmul", "and_", "lshift", "iadd", "imul", "ipow",
])  # fmt: skip
def test_operators_ask_the_other_operand(name):
    for m in (torch, wf):
        assert getattr(operator, name)(m.ones(2, 2, dtype=m.int64), Asked()) == "radd"
        assert (m.ones(2) == Asked()) is False
        assert (m.ones(2) != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        wf.ones(2) - "one"


WRONG = {
    "no extreme along an empty axis": lambda m: m.zeros(2, 0, 4).max(1),
    "no place along an empty axis": lambda m: m.zeros(2, 0, 4).argmin(1),
    "no median along an empty axis": lambda m: m.zeros(2, 0).median(1),
    "a byte that is too large": lambda m: m.tensor([300], dtype=m.uint8),
    "a mask of bytes": lambda m: m.ones(2).masked_fill(m.tensor([1, 0], dtype=m.uint8), 2),
    "a selection by bytes": lambda m: m.ones(2).masked_select(m.tensor([1, 0], dtype=m.uint8)),
    "counting a matrix": lambda m: m.bincount(m.tensor([[1, 1]])),
    "weights of another number": lambda m: m.bincount(m.tensor([1, 1]), m.tensor([1.0])),
    "a tensor instead of several": lambda m: m.hstack(m.ones(2, 2)),
    "parts that are not equal": lambda m: m.hsplit(m.ones(2, 3), 2),
    "parts along no axis": lambda m: m.dsplit(m.ones(2, 3), 1),
    "parts of a scalar": lambda m: m.tensor_split(m.tensor(1.0), 2),
    "text in a tensor": lambda m: "one" in m.ones(2),
    "bounds with a fraction": lambda m: m.zeros(3)[0.5:2],
    "too many subscripts": lambda m: m.zeros(3, 3).__setitem__((1, 1, (0, 1)), 1),
    "shapes of parts": lambda m: m.broadcast_shapes(1.5),
    "a size beyond memory": lambda m: m.empty(0).resize_(1 << 60, 100),
    "no function": lambda m: m.ones(2).map_(m.ones(2), "text"),
    "slopes through Python": lambda m: m.ones(2, requires_grad=True).apply_(abs),
    "a list to share": lambda m: m.asarray([1.0], copy=False),
    "another type to share": lambda m: m.asarray(np.zeros(2), dtype=m.float32, copy=False),
    "no buffer": lambda m: m.frombuffer([1], dtype=m.int8),
    "bytes that are not enough": lambda m: m.frombuffer(b"abc", dtype=m.int16),
    "random numbers beyond the type": lambda m: m.ones(2, dtype=m.int8).random_(0, 200),
    "no axes to flip": lambda m: m.ones(2, 2).flip(),
    "rows of a scalar": lambda m: m.flipud(m.tensor(1)),
    "a turn in one axis": lambda m: m.ones(2, 2).rot90(1, [0, 0]),
    "a factor with a fraction": lambda m: m.add(m.tensor([1]), 1, alpha=1.5),
    "integers as complex parts": lambda m: m.complex(m.tensor([1]), m.tensor([1])),
    "parts of two types": lambda m: m.complex(m.ones(1), m.ones(1).double()),
    "division of integers": lambda m: m.addcdiv(m.ones(1), m.tensor([1]), m.tensor([2])),
    "powers of a matrix": lambda m: m.vander(m.ones(2, 2)),
    "a real number from a complex one": lambda m: float(m.tensor(1j)),
}


@pytest.mark.parametrize("what", WRONG)
def test_the_same_kind_of_error(what):
    with pytest.raises(Exception) as theirs:
        WRONG[what](torch)
    kinds = tuple(k for k in theirs.type.__mro__ if k in (IndexError, ValueError, TypeError))
    with pytest.raises(kinds or RuntimeError) as ours:
        WRONG[what](wf)
    assert isinstance(ours.value, wf.errors.WeftError)


def test_a_capsule_is_taken_back():
    x = wf.arange(3.0)
    y = from_dlpack(to_dlpack(x))
    y[0] = 5
    assert y.tolist() == x.tolist() == [5, 1, 2]
    assert wf.asarray(to_dlpack(x)).tolist() == [5, 1, 2]


@pytest.mark.parametrize("name", [
    "SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", "Rprop", "Adamax", "ASGD", "NAdam",
    "RAdam",
])  # fmt: skip
def test_complex_parameters_are_trained_alike(name):
    found = []
    for m in (wf, torch):
        p = m.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]], requires_grad=True)
        optimizer = getattr(m.optim, name)([p], lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            ((p * p.conj()).real.sum() + (p * (1 + 1j)).abs().sum()).backward()
            optimizer.step()
        found.append(m.view_as_real(p).detach())
    same(*found, rtol=1e-4)


@pytest.mark.parametrize("equal_nan", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_are_close_by_their_distance(dtype, equal_nan):
    nan, inf = complex("nan"), complex("inf")
    left = [1 + 1j, nan, inf, 1j, complex(1, np.nan), 2.0]
    right = [1 + 1.0000001j, nan, inf, 2j, 1.0, 2 + 1j]
    found = [
        m.isclose(
            *(m.tensor(v, dtype=getattr(m, dtype)) for v in (left, right)), equal_nan=equal_nan
        )
        for m in (wf, torch)
    ]
    assert found[0].tolist() == found[1].tolist()


def test_a_device_is_of_a_class():
    for m in (wf, torch):
        assert isinstance(m.ones(2).device, m.device)
        assert m.device("cpu") == m.device(m.ones(2).device) == m.device(type="cpu")
        assert hash(m.device("cpu")) == hash(m.ones(2).device)
        assert m.device("cpu") != "cpu"
        assert str(m.device("cpu", 1)) == str(m.device("cpu:1")) == "cpu:1"
        for wrong in ("nowhere", "cpu:", "cpu:-1", None):
            with pytest.raises((RuntimeError, TypeError, ValueError)):
                m.device(wrong)
    with pytest.raises(wf.errors.ConfigError, match="got 'cpu:0' and index 1"):
        wf.device("cpu:0", 1)


@pytest.mark.parametrize("right", [False, True])
def test_nan_is_sought_behind_all_numbers(right):
    rows, values = [[1.0, 2.0, 3.0], [0.0, 1.0, 1.5]], [[np.nan, 2.0], [1.0, np.nan]]
    open_rows = [[1.0, 2.0, np.nan], [0.0, 1.0, np.nan]]
    low = [[np.nan, 0.5], [-1.0, np.nan]]
    pairs = [(rows[0], values[0]), (rows, values), (open_rows[0], low[0]), (open_rows, low)]
    for sequence, wanted in pairs * 3:  # compiled the third time
        found = [
            m.searchsorted(m.tensor(sequence), m.tensor(wanted), right=right).tolist()
            for m in (wf, torch)
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize("p", [1, -1, "fro", "nuc", np.inf, -np.inf])
def test_the_condition_of_what_has_no_inverse_is_infinite(p):
    zeros = wf.stack([wf.zeros(2, 2), 2 * wf.eye(2)])
    found = wf.linalg.cond(zeros, p).tolist()
    assert found[0] == np.inf
    assert found[1] == pytest.approx(torch.linalg.cond(2 * torch.eye(2), p).item())


def test_parts_are_told_by_any_of_their_names():
    for options in ({"indices": (2, 3)}, {"sections": 4}):
        found = [[y.tolist() for y in m.tensor_split(m.arange(6), **options)] for m in (wf, torch)]
        assert found[0] == found[1]
    places = wf.tensor_split(wf.arange(6), tensor_indices_or_sections=wf.tensor([1, 2]))
    assert [y.tolist() for y in places] == [[0], [1], [2, 3, 4, 5]]
    for options in ({}, {"sections": 2, "indices": (1,)}):
        with pytest.raises(TypeError, match="expected either places or a number of parts"):
            wf.tensor_split(wf.arange(6), **options)


def test_weighted_covariances_of_complex_numbers():
    x = [[1 + 1j, 2, 3j], [2 - 1j, 0, 1]]
    found = [
        m.cov(m.tensor(x), fweights=m.tensor([1, 2, 3]), aweights=m.tensor([0.5, 1, 2])).tolist()
        for m in (wf, torch)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("include_self", [True, False])
def test_means_of_scattered_complex_numbers(include_self):
    found = [
        m.tensor([5 + 1j, -7, 3])
        .scatter_reduce(
            0, m.tensor([0, 1, 1]), m.tensor([2j, -2 + 0j, 1]), "mean", include_self=include_self
        )
        .tolist()
        for m in (wf, torch)
    ]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_means_of_more_scattered_numbers_than_their_type_holds():
    places, source = wf.zeros(400, dtype=wf.int64), (wf.arange(400) < 200).byte()
    mean = wf.zeros(1, dtype=wf.uint8).scatter_reduce(0, places, source, "mean", include_self=False)
    assert mean.dtype is wf.uint8 and mean.tolist() == [0]  # 200 / 400; not 200 / 144


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_an_axis_without_elements_is_out_of_range(name):
    for m in (wf, torch):
        for dim in (0, (1, 0)):
            with pytest.raises(IndexError):
                getattr(m, name)(m.ones(0, 2), dim)
        assert getattr(m, name)(m.ones(0, 2), 1).tolist() == []


def test_positions_are_written_to_integers_only():
    for m in (wf, torch):
        out = m.zeros(0, dtype=m.int64)
        assert m.nonzero(m.tensor([0, 2, 3]), out=out).tolist() == out.tolist() == [[1], [2]]
        for dtype in (m.float32, m.int32):
            with pytest.raises(RuntimeError):
                m.nonzero(m.ones(2), out=m.zeros(0, dtype=dtype))


def test_every_nan_is_unique():
    found = [
        [y.tolist() for y in m.unique(x, return_inverse=True, return_counts=True)]
        for m in (wf, torch)
        for x in [m.tensor([np.nan, 2.0, np.nan, 1.0, 2.0])]
    ]
    np.testing.assert_equal(*found)
    np.testing.assert_equal(
        wf.unique(wf.tensor([np.nan, 1, np.nan]), dim=0).tolist(), [1] + [np.nan] * 2
    )


def test_elements_that_out_loses_are_warned_of():
    for m in (wf, torch):
        with pytest.warns(UserWarning):
            assert m.add(m.ones(3), 1, out=m.zeros(2)).tolist() == [2, 2, 2]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert m.add(m.ones(3), 1, out=m.zeros(0)).tolist() == [2, 2, 2]
