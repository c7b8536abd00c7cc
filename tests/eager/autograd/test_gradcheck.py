"""Each check of `gradcheck` finds the fault that it is for."""

import pytest

import weft as wf
from weft import errors

gradcheck = wf.autograd.gradcheck
ALL = {
    "check_forward_ad": True,
    "check_batched_grad": True,
    "check_batched_forward_grad": True,
    "check_grad_dtypes": True,
}
modes = pytest.mark.parametrize("fast", [False, True])


def real():
    return wf.tensor([[0.3, 1.2], [0.7, -0.4]], dtype=wf.float64, requires_grad=True)


def imaginary():
    return wf.tensor([0.3 + 1.2j, 0.7 - 0.4j], dtype=wf.complex128, requires_grad=True)


def hooked(change):
    def function(x):
        y = x.clone()
        y.register_hook(change)
        return y

    return function


@modes
def test_right_derivatives_pass_every_check(fast):
    def function(x, z):
        return x * z, z.abs(), x.sum(), "no tensor"

    assert gradcheck(function, (real(), imaginary()), fast_mode=fast, **ALL)
    assert gradcheck(lambda x: wf.complex(x, x * x), real(), fast_mode=fast, **ALL)
    assert gradcheck(lambda x: (), real(), fast_mode=fast)
    assert wf.autograd.gradgradcheck(
        function, (real(), imaginary()), fast_mode=fast, check_batched_grad=True,
        check_fwd_over_rev=True,
    )  # fmt: skip


@modes
@pytest.mark.parametrize(
    ("function", "options", "text"),
    [
        (hooked(lambda g: g * 1.1), {}, "the gradient of output 0 by input 0 differs"),
        (hooked(lambda g: g + 0.01), {"atol": 1.0}, "of zero where nothing flows into output 0"),
        (hooked(lambda g: g + wf.rand(2, 2) * 1e-4), {"atol": 1.0}, "two backward passes"),
        (lambda x: x.detach() * 2, {}, "expected 2"),
        (
            hooked(lambda g: g * 2 if g.sum() > 100 else g),
            {"check_batched_grad": True},
            "vmap of the",
        ),
    ],
)
def test_wrong_gradients_are_found(function, options, text, fast):
    with pytest.raises(errors.GradcheckError, match=text) as caught:
        gradcheck(function, real(), fast_mode=fast, **options)
    assert isinstance(caught.value, RuntimeError)
    assert not gradcheck(function, real(), fast_mode=fast, raise_exception=False, **options)


def test_backward_passes_may_differ_within_a_tolerance():
    function = hooked(lambda g: g * (1 + wf.rand(2, 2, dtype=wf.float64) * 1e-8))
    assert not gradcheck(function, real(), raise_exception=False)
    assert gradcheck(function, real(), nondet_tol=1e-6)
    function = hooked(lambda g: g * (1 + wf.rand(2, 2, dtype=wf.float64) * 1e-12))
    assert not gradcheck(function, real(), raise_exception=False)
    function = hooked(lambda g: g * (1 + wf.rand(2, 2, dtype=wf.float64) * 2e-15))
    assert gradcheck(function, real())


class Wrong(wf.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        if g is None or h is None:
            return h * 3 if g is None else g * 2
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 2, t * 4


def test_gradients_of_several_outputs_add_up():
    with pytest.raises(errors.GradcheckError, match="the sum of those of each output alone"):
        gradcheck(Wrong.apply, real())
    assert gradcheck(Wrong.apply, real(), check_undefined_grad=False)


@modes
def test_wrong_tangents_are_found(fast):
    options = {"check_undefined_grad": False, "fast_mode": fast}
    assert gradcheck(Wrong.apply, real(), **options)
    with pytest.raises(errors.GradcheckError, match="the tangent of output 1 by input 0 differs"):
        gradcheck(Wrong.apply, real(), check_forward_ad=True, **options)
    with pytest.raises(errors.GradcheckError, match="the tangent of output 1"):
        gradcheck(Wrong.apply, real(), check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_backward_ad, check_forward_ad or both"):
        gradcheck(Wrong.apply, real(), check_backward_ad=False)


def test_gradgradcheck_moves_the_cotangents_too():
    class Constant(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.detach() * 2

    assert gradcheck(Constant.apply, real())
    assert not wf.autograd.gradgradcheck(
        lambda x: Constant.apply(x) + x, real(), raise_exception=False
    )


def test_gradgradcheck_takes_cotangents_apart_in_memory():
    contiguous = []

    class Kept(wf.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            contiguous.append(g.is_contiguous())
            return g * 2

    assert wf.autograd.gradgradcheck(Kept.apply, real(), gen_non_contig_grad_outputs=True)
    assert contiguous and not any(contiguous)


@modes
def test_inputs_move_where_a_function_finds_them(fast):
    x, captured = real(), real()
    before = captured.tolist()
    assert gradcheck(lambda x, _: x * captured, (x, captured), fast_mode=fast)
    assert captured.tolist() == before

    def fails(x):
        if x.detach().flatten()[0] > 0.3:
            raise ValueError("too far")
        return x

    with pytest.raises(ValueError, match="too far"):
        gradcheck(fails, captured)
    assert captured.tolist() == before


def test_outputs_that_change_with_the_inputs_are_found():
    def longer(x):
        return wf.cat([x, x]) if x.detach().flatten()[0] > 0.3 else x

    def other(x):
        return x.float() if x.detach().flatten()[0] > 0.3 else x

    with pytest.raises(AssertionError, match=r"the shape .*\(2, 2\).* wherever the inputs move"):
        gradcheck(longer, real())
    with pytest.raises(AssertionError, match="the dtype float64 wherever the inputs move, got f"):
        gradcheck(other, real())


def test_too_few_digits_are_warned_of():
    with pytest.warns(UserWarning, match="input 0 of float64, whose digits suffice"):
        assert gradcheck(lambda x: x * 2, real().detach().float().requires_grad_(), eps=1e-2)


def test_every_input_is_a_dual_number_in_forward_mode():
    moves = []

    def function(x, y):
        moves.append(wf.autograd.forward_ad.unpack_dual(y).tangent)
        return x * y

    assert gradcheck(function, (real(), real()), check_forward_ad=True, check_backward_ad=False)
    assert sum(move is not None for move in moves) == 8
