"""Segments and sparse matrices: values against NumPy, gradients, errors."""

import doctest

import numpy as np
import pytest

import weft as wf
from weft import sparse
from weft.errors import DTypeError, OutOfRangeError, ShapeError

IDS = np.array([2, 0, 2, 4, 0, 2])
X = np.array([[1.0, 8], [2, 7], [3, 6], [4, 5], [5, 4], [6, 3]])
REDUCTIONS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_segments_are_numpys_reductions(name, is_sorted):
    order = np.argsort(IDS, kind="stable") if is_sorted else np.arange(6)
    x, ids = wf.tensor(X[order], requires_grad=True), wf.tensor(IDS[order])
    function = getattr(sparse, f"segment_{name}")
    y = function(x, ids, indices_are_sorted=is_sorted)
    expected = np.full((5, 2), float(name == "prod"))
    for i in set(IDS.tolist()):
        expected[i] = REDUCTIONS[name](X[i == IDS], axis=0)
    np.testing.assert_allclose(y.detach(), expected)
    assert wf.autograd.gradcheck(lambda x: function(x, ids, 5, is_sorted), (x,))


@pytest.mark.parametrize("is_sorted", [False, True])
def test_softmax_by_segment(is_sorted):
    order = np.argsort(IDS, kind="stable") if is_sorted else np.arange(6)
    x, ids = wf.tensor(X[order], requires_grad=True), IDS[order]
    y = sparse.segment_softmax(x, wf.tensor(ids), 7, is_sorted)
    for i in set(ids.tolist()):
        expected = wf.softmax(x[ids == i].detach(), 0)
        np.testing.assert_allclose(y[ids == i].detach().numpy(), expected.numpy())
    ids = wf.tensor(ids)
    assert wf.autograd.gradcheck(lambda x: sparse.segment_softmax(x, ids, 5, is_sorted), (x,))


def test_sparse_products_and_their_gradients():
    random = np.random.default_rng(0)
    indptr, indices = wf.tensor([0, 2, 2, 5]), wf.tensor([3, 1, 0, 3, 2])
    values = wf.tensor(random.standard_normal(5), requires_grad=True)
    x = wf.tensor(random.standard_normal((4, 6)), requires_grad=True)
    a = wf.sparse_csr_tensor(indptr, indices, values, size=(3, 4))
    np.testing.assert_allclose((a @ x).detach(), (a.to_dense() @ x).detach())

    def product(values, x):
        return sparse.csr_matmul(indptr, indices, values, x)

    assert wf.autograd.gradcheck(product, (values, x))
    assert wf.autograd.gradgradcheck(product, (values, x))
    left = wf.tensor(random.standard_normal((3, 6)))
    whole = a.to_dense() * 2 + (left @ x.T) * 3
    found = sparse.sampled_addmm(a, left, x.T, beta=2, alpha=3)
    kept = found.to_dense() != 0
    np.testing.assert_allclose(found.to_dense().detach(), wf.where(kept, whole, 0.0).detach())
    assert kept.sum() == 5


def _coordinates(values):
    where = wf.tensor([[2, 0, 2, 1], [3, 1, 3, 0]])  # one place twice
    return wf.sparse_coo_tensor(where, values, (3, 4))


@pytest.mark.parametrize(
    "form",
    [
        lambda a: a, lambda a: a.coalesce(), lambda a: a.to_sparse_csr(), lambda a: a.t().t(),
        lambda a: (a * 4 - a * 2) / 2, lambda a: (a + a).mul(0.5), lambda a: a.neg().neg(),
        lambda a: a.clone().to(wf.float64), lambda a: a.to_dense().to_sparse(),
    ],
)  # fmt: skip
def test_sparse_tensors_are_their_dense_forms(form):
    values, x = wf.tensor([1.0, 2.0, 3.0, 4.0], dtype=wf.float64), wf.tensor(X.reshape(4, 3))
    dense = np.zeros((3, 4))
    dense[2, 3], dense[0, 1], dense[1, 0] = 4, 2, 4
    a = form(_coordinates(values))
    assert isinstance(a, wf.Tensor) and a.layout in (wf.sparse_coo, wf.sparse_csr)
    np.testing.assert_array_equal(a.to_dense(), dense)
    for product in (a @ x, wf.mm(a, x), wf.matmul(a, x), sparse.mm(a, x), a.mm(x)):
        assert product.layout is wf.strided
        np.testing.assert_allclose(product, dense @ x.numpy())
    np.testing.assert_allclose(wf.exp(a), np.exp(dense))  # has no sparse form
    np.testing.assert_allclose(sparse.sum(a, 1), dense.sum(1))
    wf.mm(wf.ones(3, 4), wf.ones(4, 3))  # a call on dense tensors is another
    assert wf.mm(a, x).tolist() == (dense @ x.numpy()).tolist()

    def output(values, x):
        return form(_coordinates(values)) @ x

    assert wf.autograd.gradcheck(output, (values.requires_grad_(), x.requires_grad_()))


def test_sparse_leaves_and_what_is_refused():
    a = wf.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], requires_grad=True)
    (a @ wf.tensor([[3.0], [4.0]])).sum().backward()
    assert a.grad.is_sparse and a.grad.to_dense().tolist() == [[0, 4], [3, 0]]
    rows = sparse.softmax(a.detach() * wf.tensor([[5.0, 5], [5, 5]]), 1)
    assert rows.to_dense().tolist() == [[0, 1], [1, 0]]
    with pytest.raises(RuntimeError, match=r"values: .* call coalesce\(\) first"):
        _coordinates(wf.ones(4)).values()
    with pytest.raises(wf.errors.AliasError, match="change its values"):
        a.detach().add_(1)
    with pytest.raises(ShapeError, match=r"a value an entry, got \(2, 2\) and \(1,\)"):
        wf.sparse_coo_tensor([[0, 1], [1, 0]], [1.0], (2, 2))


def test_heads_have_values_of_their_own():
    indptr, indices = wf.tensor([0, 1, 3]), wf.tensor([2, 0, 2])
    values, x = wf.arange(6.0).reshape(3, 2), wf.arange(18.0).reshape(3, 2, 3)
    y = sparse.csr_matmul(indptr, indices, values, x)
    for head in range(2):
        one = sparse.csr_matmul(indptr, indices, values[:, head], x[:, head])
        np.testing.assert_array_equal(y[:, head], one)


def test_order_puts_equal_ids_as_they_come():
    indptr, order = sparse.csr_order(wf.tensor(IDS), 5)
    assert indptr.tolist() == [0, 2, 2, 5, 5, 6]
    assert order.tolist() == [1, 4, 0, 2, 5, 3]
    assert sparse.csr_rows(indptr, 6).tolist() == sorted(IDS.tolist())


def test_what_does_not_fit_raises():
    x, ids = wf.tensor(X), wf.tensor(IDS)
    with pytest.raises(DTypeError, match="segment_sum: expected ids of integers, got float32"):
        sparse.segment_sum(x, wf.rand(6))
    with pytest.raises(ShapeError, match=r"expected an id for each row of data, of shape \(6,\)"):
        sparse.segment_max(x, ids[:5])
    with pytest.raises(OutOfRangeError, match="expected 0 <= index < 4, got 4"):
        sparse.segment_sum(x, ids, 4).numpy()
    with pytest.raises(OutOfRangeError, match="expected sorted ids, got 0 after a larger one"):
        sparse.segment_sum(x, ids, 5, indices_are_sorted=True).numpy()
    with pytest.raises(ShapeError, match=r"expected crow_indices of shape \(3,\)"):
        wf.sparse_csr_tensor([0, 1], [0], [1.0], size=(2, 2))
    with pytest.raises(ShapeError, match="matmul: expected 2 rows"):
        wf.sparse_csr_tensor([0, 1], [0], [1.0], size=(1, 2)) @ wf.ones(3, 3)
    with pytest.raises(ShapeError, match="values: expected one an index"):
        sparse.csr_matmul(wf.tensor([0, 1]), wf.tensor([0]), wf.ones(2), wf.ones(1, 3)).numpy()


def test_examples_in_docstrings():
    assert doctest.testmod(sparse).failed == 0
