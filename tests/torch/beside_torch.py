"""A random program in PyTorch and in Weft: values and gradients."""

import warnings

import numpy as np
import torch
from drawn_program import Program

import weft as wf
from weft.errors import WeftError

# Relative to the largest value: some dozens of operations, gains of a few each.
CLOSE = {"float32": 2e-3, "float64": 1e-8}


def weighted(library, values):
    """A scalar on which every element of what needs gradients has its own influence."""
    total = None
    for y in values:
        if y.requires_grad and y.is_floating_point():
            weights = np.cos(np.arange(y.numel()) + 1.0).reshape(tuple(y.shape))
            part = (y.double() * library.tensor(weights)).sum()
            total = part if total is None else total + part
    return total


def outcome(program, library):
    """Values, and gradients of the leaves (None where the program cannot be differentiated)."""
    leaves = program.leaves(library)
    values = program.run(library, leaves)
    loss = weighted(library, values)
    if loss is None:
        return values, []
    try:
        loss.backward()
    except (RuntimeError, WeftError):
        return values, None
    return values, [leaf.grad for leaf in leaves]


def compare(close, ours, theirs, what):
    assert len(ours) == len(theirs)
    for i, (x, y) in enumerate(zip(ours, theirs, strict=True)):
        if x is None or y is None:
            # A gradient of zeros may be absent.
            assert x is None or not x.numpy(force=True).any(), what
            assert y is None or not y.numpy(force=True).any(), what
            continue
        a, b = x.numpy(force=True), y.numpy(force=True)
        assert a.shape == b.shape and a.dtype == b.dtype, (
            what,
            i,
            a.shape,
            b.shape,
            a.dtype,
            b.dtype,
        )
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
        np.testing.assert_allclose(a, b, rtol=close, atol=close * scale, err_msg=f"{what} {i}")


def check(seed, steps, runs):
    program = Program(seed, steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, slopes = outcome(program, torch)
        # Results from integers are float32 in any program.
        close = max(CLOSE.get(str(y.dtype).removeprefix("torch."), 0) for y in values)
        close = max(close, CLOSE[program.dtype])
        for _ in range(runs):
            try:
                found, gradients = outcome(program, wf)
                compare(close, found, values, "value")
            except WeftError as error:
                # A value that a gradient may read is kept for it, but not through every change.
                assert "was changed in place after it was used" in str(error)
                return
            if slopes is not None:
                assert gradients is not None, "PyTorch differentiates this program"
                compare(close, gradients, slopes, "gradient")
