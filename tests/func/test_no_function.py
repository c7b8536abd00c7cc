"""Every transformation refuses what is no function, by its own name, when it is made."""

import pytest

import weft as wf
from weft import func
from weft.errors import DTypeError, GradientError

TRANSFORMATIONS = [
    "grad", "value_and_grad", "grad_and_value", "elementwise_grad", "jacobian", "jacfwd", "vmap",
    "jit", "checkpoint", "custom_vjp", "make_vjp", "pmap",
]  # fmt: skip


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("wrong", [3, "x", [[1], [2, 3]]])
def test_transformations_take_functions(name, wrong):
    with pytest.raises(DTypeError, match=rf"^{name}: expected a function, got "):
        getattr(func, name)(wrong)


@pytest.mark.parametrize("name", ["vjp", "jvp", "hvp", "vhp", "hessian", "jacobian"])
def test_functions_of_autograd_take_functions(name):
    x = wf.tensor([1.0])
    arguments = (x,) if name in ("hessian", "jacobian") else (x, x)
    with pytest.raises(DTypeError, match=rf"^{name}: expected a function, got \[1\]"):
        getattr(wf.autograd.functional, name)([1], *arguments)


@pytest.mark.parametrize("given", [None, [], [wf.ones(1, 2), wf.ones(1, 2)]])
def test_batched_gradients_need_as_many_cotangents_as_outputs(given):
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(GradientError, match=r"^grad: (is_grads_batched: )?expected "):
        wf.autograd.grad(x * x, x, given, is_grads_batched=True)
