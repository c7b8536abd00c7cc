"""Every public name of eager tensors, once: its module, its forms, and how it takes `out=`.

`weft.NAME`, `Tensor.NAME` and `Tensor.NAME_` come from these rows, and so do the type stubs
(`python -m tools.stubs`). Methods without a function, or with other arguments, are in the `Methods`
class of a module.
"""

from __future__ import annotations

from enum import Flag, auto
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from weft.eager.functions import compilation, dtype_alias, grad_scaler, setting
from weft.eager.functions.creation import arange, constructor, shared_memory, typed_tensor, window
from weft.eager.functions.elementwise import (
    activation,
    binary,
    complex_number,
    inplace,
    integer,
    operator,
    python_map,
    selection,
    unary,
)
from weft.eager.functions.elementwise.from_op import of_op
from weft.eager.functions.indexing import gather, scatter, slice_scatter, subscript
from weft.eager.functions.linalg import factorization, low_rank, product, solve
from weft.eager.functions.out_argument import Out
from weft.eager.functions.random import distribution, generator
from weft.eager.functions.random import inplace as random_inplace
from weft.eager.functions.reduction import extremum, norm, numerical_gradient, reduce, statistic
from weft.eager.functions.shape import (
    diagonal,
    joining,
    movement,
    permutation,
    reshape,
    splitting,
    stride,
    view_copy,
)
from weft.eager.functions.sort import counting, order
from weft.eager.record import async_execution, determinism, interruption, memory_pool, mode
from weft.eager.tensor import attribute, device, size
from weft.eager.tensor.autograd import anomaly
from weft.eager.tensor.dtype import dtype_info, promotion
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange import interchange, printing
from weft.eager.tensor.tensor import Tensor
from weft.eager.tensor.view import memory_format
from weft.ir.hooks import HOOKS
from weft.ops.declaration import REGISTRY, Elementwise, Op
from weft.ops.refusal import guard_methods, guarded, is_guarded


class Form(Flag):
    """The forms in which a name is public: `weft.NAME`, `Tensor.NAME`, `Tensor.NAME_`."""

    FUNCTION = auto()
    METHOD = auto()
    IN_PLACE = auto()


FUNCTION: Final = Form.FUNCTION
METHOD: Final = Form.METHOD
BOTH: Final = Form.FUNCTION | Form.METHOD
ALL: Final = Form.FUNCTION | Form.METHOD | Form.IN_PLACE


class Names(NamedTuple):
    """Names of one module that are public in the same forms."""

    module: ModuleType
    names: str
    forms: Form = FUNCTION
    out: Out = Out.SAME_KIND


TABLE: Final = (
    Names(compilation, "compile"),
    Names(arange, "arange linspace logspace range", FUNCTION, Out.ANY_SHAPE),
    Names(arange, "eye meshgrid tril_indices triu_indices"),
    Names(
        constructor,
        """
        as_tensor empty empty_like from_numpy full full_like ones ones_like scalar_tensor tensor
        zeros zeros_like
    """,
    ),
    Names(shared_memory, "asarray from_file frombuffer"),
    Names(
        typed_tensor,
        """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
        IntTensor LongTensor ShortTensor
    """,
    ),
    Names(window, "bartlett_window blackman_window hamming_window hann_window kaiser_window"),
    Names(dtype_alias, "bool cdouble cfloat double e float half inf int long nan newaxis pi short"),
    Names(activation, "celu elu gelu hardshrink leaky_relu relu6 selu silu softplus", BOTH),
    Names(
        binary,
        """
        allclose equal isclose left_shift logaddexp logaddexp2 maximum minimum power right_shift
        rsub
    """,
        BOTH,
    ),
    Names(binary, "heaviside", ALL, Out.EXACT),
    Names(
        binary,
        """
        add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
        copysign div divide eq float_power floor_divide fmax fmin fmod ge greater greater_equal gt
        hypot le less less_equal logical_and logical_or logical_xor lt mul multiply ne nextafter
        not_equal pow remainder sub subtract true_divide xlogy
    """,
        ALL,
    ),
    Names(complex_number, "complex polar", FUNCTION, Out.EXACT),
    Names(complex_number, "imag real view_as_complex view_as_real"),
    Names(
        complex_number,
        """
        adjoint angle conj conj_physical is_conj is_neg isreal resolve_conj resolve_neg
    """,
        BOTH,
    ),
    Names(integer, "unravel_index"),
    Names(integer, "frexp gcd lcm ldexp", BOTH),
    Names(selection, "addcdiv addcmul clamp clamp_max clamp_min clip lerp masked_fill", ALL),
    Names(unary, "polygamma"),
    Names(unary, "isneginf isposinf positive", BOTH, Out.EXACT),
    Names(unary, "cbrt expit invert isfinite isinf isnan signbit", BOTH),
    Names(unary, "ceil floor neg negative round sgn sign trunc", ALL, Out.EXACT),
    Names(
        unary,
        """
        abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
        bitwise_not cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix frac i0 lgamma log
        log10 log1p log2 logical_not logit nan_to_num rad2deg reciprocal relu rsqrt sigmoid sin
        sinc sinh sqrt square tan tanh
    """,
        ALL,
    ),
    Names(grad_scaler, "GradScaler"),
    Names(gather, "flatnonzero take_along_axis where"),
    Names(gather, "argwhere nonzero", BOTH, Out.EXACT),
    Names(
        gather,
        """
        gather index_select masked_scatter masked_select nonzero_static take take_along_dim
    """,
        BOTH,
    ),
    Names(
        scatter,
        "index_add index_copy index_fill scatter scatter_add scatter_reduce",
        BOTH,
    ),
    Names(slice_scatter, "fill"),
    Names(
        slice_scatter,
        """
        as_strided_scatter diagonal_scatter index_put index_reduce put select_scatter slice_scatter
    """,
        BOTH,
    ),
    Names(factorization, "lu_unpack"),
    Names(factorization, "cholesky geqrf lu orgqr ormqr qr svd", BOTH),
    Names(low_rank, "pca_lowrank svd_lowrank"),
    Names(product, "cdist chain_matmul einsum tensordot"),
    Names(product, "trace", BOTH, Out.EXACT),
    Names(product, "bmm cross dot ger inner kron matmul mm mv outer vdot", BOTH),
    Names(product, "addbmm addmm addmv addr baddbmm", ALL),
    Names(
        solve,
        """
        cholesky_inverse cholesky_solve det inverse logdet lu_solve matrix_exp matrix_power
        pinverse slogdet triangular_solve
    """,
        BOTH,
    ),
    Names(distribution, "bernoulli binomial multinomial poisson"),
    Names(
        generator,
        """
        Generator default_generator fork_rng get_rng_state initial_seed manual_seed normal rand
        rand_like randint randint_like randn randn_like randperm seed set_rng_state
    """,
    ),
    Names(norm, "frobenius_norm nuclear_norm"),
    Names(norm, "dist", BOTH),
    Names(norm, "norm", BOTH, Out.OWN_TYPE),
    Names(norm, "renorm", ALL),
    Names(numerical_gradient, "gradient"),
    Names(reduce, "std_mean var_mean"),
    Names(extremum, "amax amin argmax argmin", BOTH, Out.EXACT),
    Names(extremum, "aminmax max min", BOTH),
    Names(reduce, "all any count_nonzero", BOTH, Out.EXACT),
    Names(
        reduce,
        """
        log_softmax logsumexp mean nanmean prod softmax std sum var
    """,
        BOTH,
    ),
    Names(reduce, "nansum", BOTH, Out.OWN_TYPE),
    Names(
        statistic,
        """
        cartesian_prod combinations cumulative_trapezoid histogramdd trapezoid trapz
    """,
    ),
    Names(statistic, "nanmedian", BOTH, Out.EXACT),
    Names(statistic, "corrcoef cov diff histogram mode nanquantile", BOTH),
    Names(
        joining,
        """
        atleast_1d atleast_2d atleast_3d block_diag cat column_stack concat concatenate dstack
        hstack row_stack stack vstack
    """,
    ),
    Names(movement, "repeat", METHOD),
    Names(statistic, "sum_to_size", METHOD),
    Names(diagonal, "vander"),
    Names(diagonal, "diag", BOTH, Out.EXACT),
    Names(diagonal, "diag_embed diagflat", BOTH),
    Names(diagonal, "tril triu", ALL, Out.EXACT),
    Names(movement, "broadcast_shapes broadcast_tensors"),
    Names(movement, "flip fliplr flipud repeat_interleave roll rot90 tile", BOTH),
    Names(splitting, "unstack"),
    Names(
        splitting,
        """
        chunk dsplit hsplit narrow select split split_with_sizes tensor_split unbind vsplit
    """,
        BOTH,
    ),
    Names(reshape, "expand_as view", METHOD),
    Names(permutation, "permute_dims"),
    Names(permutation, "diagonal", BOTH, Out.EXACT),
    Names(permutation, "moveaxis movedim permute swapaxes swapdims t transpose", BOTH),
    Names(reshape, "expand_dims"),
    Names(
        reshape,
        """
        broadcast_to detach expand flatten ravel reshape squeeze unflatten unsqueeze
    """,
        BOTH,
    ),
    Names(stride, "unfold", METHOD),
    Names(stride, "as_strided", BOTH),
    Names(
        view_copy,
        """
        as_strided_copy detach_copy diagonal_copy expand_copy narrow_copy permute_copy select_copy
        split_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy unsqueeze_copy
        view_copy
    """,
    ),
    Names(counting, "bucketize searchsorted", FUNCTION, Out.EXACT),
    Names(counting, "isin"),
    Names(counting, "bincount histc unique unique_consecutive", BOTH),
    Names(order, "argsort logcumsumexp median", BOTH, Out.EXACT),
    Names(order, "cummax cummin kthvalue msort quantile sort topk", BOTH),
    Names(order, "cumprod cumsum", ALL),
    Names(determinism, "are_deterministic_algorithms_enabled use_deterministic_algorithms"),
    Names(async_execution, "synchronize"),
    Names(interruption, "drop_interrupted"),
    Names(memory_pool, "empty_cache"),
    Names(
        mode,
        """
        autocast enable_grad get_autocast_dtype inference_mode is_autocast_enabled is_grad_enabled
        is_inference_mode_enabled no_grad set_grad_enabled
    """,
    ),
    Names(anomaly, "find_nan"),
    Names(
        attribute,
        """
        clone is_complex is_floating_point is_inference is_nonzero is_signed is_tensor numel
    """,
    ),
    Names(device, "device"),
    Names(dtype_info, "can_cast finfo iinfo promote_types result_type"),
    Names(interchange, "from_dlpack"),
    Names(
        memory_format,
        """
        channels_last channels_last_3d contiguous_format layout memory_format preserve_format
        strided
    """,
    ),
    Names(printing, "get_printoptions printoptions set_printoptions"),
    Names(promotion, "get_default_dtype set_default_dtype"),
    Names(
        setting,
        """
        get_default_device get_float32_matmul_precision get_num_threads set_default_device
        set_float32_matmul_precision set_flush_denormal set_num_threads
    """,
    ),
    Names(size, "Size"),
)

METHODS: Final = (
    complex_number, constructor, scatter, inplace, integer, operator, product, python_map,
    random_inplace, reshape, slice_scatter, stride, subscript,
)  # fmt: skip
"""Modules with a class `Methods`: methods without a function or with other arguments."""


def public() -> tuple[dict[str, Any], dict[str, Out]]:
    """The functions `weft.NAME` by name, and how each takes `out=`."""
    found: dict[str, Any] = {"Tensor": Tensor}
    rules: dict[str, Out] = {}
    for row in TABLE:
        if Form.FUNCTION in row.forms:
            for name in row.names.split():
                found[name] = getattr(row.module, name)
                rules[name] = row.out
    return found, rules


def methods() -> dict[str, Any]:
    """The methods of tensors that are defined in this package, by name."""
    found: dict[str, Any] = {}
    for row in TABLE:
        for name in row.names.split():
            function = getattr(row.module, name)
            if Form.METHOD in row.forms:
                found[name] = called(function, name)
            if Form.IN_PLACE in row.forms:
                found[f"{name}_"] = inplace.changing(function, f"{name}_")
    for module in METHODS:
        found |= members(module.Methods)
    return found


def called(function: Any, name: str) -> Any:
    """A function under its public name, which Python's messages give: `acos` as `arccos`."""
    if not isinstance(function, FunctionType) or function.__name__ == name:
        return function
    code, defaults, closure = function.__code__, function.__defaults__, function.__closure__
    found = FunctionType(code, function.__globals__, name, defaults, closure)
    found.__kwdefaults__ = function.__kwdefaults__
    found.__module__, found.__doc__ = function.__module__, function.__doc__
    found.__annotations__ = function.__annotations__
    vars(found).update(vars(function))
    found.__qualname__ = name
    return guarded(found) if is_guarded(function) else found


def members(cls: type[Any]) -> dict[str, Any]:
    """The attributes that a class defines itself."""
    return {name: member for name, member in vars(cls).items() if name not in _OF_CLASSES}


_OF_CLASSES: Final = frozenset(vars(type("Methods", (), {}))) | {"__annotations__"}


def _offer(op: Op) -> None:
    """Add the method of an exported elementwise operation, unless tensors have their own."""
    by_element = op.facts.exported and isinstance(op.lower, Elementwise)
    if by_element and not hasattr(Tensor, op.name):
        setattr(Tensor, op.name, of_op(op))


for _name, _method in methods().items():
    setattr(Tensor, _name, _method)
HOOKS.declared = _offer
for _op in list(REGISTRY.values()):
    _offer(_op)
guard_methods(Tensor, Handle)
