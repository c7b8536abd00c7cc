"""In-place methods: `x.add_(y)`, `x += y`, `x.zero_()`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from weft.eager import (
    arithmetic,
    elementary,
    linear,
    movement,
    norming,
    operators,
    selection,
    sorting,
)
from weft.eager.argument import dims_of
from weft.eager.call import cast, converted, lazy_of, recorded
from weft.eager.handle import Handle
from weft.eager.inplace import write
from weft.eager.scalar import element
from weft.errors import DTypeError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.base import at_user_line, catalogue
from weft.ops.rule import concrete

T = TypeVar("T", bound=Handle)


def changing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The method that gives a tensor the value of `function(tensor, ...)`."""

    def method(self: T, *args: Any, **options: Any) -> T:
        found = function(self, *args, **options)
        return found if found is NotImplemented else write(self, found.lazy, name)

    method.__name__ = method.__qualname__ = name
    method.__wrapped__ = function  # type: ignore[attr-defined]  # whose parameters it has
    method.__doc__ = f"`{name.strip('_=')}` in place; returns the tensor itself."
    return method


@recorded
def _filled(x: Value, value: Value) -> Value:
    return catalogue.broadcast_to(value, shape=concrete(x))


class Mutation(Handle):
    """In-place changes.

    All raise `GradientError` for a leaf that needs a gradient outside `no_grad()`, `DTypeError`
    where the result is of a kind that does not fit, and `ShapeError` where it is larger.
    """

    __slots__ = ()

    def fill_(self, value: Any) -> Any:
        """Every element becomes `value`."""
        lazy = self.lazy
        filler = (
            value.lazy if isinstance(value, Handle) else element(value, lazy.type.dtype, self.rules)
        )
        if filler.type.shape != ():
            raise DTypeError(
                f"fill_: expected a number, got a tensor of shape {show(filler.type.shape)}; use "
                f"copy_(){at_user_line()}"
            )
        return write(self, _filled.record((self, cast(filler, lazy.type.dtype)), {})[0], "fill_")

    def zero_(self) -> Any:
        """Every element becomes 0."""
        return self.fill_(0)

    def copy_(self, src: Any, non_blocking: bool = False) -> Any:
        """The elements of another tensor, which may have another type and broadcasts.

        Args:
            non_blocking: of no influence.
        """
        source = converted(lazy_of(src), self.lazy.type.dtype)
        return write(self, _filled.record((self, source), {})[0], "copy_")

    def fill_diagonal_(self, fill_value: Any, wrap: bool = False) -> Any:
        """`fill_value` on the main diagonal.

        Args:
            wrap: of a matrix that is higher than wide, go on from the top below its end.

        Raises:
            ShapeError: rank below 2, or dimensions of more than two axes that differ.
        """
        dims = dims_of(self)
        if len(dims) < 2 or (len(dims) > 2 and len(set(dims)) > 1):
            raise ShapeError(
                f"fill_diagonal_: expected a matrix, or more axes of one size, got {show(dims)}"
                f"{at_user_line()}"
            )
        step = sum([dims[-1] ** k for k in range(len(dims))])
        end = dims[1] ** 2 if len(dims) == 2 and not wrap else math.prod(dims)
        places = np.arange(0, min(end, math.prod(dims)), step)
        tensor: Any = self
        tensor[np.unravel_index(places, dims)] = fill_value
        return tensor

    def masked_fill_(self, mask: Any, value: Any) -> Any:
        """`value` where the mask holds."""
        return write(self, selection.masked_fill(self, mask, value).lazy, "masked_fill_")

    add_ = changing(arithmetic.add, "add_")
    sub_ = changing(arithmetic.sub, "sub_")
    subtract_ = changing(arithmetic.subtract, "subtract_")
    mul_ = changing(arithmetic.mul, "mul_")
    multiply_ = changing(arithmetic.multiply, "multiply_")
    div_ = changing(arithmetic.div, "div_")
    divide_ = changing(arithmetic.divide, "divide_")
    true_divide_ = changing(arithmetic.true_divide, "true_divide_")
    floor_divide_ = changing(arithmetic.floor_divide, "floor_divide_")
    remainder_ = changing(arithmetic.remainder, "remainder_")
    fmod_ = changing(arithmetic.fmod, "fmod_")
    pow_ = changing(arithmetic.pow, "pow_")
    float_power_ = changing(arithmetic.float_power, "float_power_")
    fmax_ = changing(arithmetic.fmax, "fmax_")
    fmin_ = changing(arithmetic.fmin, "fmin_")
    atan2_ = changing(arithmetic.atan2, "atan2_")
    arctan2_ = changing(arithmetic.arctan2, "arctan2_")
    hypot_ = changing(arithmetic.hypot, "hypot_")
    copysign_ = changing(arithmetic.copysign, "copysign_")
    nextafter_ = changing(arithmetic.nextafter, "nextafter_")
    xlogy_ = changing(arithmetic.xlogy, "xlogy_")
    heaviside_ = changing(arithmetic.heaviside, "heaviside_")
    eq_ = changing(arithmetic.eq, "eq_")
    ne_ = changing(arithmetic.ne, "ne_")
    lt_ = changing(arithmetic.lt, "lt_")
    le_ = changing(arithmetic.le, "le_")
    gt_ = changing(arithmetic.gt, "gt_")
    ge_ = changing(arithmetic.ge, "ge_")
    logical_and_ = changing(arithmetic.logical_and, "logical_and_")
    logical_or_ = changing(arithmetic.logical_or, "logical_or_")
    logical_xor_ = changing(arithmetic.logical_xor, "logical_xor_")
    bitwise_and_ = changing(arithmetic.bitwise_and, "bitwise_and_")
    bitwise_or_ = changing(arithmetic.bitwise_or, "bitwise_or_")
    bitwise_xor_ = changing(arithmetic.bitwise_xor, "bitwise_xor_")
    abs_ = changing(elementary.abs, "abs_")
    absolute_ = changing(elementary.absolute, "absolute_")
    neg_ = changing(elementary.neg, "neg_")
    negative_ = changing(elementary.negative, "negative_")
    sign_ = changing(elementary.sign, "sign_")
    sgn_ = changing(elementary.sgn, "sgn_")
    exp_ = changing(elementary.exp, "exp_")
    exp2_ = changing(elementary.exp2, "exp2_")
    expm1_ = changing(elementary.expm1, "expm1_")
    log_ = changing(elementary.log, "log_")
    log1p_ = changing(elementary.log1p, "log1p_")
    log2_ = changing(elementary.log2, "log2_")
    log10_ = changing(elementary.log10, "log10_")
    sqrt_ = changing(elementary.sqrt, "sqrt_")
    rsqrt_ = changing(elementary.rsqrt, "rsqrt_")
    square_ = changing(elementary.square, "square_")
    reciprocal_ = changing(elementary.reciprocal, "reciprocal_")
    sin_ = changing(elementary.sin, "sin_")
    cos_ = changing(elementary.cos, "cos_")
    tan_ = changing(elementary.tan, "tan_")
    asin_ = changing(elementary.asin, "asin_")
    acos_ = changing(elementary.acos, "acos_")
    atan_ = changing(elementary.atan, "atan_")
    sinh_ = changing(elementary.sinh, "sinh_")
    cosh_ = changing(elementary.cosh, "cosh_")
    tanh_ = changing(elementary.tanh, "tanh_")
    asinh_ = changing(elementary.asinh, "asinh_")
    acosh_ = changing(elementary.acosh, "acosh_")
    atanh_ = changing(elementary.atanh, "atanh_")
    arcsin_ = changing(elementary.arcsin, "arcsin_")
    arccos_ = changing(elementary.arccos, "arccos_")
    arctan_ = changing(elementary.arctan, "arctan_")
    erf_ = changing(elementary.erf, "erf_")
    erfc_ = changing(elementary.erfc, "erfc_")
    erfinv_ = changing(elementary.erfinv, "erfinv_")
    sigmoid_ = changing(elementary.sigmoid, "sigmoid_")
    logit_ = changing(elementary.logit, "logit_")
    sinc_ = changing(elementary.sinc, "sinc_")
    deg2rad_ = changing(elementary.deg2rad, "deg2rad_")
    rad2deg_ = changing(elementary.rad2deg, "rad2deg_")
    floor_ = changing(elementary.floor, "floor_")
    ceil_ = changing(elementary.ceil, "ceil_")
    trunc_ = changing(elementary.trunc, "trunc_")
    fix_ = changing(elementary.fix, "fix_")
    round_ = changing(elementary.round, "round_")
    frac_ = changing(elementary.frac, "frac_")
    relu_ = changing(elementary.relu, "relu_")
    nan_to_num_ = changing(elementary.nan_to_num, "nan_to_num_")
    logical_not_ = changing(elementary.logical_not, "logical_not_")
    bitwise_not_ = changing(elementary.bitwise_not, "bitwise_not_")
    clamp_ = changing(selection.clamp, "clamp_")
    clip_ = changing(selection.clip, "clip_")
    clamp_min_ = changing(selection.clamp_min, "clamp_min_")
    clamp_max_ = changing(selection.clamp_max, "clamp_max_")
    lerp_ = changing(selection.lerp, "lerp_")
    addcmul_ = changing(selection.addcmul, "addcmul_")
    addcdiv_ = changing(selection.addcdiv, "addcdiv_")
    i0_ = changing(elementary.i0, "i0_")
    digamma_ = changing(elementary.digamma, "digamma_")
    lgamma_ = changing(elementary.lgamma, "lgamma_")
    not_equal_ = changing(arithmetic.ne, "not_equal_")
    less_ = changing(arithmetic.lt, "less_")
    less_equal_ = changing(arithmetic.le, "less_equal_")
    greater_ = changing(arithmetic.gt, "greater_")
    greater_equal_ = changing(arithmetic.ge, "greater_equal_")
    arcsinh_ = changing(elementary.asinh, "arcsinh_")
    arccosh_ = changing(elementary.acosh, "arccosh_")
    arctanh_ = changing(elementary.atanh, "arctanh_")
    bitwise_left_shift_ = changing(arithmetic.left_shift, "bitwise_left_shift_")
    bitwise_right_shift_ = changing(arithmetic.right_shift, "bitwise_right_shift_")
    addmm_ = changing(linear.addmm, "addmm_")
    addmv_ = changing(linear.addmv, "addmv_")
    addr_ = changing(linear.addr, "addr_")
    addbmm_ = changing(linear.addbmm, "addbmm_")
    baddbmm_ = changing(linear.baddbmm, "baddbmm_")
    tril_ = changing(movement.tril, "tril_")
    triu_ = changing(movement.triu, "triu_")
    cumsum_ = changing(sorting.cumsum, "cumsum_")
    cumprod_ = changing(sorting.cumprod, "cumprod_")
    renorm_ = changing(norming.renorm, "renorm_")
    __iadd__ = changing(operators.PLUS, "+=")
    __isub__ = changing(operators.MINUS, "-=")
    __imul__ = changing(operators.TIMES, "*=")
    __itruediv__ = changing(operators.OVER, "/=")
    __ifloordiv__ = changing(operators.OVER_WHOLE, "//=")
    __imod__ = changing(operators.MODULO, "%=")
    __ipow__ = changing(operators.power_of, "**=")
    __iand__ = changing(operators.AND, "&=")
    __ior__ = changing(operators.OR, "|=")
    __ixor__ = changing(operators.XOR, "^=")
    __ilshift__ = changing(operators.LEFT, "<<=")
    __irshift__ = changing(operators.RIGHT, ">>=")
