"""Elements of computed tensors are read, calculated with and written without being recorded."""

import copy
import itertools
import math
import operator
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft as wf
from weft.eager.functions.indexing.element import Element, Scalar, Unfilled
from weft.eager.record.pending.state import compute_all_pending
from weft.errors import GradientError, OutOfRangeError, ShapeError

FLOATS = (
    0.0, -0.0, 1.0, -1.5, 0.1, 3.0, 1e-30, -1e-38, 1e-45, 2.0**-126, 2.0**-1022, 5e-324,
    16777219.0, 1e20, 3.4028234663852886e38, 1.7976931348623157e308, math.inf, -math.inf,
    math.nan, 1.0000001, 0.99999994,
)  # fmt: skip
INTEGERS = (0, 1, -1, 2, 7, -128, 127, 255, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 46341)
TWO = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip
ONE = (operator.neg, abs, lambda x: x**2)
NUMBERS = (0, -3, -0.0, 0.1, 2**24 + 1, 200, math.inf)


@pytest.fixture(autouse=True)
def nothing_pending():
    """Computes what other tests have left: it may read what is changed here."""
    compute_all_pending()


def values_of(dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    with np.errstate(over="ignore"):
        given = np.array(FLOATS).astype(kind) if kind.kind == "f" else np.array(INTEGERS)
    return given if kind.kind == "f" else given[given == given.astype(kind)].astype(kind)


def computed(array: np.ndarray) -> wf.Tensor:
    """A tensor with memory of its own."""
    return wf.tensor(array.copy())


def outcome(call):
    """The result of a call, or the error."""
    try:
        found = call()
        np.asarray(found)  # integer division raises when it is computed
    except Exception as error:
        return type(error), str(error).partition(" (")[0].partition(" at ")[0].rpartition(": ")[2]
    return found


def same(found, wanted) -> bool:
    """Whether a tensor or error is this one, with the same bits."""
    if not isinstance(wanted, np.ndarray) or isinstance(found, tuple):
        return isinstance(found, tuple) and found == wanted
    array = found.numpy()
    equal = array.tobytes() == wanted.tobytes() or (array != array and wanted != wanted)
    return array.dtype == wanted.dtype and array.shape == wanted.shape == () and bool(equal)


def recorded(calculate, *operands):
    """What the operation gives if it is recorded, on the first elements."""

    def call():
        found = calculate(*[x[:1].clone() if isinstance(x, wf.Tensor) else x for x in operands])
        return np.array(found.numpy()[0])

    return outcome(call)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint8", "bool"])
def test_calculated_numbers_have_the_bits_of_recorded_ones(dtype):
    values = values_of(dtype)
    xs, ys = map(np.ravel, np.meshgrid(values, values))
    a, b = computed(xs), computed(ys)
    for calculate in TWO:
        whole = outcome(lambda: calculate(a, b).numpy())  # noqa: B023
        for i in range(len(xs)):
            found = outcome(lambda: calculate(a[i], b[i]))  # noqa: B023
            wanted = np.array(whole[i]) if isinstance(whole, np.ndarray) else None
            if wanted is None:  # one of all pairs raises
                wanted = recorded(calculate, a[i : i + 1], b[i : i + 1])
            assert same(found, wanted), (calculate, xs[i], ys[i], found, wanted)
    one = computed(values)
    for calculate in ONE:
        whole = outcome(lambda: calculate(one).numpy())  # noqa: B023
        for i in range(len(values)):
            found = outcome(lambda: calculate(one[i]))  # noqa: B023
            wanted = np.array(whole[i]) if isinstance(whole, np.ndarray) else whole
            assert same(found, wanted), (calculate, values[i])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64", "uint8"])
def test_numbers_beside_elements(dtype):
    values = values_of(dtype)[1:11:2]
    for value, number, calculate in itertools.product(values, NUMBERS, TWO):
        x = computed(np.array([value]))
        for first in (False, True):
            found = outcome(lambda: calculate(number, x[0]) if first else calculate(x[0], number))  # noqa: B023
            wanted = recorded(calculate, *((number, x) if first else (x, number)))
            assert same(found, wanted), (calculate, value, number, first, found, wanted)


NUMBER = st.floats(width=32, allow_nan=False)


@at_most(200)
@given(xs=st.lists(NUMBER, min_size=4, max_size=4), calls=st.lists(st.integers(0, 3), max_size=5))
def test_chains_round_after_each_operation(xs, calls):
    array = np.array(xs, np.float32)
    x, found, wanted = computed(array), wf.tensor(xs[0]), array[0]
    found = x[0]
    with np.errstate(all="ignore"):
        for k, call in enumerate(calls):
            calculate = TWO[call]
            found = calculate(found, x[k % 4])
            wanted = calculate(wanted, array[k % 4])
    assert same(found, np.array(wanted))


def test_common_loops_record_nothing(monkeypatch):
    a, b, c = (computed(np.random.default_rng(0).random(9, np.float32)) for _ in range(3))
    x, k = computed(np.arange(12.0).reshape(3, 4)), computed(np.arange(9))
    monkeypatch.setattr(Unfilled, "__getattr__", None)  # nothing is filled
    for i in range(9):
        c[i] = -a[i] * 2 + b[i]
        c[i] += 1
        c[i] -= a[-1 - i]
        assert a[i].item() == float(a[i]) and int(x[2, 3]) == 11
        assert bool(a[i] >= 0) and max(a[i], b[i]) is not None
        assert a[k[i]].item() == a[k[i] // 2 * 2 + k[i] % 2].item() and math.sqrt(a[i] ** 2) >= 0
    x[0, 1] = x[1, 0]
    x[2][0] = x[2][1] + x[1, 2]
    assert x[2][0].item() == 15 and x[-1][3] == 11
    scale = computed(np.array(2, np.float32))
    a[0] = (a[1] * scale + scale) / (scale - a[2])
    assert type(scale > a[0]) is Scalar and type(scale) is wf.Tensor
    total = sum(e for e in a)
    assert type(total) is Scalar and type(a[0]) is Element
    assert x[0, 1].item() == 4.0


def test_an_element_is_a_view():
    x = computed(np.arange(4.0))
    e, filled = x[1], x[1]
    assert filled.shape == () and type(filled) is wf.Tensor
    x[1] = 5
    assert e.item() == filled.item() == 5
    x.add_(1)
    assert e.item() == filled.item() == 6
    e.mul_(2)
    assert x[1].item() == filled.item() == 12
    f = x[2]
    f += 1
    f *= 2
    assert x.tolist() == [1, 12, 8, 4] and type(f) is Element
    version = x._version
    x[3] = f
    assert x._version == version + 1 and x[3].item() == 8
    e.fill_(0)
    assert x[1] == 0 and filled == 0


def test_a_row_is_a_view():
    x = computed(np.arange(6.0).reshape(2, 3))
    row, filled = x[1], x[1]
    assert filled.shape == (3,) and row[0].item() == 3
    x[1, 0] = 9
    filled[1] = 8
    row[2] += 1
    assert row.tolist() == filled.tolist() == [9, 8, 6] and x.sum().item() == 3 + 23
    part = x[:, 1]
    part[1] = 0.5  # no row: it is recorded
    x[0].add_(1)
    x[0][1:] = 7
    assert x.tolist() == [[1, 7, 7], [9, 0.5, 6]]
    assert [v.item() for row in x for v in row] == [1, 7, 7, 9, 0.5, 6]
    turned = x[0]
    turned.unsqueeze_(0)
    assert turned.shape == (1, 3) and turned[0, 1].item() == 7
    turned[0, 1] = 2
    assert x[0].tolist() == [1, 2, 7]
    with pytest.raises(OutOfRangeError, match=r"x has shape \(3,\)"):
        x[0][3]
    with pytest.raises(ShapeError):
        x[0].item()
    assert bool(x[0, 0]) and np.asarray(x[1]).shape == (3,)
    deep = computed(np.arange(24.0).reshape(2, 3, 4))
    assert deep[1][2][3].item() == deep[1, 2][3].item() == deep[-1][-1, -1].item() == 23
    deep[0][1] = deep[1][1]
    deep[0][2][0] = -1
    assert deep[0].tolist() == [[0, 1, 2, 3], [16, 17, 18, 19], [-1, 9, 10, 11]]


def test_rows_of_views_and_gradients():
    w = wf.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3), requires_grad=True)
    row = w[1]
    (row[0] * row[2] + w.detach()[0][2]).backward()
    assert w.grad.tolist() == [[0, 0, 0], [5, 0, 3]]
    with pytest.raises(GradientError, match="a view of a leaf"):
        row[0] = 1.0
    with wf.no_grad():
        quiet = w[1]
        row[0] = 10.0
        w[0][1] = 20.0
    assert w.tolist() == [[0, 20, 2], [10, 4, 5]] and row[0].item() == quiet[0].item() == 10
    assert row.requires_grad and not quiet.requires_grad and not quiet[1].requires_grad
    w.detach()[0][0] = 30.0
    assert w[0, 0].item() == 30

    @wf.compile
    def f(y):
        return (y * row[1]).sum() + w[0][2]

    f(wf.ones(2)).backward()
    f(wf.ones(2)).backward()
    assert w.grad.tolist() == [[0, 0, 2], [5, 4, 3]]


def test_a_calculated_number_is_a_tensor_of_its_own():
    x = computed(np.arange(4.0, dtype=np.float32))
    y = x[1] + x[2]
    alias = y
    x[1] = 9
    y += 0.1
    assert alias is y and y.item() == np.float32(3) + np.float32(0.1)
    y.note = "kept"
    assert repr(y) == "tensor(3.1000)" and y.note == "kept"
    assert y.dtype is wf.float32 and isinstance(y, wf.Tensor) and type(y) is wf.Tensor
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nothing'"):
        _ = (x[0] + 1).nothing
    assert {x[0]: 1} and hash(y) == hash(alias)
    assert copy.deepcopy(x[1]).item() == 9 and np.asarray(x[1]) == 9


@pytest.mark.parametrize("change", ["t_", "squeeze_", "unsqueeze_", "resize_", "data"])
def test_elements_of_a_tensor_that_changes_shape(change):
    x = computed(
        np.arange(6.0).reshape(1, 6) if change == "squeeze_" else np.arange(6.0).reshape(2, 3)
    )
    key = (0, 2) if change == "squeeze_" else (1, 2)
    e = x[key]
    value = e.item()
    if change == "resize_":
        x.resize_(2)
        with pytest.raises(ShapeError, match="whose size resize_"):
            e.item()
        return
    if change == "data":
        x.data = computed(np.zeros((2, 3)))
        assert e.item() == wf.Tensor.__getitem__(x, (slice(1, 2), 2))[0].item()
        return
    getattr(x, change)(*([0] if change == "unsqueeze_" else []))
    assert e.item() == value
    x.add_(1)
    assert e.item() == value + 1
    e.sub_(1)
    assert x.sum().item() == 15 + 6 - 1


def test_gradients():
    w = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert w[0].item() == 1 and w[0].requires_grad and not w[0].is_leaf
    scale = wf.tensor(2.0, requires_grad=True)
    assert (computed(np.ones(1, np.float32))[0] * scale).requires_grad
    assert (w[0] * 2).requires_grad and not (w[0] > 1).requires_grad
    (w[0] * w[1]).backward()
    assert w.grad.tolist() == [2, 1, 0]
    with pytest.raises(GradientError, match="a leaf that requires grad"):
        w[0] = 1.0
    with wf.no_grad():
        w[0] = 4.0
        assert not (w[0] * 2).requires_grad
    assert w.tolist() == [4, 2, 3]

    c = computed(np.arange(3.0, dtype=np.float32))
    y = w[1] * c[2]
    c[2] = 7  # the product keeps the old value
    w.grad = None
    y.backward()
    assert w.grad.tolist() == [0, 2, 0]

    before, quiet = c[0], c[0]
    with wf.no_grad():
        quiet = c[0]
    c[0] = w[2] * 2
    assert before.requires_grad and not quiet.requires_grad
    assert before.item() == quiet.item() == 6
    w.grad = None
    before.backward()
    assert w.grad.tolist() == [0, 0, 2]
    c[0] = w[1] * 2
    assert before.requires_grad and not quiet.requires_grad
    assert not c[1].detach().requires_grad
    e = computed(np.ones(2, np.float32))[0].requires_grad_()
    (e * 3).backward()
    assert e.grad.item() == 3


def test_errors_are_those_of_recorded_calls():
    x = computed(np.arange(3.0))
    for key in (3, -4, (0, 0), (0, 1, 2)):
        with pytest.raises(OutOfRangeError) as read:
            x[key]
        with pytest.raises(OutOfRangeError) as written:
            x[key] = 1.0
        for error in (read, written):
            assert str(error.value).startswith("x[...]: ") and "test_element.py" in str(error.value)
    with pytest.raises(TypeError):
        _ = x[0] + "1"
    assert (x[0] == "1") is False
    with pytest.raises(ShapeError):
        x[0] = computed(np.ones(2))


def test_memory_shared_with_numpy():
    array = np.arange(3, dtype=np.float32)
    x = wf.from_numpy(array)
    e, y = x[0], x[0] + x[1]
    array[:2] = 5, 6
    assert e.item() == 5 and y.item() == 1 and (x[0] + x[1]).item() == 11
    x[1] = e
    e += 2
    assert array.tolist() == [7, 5, 2]
    own = computed(array)
    seen = own.numpy()
    own[2] = own[0] + own[1]
    assert seen.tolist() == [7, 5, 12]
    fixed = np.arange(2.0)
    fixed.flags.writeable = False
    z = wf.tensor(fixed)
    z[0] = 8.0
    assert z[0] == 8 and fixed[0] == 0


def test_threads_change_and_fill_elements():
    x = computed(np.zeros(4))
    e = x[0] + 0
    shapes: list[tuple[int, ...]] = []

    def work(i: int) -> None:
        for _ in range(300):
            x[i] += 1
            x[i] = x[i] + 1
        shapes.append(e.shape)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.tolist() == [600] * 4 and shapes == [()] * 4 and e == 0


def test_modes():
    x = computed(np.array([1.0, 2.0], np.float32))
    with wf.autocast("cpu", dtype=wf.bfloat16):
        assert (x[0] * x[1]).dtype is (x[:1].clone() * x[1:].clone()).dtype
    with wf.inference_mode():
        assert (x[0] + x[1]).is_inference() and (x[0] + x[1]).item() == 3
    assert not (x[0] + x[1]).is_inference()
    with wf.no_grad():
        x[0] = x[1] + 1
    assert x[0] == 3 and type(x[0] + 1) is Scalar  # although there was inference_mode()
    with wf.inference_mode():
        made = computed(np.ones(2, np.float32))
        e = made[0]
        e.item()
        made[1] = e * 2
    assert e.is_inference() and made.tolist() == [1, 2] and not (made[1] + 1).is_inference()
    with pytest.raises(GradientError, match="inference_mode"):
        made[0] = 1.0

    outside = x[1]

    @wf.compile
    def f(y):
        return y * outside + x[0]

    assert f(wf.ones(2)).tolist() == [5, 5] and f(wf.ones(2)).tolist() == [5, 5]
    assert (outside + 1).item() == 3 and outside.item() == 2


def test_recorded_changes_come_first():
    x = computed(np.zeros(3))
    e = x[0]
    x.add_(1)
    x[1] = x[0] + 1
    x.mul_(2)
    assert e.item() == 2 and x.tolist() == [2, 4, 2]
    y = x * 3
    x[0] = 100.0
    assert y.tolist() == [6, 12, 6] and e == 100
    with pytest.raises(OutOfRangeError):
        x[wf.tensor(5)]
    k = computed(np.array([2]))
    assert x[k[0]].item() == 2 and [1, 2, 3][k[0]] == 3
    with pytest.raises(TypeError, match="expected an integer tensor as an index"):
        [1, 2, 3][x[0] * 0]
