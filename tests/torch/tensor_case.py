"""One function in PyTorch and in Weft: results, dtypes, shapes and gradients agree."""

import numpy as np
import torch
from hypothesis import strategies as st

import weft as wf

DTYPES = {
    torch.float32: "float32", torch.float64: "float64", torch.int64: "int64", torch.int32: "int32",
    torch.bool: "bool", torch.uint8: "uint8", torch.int8: "int8", torch.int16: "int16",
    torch.bfloat16: "bfloat16", torch.float16: "float16", torch.complex64: "complex64",
    torch.complex128: "complex128",
}  # fmt: skip


def leaves(result):
    """The tensors and numbers in nested tuples."""
    if isinstance(result, list | tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def as_array(x):
    if isinstance(x, torch.Tensor):
        return x.detach().numpy()
    return x.numpy(force=True) if isinstance(x, wf.Tensor) else np.asarray(x)


def same(ours, theirs, rtol=1e-4, atol=1e-5):
    """Two results agree in structure, element type, shape and values."""
    ours, theirs = leaves(ours), leaves(theirs)
    assert len(ours) == len(theirs)
    for x, y in zip(ours, theirs, strict=True):
        if isinstance(y, torch.Tensor):
            assert x.dtype.name == DTYPES[y.dtype], (x.dtype, y.dtype)
            assert tuple(x.shape) == tuple(y.shape), (x.shape, y.shape)
        np.testing.assert_allclose(as_array(x), as_array(y), rtol=rtol, atol=atol)


def weighted(results):
    """A scalar that depends on every element of floating results, each in its own way."""
    total = None
    for y in leaves(results):
        if getattr(y, "requires_grad", False):
            size = 1
            for d in y.shape:
                size *= d
            weights = np.cos(np.arange(size, dtype=np.float64) + 1).reshape(tuple(y.shape))
            if isinstance(y, torch.Tensor):
                part = (y.double() * torch.from_numpy(weights)).sum()
            else:
                part = (y.double() * wf.from_numpy(weights)).sum()
            total = part if total is None else total + part
    return total


def agree(function, *arrays, grad=True, rtol=1e-4, atol=1e-5):
    """`function(module, *tensors)` gives the same for `torch` and `weft`, and the same slopes."""
    ours = [wf.tensor(a) for a in arrays]
    theirs = [torch.tensor(a) for a in arrays]
    floats = [i for i, a in enumerate(arrays) if np.asarray(a).dtype.kind == "f"]
    for i in floats if grad else ():
        ours[i].requires_grad_()
        theirs[i].requires_grad_()
    x, y = function(wf, *ours), function(torch, *theirs)
    same(x, y, rtol, atol)
    expected = weighted(y) if grad else None
    if expected is None:
        return
    expected.backward()
    found = weighted(x)
    assert found is not None, "the result needs no gradient, but PyTorch's does"
    found.backward()
    for i in floats:
        slope = theirs[i].grad
        if slope is None:
            assert ours[i].grad is None or not ours[i].grad.numpy().any()
        else:
            np.testing.assert_allclose(
                ours[i].grad.numpy(), slope.numpy(force=True), rtol=10 * rtol, atol=10 * atol
            )


shapes = st.lists(st.integers(1, 4), max_size=3).map(tuple)
seeds = st.integers(0, 1000)


def draw(shape, low=-2.0, high=2.0, seed=0, dtype=np.float32):
    """Numbers between two limits that are not close to each other, nor to 0."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    steps = (rng.permutation(size) + 0.5) / max(size, 1)
    return (low + (high - low) * steps).reshape(shape).astype(dtype)
