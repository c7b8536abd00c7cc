"""In-place methods: `x.add_(y)`, `x += y`, `x.zero_()`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from weft.eager.functions.elementwise import binary, operator, selection, unary
from weft.eager.functions.linalg import product
from weft.eager.functions.reduction import norm
from weft.eager.functions.shape import movement
from weft.eager.functions.sort import order
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import cast, converted, lazy_of, recorded
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.inplace import write
from weft.eager.tensor.scalar import element
from weft.errors import DTypeError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.base import at_user_line, catalogue
from weft.ops.declaration.rule import concrete

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

    add_ = changing(binary.add, "add_")
    sub_ = changing(binary.sub, "sub_")
    subtract_ = changing(binary.subtract, "subtract_")
    mul_ = changing(binary.mul, "mul_")
    multiply_ = changing(binary.multiply, "multiply_")
    div_ = changing(binary.div, "div_")
    divide_ = changing(binary.divide, "divide_")
    true_divide_ = changing(binary.true_divide, "true_divide_")
    floor_divide_ = changing(binary.floor_divide, "floor_divide_")
    remainder_ = changing(binary.remainder, "remainder_")
    fmod_ = changing(binary.fmod, "fmod_")
    pow_ = changing(binary.pow, "pow_")
    float_power_ = changing(binary.float_power, "float_power_")
    fmax_ = changing(binary.fmax, "fmax_")
    fmin_ = changing(binary.fmin, "fmin_")
    atan2_ = changing(binary.atan2, "atan2_")
    arctan2_ = changing(binary.arctan2, "arctan2_")
    hypot_ = changing(binary.hypot, "hypot_")
    copysign_ = changing(binary.copysign, "copysign_")
    nextafter_ = changing(binary.nextafter, "nextafter_")
    xlogy_ = changing(binary.xlogy, "xlogy_")
    heaviside_ = changing(binary.heaviside, "heaviside_")
    eq_ = changing(binary.eq, "eq_")
    ne_ = changing(binary.ne, "ne_")
    lt_ = changing(binary.lt, "lt_")
    le_ = changing(binary.le, "le_")
    gt_ = changing(binary.gt, "gt_")
    ge_ = changing(binary.ge, "ge_")
    logical_and_ = changing(binary.logical_and, "logical_and_")
    logical_or_ = changing(binary.logical_or, "logical_or_")
    logical_xor_ = changing(binary.logical_xor, "logical_xor_")
    bitwise_and_ = changing(binary.bitwise_and, "bitwise_and_")
    bitwise_or_ = changing(binary.bitwise_or, "bitwise_or_")
    bitwise_xor_ = changing(binary.bitwise_xor, "bitwise_xor_")
    abs_ = changing(unary.abs, "abs_")
    absolute_ = changing(unary.absolute, "absolute_")
    neg_ = changing(unary.neg, "neg_")
    negative_ = changing(unary.negative, "negative_")
    sign_ = changing(unary.sign, "sign_")
    sgn_ = changing(unary.sgn, "sgn_")
    exp_ = changing(unary.exp, "exp_")
    exp2_ = changing(unary.exp2, "exp2_")
    expm1_ = changing(unary.expm1, "expm1_")
    log_ = changing(unary.log, "log_")
    log1p_ = changing(unary.log1p, "log1p_")
    log2_ = changing(unary.log2, "log2_")
    log10_ = changing(unary.log10, "log10_")
    sqrt_ = changing(unary.sqrt, "sqrt_")
    rsqrt_ = changing(unary.rsqrt, "rsqrt_")
    square_ = changing(unary.square, "square_")
    reciprocal_ = changing(unary.reciprocal, "reciprocal_")
    sin_ = changing(unary.sin, "sin_")
    cos_ = changing(unary.cos, "cos_")
    tan_ = changing(unary.tan, "tan_")
    asin_ = changing(unary.asin, "asin_")
    acos_ = changing(unary.acos, "acos_")
    atan_ = changing(unary.atan, "atan_")
    sinh_ = changing(unary.sinh, "sinh_")
    cosh_ = changing(unary.cosh, "cosh_")
    tanh_ = changing(unary.tanh, "tanh_")
    asinh_ = changing(unary.asinh, "asinh_")
    acosh_ = changing(unary.acosh, "acosh_")
    atanh_ = changing(unary.atanh, "atanh_")
    arcsin_ = changing(unary.arcsin, "arcsin_")
    arccos_ = changing(unary.arccos, "arccos_")
    arctan_ = changing(unary.arctan, "arctan_")
    erf_ = changing(unary.erf, "erf_")
    erfc_ = changing(unary.erfc, "erfc_")
    erfinv_ = changing(unary.erfinv, "erfinv_")
    sigmoid_ = changing(unary.sigmoid, "sigmoid_")
    logit_ = changing(unary.logit, "logit_")
    sinc_ = changing(unary.sinc, "sinc_")
    deg2rad_ = changing(unary.deg2rad, "deg2rad_")
    rad2deg_ = changing(unary.rad2deg, "rad2deg_")
    floor_ = changing(unary.floor, "floor_")
    ceil_ = changing(unary.ceil, "ceil_")
    trunc_ = changing(unary.trunc, "trunc_")
    fix_ = changing(unary.fix, "fix_")
    round_ = changing(unary.round, "round_")
    frac_ = changing(unary.frac, "frac_")
    relu_ = changing(unary.relu, "relu_")
    nan_to_num_ = changing(unary.nan_to_num, "nan_to_num_")
    logical_not_ = changing(unary.logical_not, "logical_not_")
    bitwise_not_ = changing(unary.bitwise_not, "bitwise_not_")
    clamp_ = changing(selection.clamp, "clamp_")
    clip_ = changing(selection.clip, "clip_")
    clamp_min_ = changing(selection.clamp_min, "clamp_min_")
    clamp_max_ = changing(selection.clamp_max, "clamp_max_")
    lerp_ = changing(selection.lerp, "lerp_")
    addcmul_ = changing(selection.addcmul, "addcmul_")
    addcdiv_ = changing(selection.addcdiv, "addcdiv_")
    i0_ = changing(unary.i0, "i0_")
    digamma_ = changing(unary.digamma, "digamma_")
    lgamma_ = changing(unary.lgamma, "lgamma_")
    not_equal_ = changing(binary.ne, "not_equal_")
    less_ = changing(binary.lt, "less_")
    less_equal_ = changing(binary.le, "less_equal_")
    greater_ = changing(binary.gt, "greater_")
    greater_equal_ = changing(binary.ge, "greater_equal_")
    arcsinh_ = changing(unary.asinh, "arcsinh_")
    arccosh_ = changing(unary.acosh, "arccosh_")
    arctanh_ = changing(unary.atanh, "arctanh_")
    bitwise_left_shift_ = changing(binary.left_shift, "bitwise_left_shift_")
    bitwise_right_shift_ = changing(binary.right_shift, "bitwise_right_shift_")
    addmm_ = changing(product.addmm, "addmm_")
    addmv_ = changing(product.addmv, "addmv_")
    addr_ = changing(product.addr, "addr_")
    addbmm_ = changing(product.addbmm, "addbmm_")
    baddbmm_ = changing(product.baddbmm, "baddbmm_")
    tril_ = changing(movement.tril, "tril_")
    triu_ = changing(movement.triu, "triu_")
    cumsum_ = changing(order.cumsum, "cumsum_")
    cumprod_ = changing(order.cumprod, "cumprod_")
    renorm_ = changing(norm.renorm, "renorm_")
    __iadd__ = changing(operator.PLUS, "+=")
    __isub__ = changing(operator.MINUS, "-=")
    __imul__ = changing(operator.TIMES, "*=")
    __itruediv__ = changing(operator.OVER, "/=")
    __ifloordiv__ = changing(operator.OVER_WHOLE, "//=")
    __imod__ = changing(operator.MODULO, "%=")
    __ipow__ = changing(operator.power_of, "**=")
    __iand__ = changing(operator.AND, "&=")
    __ior__ = changing(operator.OR, "|=")
    __ixor__ = changing(operator.XOR, "^=")
    __ilshift__ = changing(operator.LEFT, "<<=")
    __irshift__ = changing(operator.RIGHT, ">>=")
