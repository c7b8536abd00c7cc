"""gradcheck: compares derivatives with central differences."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.autograd.finite_difference import Comparison, Function, positions, tensors_of
from weft.autograd.gradient import grad
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import GradcheckError
from weft.ir.node import at_user_line

__all__ = ["gradcheck", "gradgradcheck"]


def gradcheck(
    func: Function, inputs: Any, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False,
) -> bool:  # fmt: skip
    """Whether the derivatives of `func` agree with central differences.

    For complex numbers, real and imaginary parts are perturbed and compared separately.

    Args:
        func: maps tensors to one or several tensors.
        inputs: its arguments. Those that require grad are perturbed in place, and should be float64
            or complex128; a warning tells if they are not.
        eps: the perturbation of each element.
        raise_exception: raise if they do not agree, instead of returning `False`.
        nondet_tol: how far two backward passes may differ.
        check_undefined_grad: whether gradients of all results are the sum of those of each alone.
        check_grad_dtypes: whether gradients have the dtypes of their inputs.
        check_batched_grad: whether batched backward passes (`vmap`) agree.
        check_batched_forward_grad: whether batched forward-mode passes agree.
        check_forward_ad: whether tangents agree, too.
        check_backward_ad: whether gradients do.
        fast_mode: compare along one random direction, instead of for each pair of elements.

    Raises:
        GradcheckError: a derivative differs.
        GradientError: no input requires grad.
        AssertionError: neither gradients nor tangents are checked, or the shapes or dtypes of
            outputs depend on the values of inputs.

    Example:
        >>> import weft as wf
        >>> x = wf.rand(3, dtype=wf.float64, requires_grad=True)
        >>> wf.autograd.gradcheck(wf.tanh, x, check_forward_ad=True)
        True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            f"gradcheck: expected check_backward_ad, check_forward_ad or both{at_user_line()}"
        )
    args = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    check = Comparison(func, args, positions(args), eps, atol, rtol, fast_mode)
    try:
        check.numbers()
        if check_backward_ad:
            check.backward()
            check.repeated(nondet_tol, check_grad_dtypes)
            check.linear(check_undefined_grad)
        if check_forward_ad:
            check.forward(check_batched_forward_grad)
        if check_backward_ad and check_batched_grad:
            check.batched()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Function, inputs: Any, grad_outputs: Any = None, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True, fast_mode: bool = False,
    gen_non_contig_grad_outputs: bool = False,
) -> bool:  # fmt: skip
    """`gradcheck` of the gradients of `func`, with respect to its inputs and the cotangents.

    Args:
        grad_outputs: the cotangents, random by default.
        gen_non_contig_grad_outputs: whether random ones are not contiguous.
        check_fwd_over_rev: whether to check the gradients' tangents.
        check_rev_over_rev: whether to check their gradients.
    """
    args = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    places = positions(args)
    ys = [y for y in tensors_of(func(*args)) if y.lazy.tracked]
    random = np.random.default_rng(0)

    def drawn(y: Any) -> Any:
        parts = random.uniform(0.5, 1.5, (2, *y.shape))
        array = np.asarray(parts[0] + 1j * parts[1] if y.is_complex() else parts[0])
        g = wrap(leaf(array)).to(y.dtype)
        if gen_non_contig_grad_outputs and y.shape:
            g = g.repeat_interleave(2, -1)[..., ::2]
        return g.requires_grad_()

    given = list(map(drawn, ys)) if grad_outputs is None else tensors_of(grad_outputs)
    count = len(args)

    def slopes(*values: Any) -> tuple[Any, ...]:
        xs = list(values[:count])
        for i in places:  # tangents are checked, so only dual tensors are tracked
            xs[i] = xs[i] if xs[i].lazy.tracked else xs[i].detach().requires_grad_()
        found = [y for y in tensors_of(func(*xs)) if y.lazy.tracked]
        wanted = [xs[i] for i in places]
        gs = grad(found, wanted, values[count:], create_graph=True, allow_unused=True)
        return tuple([g for g in gs if g is not None and g.lazy.tracked])

    return gradcheck(
        slopes, [*args, *given], eps, atol, rtol, raise_exception, nondet_tol,
        check_undefined_grad, check_grad_dtypes, check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )  # fmt: skip
