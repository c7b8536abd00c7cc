"""Functions with gradients of their own that use tensors from outside."""

from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import func
from weft.errors import GradientError

X = wf.arange(3.0)


def _scaled(x: Any, s: Any, only_backward: bool = False) -> Any:
    """`sin(x) * s`, whose gradient is twice as large."""

    @func.custom_vjp
    def f(y: Any) -> Any:
        return wf.sin(y) * (1 if only_backward else s)

    f.defvjp(
        lambda y: (wf.sin(y) * (1 if only_backward else s), y),
        lambda y, g: (g * wf.cos(y) * s * 2,),
    )
    return f(x).sum()


@pytest.mark.parametrize("only_backward", [False, True])
def test_a_traced_value_from_outside(only_backward: bool) -> None:
    expected = np.cos(np.arange(3.0)) * 2
    g = func.grad(lambda x, s: _scaled(x, s, only_backward))
    scales = wf.tensor([2.0, 3.0])
    np.testing.assert_allclose(func.jit(g)(X, scales[0]), expected * 2, rtol=1e-6)
    found = func.vmap(g, (None, 0))(X, scales)
    np.testing.assert_allclose(found, np.outer([2, 3], expected), rtol=1e-6)


def test_a_gradient_of_the_value_from_outside_is_refused() -> None:
    with pytest.raises(GradientError, match="a gradient is asked of a tensor that its functions"):
        func.grad(_scaled, 1)(X, wf.tensor(2.0)).tolist()
