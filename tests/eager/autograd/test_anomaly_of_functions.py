"""Anomaly mode covers gradients of `weft.func` and the inside of traced functions."""

import pytest

import weft as wf
from weft import errors, func
from weft.autograd import detect_anomaly


def steep(x):
    return (wf.sqrt(x * 0) * 0).sum()  # 0 / 0 in its gradient


def masked(x):
    return wf.where(x > 0, wf.log(x), x * 0).sum()  # a NaN that no gradient reads


def eager(x):
    return wf.autograd.grad(steep(x), x)[0]


STEEP = {
    "grad": lambda x: func.grad(steep)(x[0]),
    "vmap": func.vmap(func.grad(steep)),
    "vmap of vmap": lambda x: func.vmap(func.vmap(func.grad(steep)))(x[None]),
    "jit": lambda x: func.jit(func.grad(steep))(x[0]),
    "jacrev": lambda x: func.jacrev(lambda x: wf.sqrt(x * 0) * 0)(x[0]),
    "hessian": lambda x: func.hessian(steep)(x[0]),
    "vjp": lambda x: func.vjp(steep, x[0])[1](wf.tensor(1.0))[0],
    "eager in vmap": func.vmap(eager),
}


@pytest.mark.parametrize("name", list(STEEP))
def test_what_is_no_number_in_a_gradient_is_found(name):
    x = wf.ones(2, 2, requires_grad=name == "eager in vmap")
    assert STEEP[name](x).isnan().any()
    with detect_anomaly(), pytest.raises(errors.GradientError) as found:
        STEEP[name](x)
    text = str(found.value)
    assert text.startswith("backward: nan comes out of divide") and "in the backward pass" in text


@pytest.mark.parametrize("wrap", [lambda f: f, func.jit, func.vmap])
def test_what_no_gradient_reads_is_not(wrap):
    x = wf.tensor([[-1.0, 1.0]])
    with detect_anomaly():
        assert wrap(func.grad(masked))(x).tolist() == [[0, 1]]
        g, y = wrap(lambda x: (func.grad(masked)(x), wf.log(x)))(x)
        assert g.tolist() == [[0, 1]] and y.isnan().any()


def test_find_nan_looks_into_traced_functions():
    def inside(x):
        return wf.log(x - 2) * 2  # here

    line = inside.__code__.co_firstlineno + 1
    for wrap in (func.jit, func.vmap, func.checkpoint):
        report = wf.find_nan(lambda wrap=wrap: wrap(inside)(wf.ones(2)).sum())
        assert report.nan.op == "log" and report.nan.source.line == line
