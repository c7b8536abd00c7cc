"""One check for every layer: values, gradients and state equal PyTorch's."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft import nn
from weft.eager.tensor.autograd.autograd import backward as run_backward

torch = __import__("pytest").importorskip("torch")


class Draw:
    """Random choices for a case."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def size(self, low=1, high=6):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *options):
        return options[self.rng.integers(len(options))]

    def flag(self):
        return bool(self.rng.integers(2))

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def uniform(self, *shape, low=0.0, high=1.0):
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def ints(self, high, *shape):
        return self.rng.integers(0, high, shape)

    def signs(self, *shape):
        return self.rng.choice([-1.0, 1.0], shape).astype(np.float32)


class Cases(dict):
    """Functions that draw a case, by name."""

    def add(self, function):
        self[function.__name__] = function
        return function


def lead(d):
    """Leading dimensions."""
    return tuple(d.size(1, 4) for _ in range(d.size(0, 3)))


def flat(output):
    """Tensors of nested tuples, in order."""
    if output is None:
        return []
    if isinstance(output, tuple | list):
        return [y for part in output for y in flat(part)]
    return [output]


def array(x):
    if isinstance(x, wf.Tensor):
        return x.detach().numpy()
    return x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)


def tensors(xs, make):
    found = []
    for x in xs:
        if isinstance(x, np.ndarray):
            y = make(x)
            if x.dtype == np.float32:
                y.requires_grad_()
            found.append(y)
        elif isinstance(x, tuple):
            found.append(tuple(tensors(x, make)))
        else:
            found.append(x)
    return found


def close(ours, theirs, what, rtol=1e-4, atol=1e-5):
    ours, theirs = array(ours), array(theirs)
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    assert ours.dtype == theirs.dtype, (what, ours.dtype, theirs.dtype)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=what)


def check(make, inputs, kwargs=None, rtol=1e-4, atol=2e-5, gradients=True, training=None):
    """Compare `make(nn)(*inputs)` of both.

    Args:
        make: from the namespace (`torch.nn` or `weft.nn`) to a module or a function.
    """
    theirs, ours = make(torch.nn), make(nn)
    is_module = isinstance(theirs, torch.nn.Module)
    if is_module:
        load(ours, theirs)
        if training is not None:
            theirs.train(training)
            ours.train(training)
    t_in = tensors(inputs, lambda x: torch.from_numpy(x.copy()))
    w_in = tensors(inputs, lambda x: wf.tensor(x.copy()))
    kwargs = kwargs or {}
    t_kw = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    w_kw = {k: wf.tensor(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    t_out, w_out = flat(theirs(*t_in, **t_kw)), flat(ours(*w_in, **w_kw))
    assert len(t_out) == len(w_out)
    for i, (a, b) in enumerate(zip(w_out, t_out, strict=True)):
        close(a, b, f"output {i}", rtol, atol)
    if gradients:
        backward(t_out, w_out)
        pairs = zip(flat(w_in), flat(t_in), strict=True)
        for i, (a, b) in enumerate(pairs):
            same_gradient(a, b, f"gradient of input {i}", rtol, atol)
    if is_module:
        for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
            if gradients:
                same_gradient(a, b, f"gradient of {name}", rtol, atol)
        for (name, a), b in zip(ours.named_buffers(), theirs.buffers(), strict=True):
            close(a, b, f"buffer {name}", rtol, atol)
    return ours


def load(ours, theirs):
    """Keys and shapes are the same, and the state loads."""
    state = theirs.state_dict()
    mine = ours.state_dict()
    assert list(mine) == list(state)
    assert [tuple(v.shape) for v in mine.values()] == [tuple(v.shape) for v in state.values()]
    ours.load_state_dict({k: v.numpy().copy() for k, v in state.items()})


def backward(t_out, w_out):
    rng = np.random.default_rng(0)
    ys, gs = [], []
    total = 0
    for a, b in zip(w_out, t_out, strict=True):
        if b.requires_grad:
            g = rng.standard_normal(tuple(b.shape)).astype(np.float32)
            ys.append(a)
            gs.append(wf.tensor(g))
            total = total + (b * torch.from_numpy(g)).sum()
    total.backward()
    run_backward(ys, gs)


def same_gradient(ours, theirs, what, rtol, atol):
    grad = getattr(theirs, "grad", None)
    if grad is None:
        got = getattr(ours, "grad", None)
        assert got is None or not array(got).any(), f"{what}: expected none"
    else:
        assert ours.grad is not None, f"{what}: missing"
        scale = max(1.0, float(grad.abs().max()))
        close(ours.grad, grad, what, rtol, atol * scale)
