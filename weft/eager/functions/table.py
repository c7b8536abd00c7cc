"""Every public name of eager tensors, once: its module, its forms, and how it takes `out=`.

`weft.NAME`, `Tensor.NAME` and `Tensor.NAME_` come from the faces of operations and from these rows
of functions that belong to no single operation; and so do the type stubs (`python -m tools.stubs`).
Methods without a function, or with other arguments, are in the `Methods` class of a module.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from enum import Flag, auto
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from weft.eager.functions import compilation, dtype_alias, grad_scaler, override, setting
from weft.eager.functions.creation import arange, constructor, shared_memory, typed_tensor, window
from weft.eager.functions.elementwise import activation as activation  # marks functions of faces
from weft.eager.functions.elementwise import (
    binary,
    complex_number,
    declared,
    inplace,
    integer,
    operator,
    python_map,
    selection,
    unary,
)
from weft.eager.functions.elementwise.from_op import WRITTEN
from weft.eager.functions.indexing import element_operator as element_operator  # of `Number`
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
from weft.eager.functions.sparse import construct as sparse_tensor
from weft.eager.record.memory import memory_pool
from weft.eager.record.pending import determinism, mode
from weft.eager.record.run import async_execution, interruption
from weft.eager.tensor import attribute, device, size
from weft.eager.tensor.autograd import anomaly
from weft.eager.tensor.dtype import dtype_info, promotion
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange import interchange, printing
from weft.eager.tensor.tensor import Tensor
from weft.eager.tensor.view import memory_format
from weft.ir.hooks import HOOKS
from weft.ops.declaration import Elementwise, Op
from weft.ops.declaration.face import FACES
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
    """Names of one module that are public in the same forms.

    Without names those of the module's `__all__` that no other row has.
    """

    module: ModuleType
    names: str = ""
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
    Names(shared_memory),
    Names(typed_tensor),
    Names(window),
    Names(dtype_alias),
    Names(binary, "allclose equal isclose rsub", BOTH),
    Names(binary, "float_power", ALL),
    Names(complex_number, "complex polar", FUNCTION, Out.EXACT),
    Names(complex_number, "imag real view_as_complex view_as_real"),
    Names(complex_number, forms=BOTH),
    Names(integer, "unravel_index"),
    Names(integer, forms=BOTH),
    Names(selection, forms=ALL),
    Names(unary, "polygamma"),
    Names(unary, "isneginf isposinf", BOTH, Out.EXACT),
    Names(unary, "fix frac", ALL),
    Names(grad_scaler, "GradScaler"),
    Names(gather, "flatnonzero take_along_axis where"),
    Names(gather, "argwhere nonzero", BOTH, Out.EXACT),
    Names(gather, forms=BOTH),
    Names(scatter, forms=BOTH),
    Names(slice_scatter, "fill"),
    Names(slice_scatter, forms=BOTH),
    Names(factorization, "lu_unpack"),
    Names(factorization, forms=BOTH),
    Names(low_rank),
    Names(product, "cdist chain_matmul einsum tensordot"),
    Names(product, "trace", BOTH, Out.EXACT),
    Names(product, forms=BOTH),
    Names(product, "addbmm addmm addmv addr baddbmm", ALL),
    Names(solve, forms=BOTH),
    Names(distribution, "bernoulli binomial multinomial poisson"),
    Names(
        generator,
        """
        Generator default_generator fork_rng get_rng_state initial_seed manual_seed normal rand
        rand_like randint randint_like randn randn_like randperm seed set_rng_state
    """,
    ),
    Names(norm),
    Names(norm, "dist", BOTH),
    Names(norm, "norm", BOTH, Out.OWN_TYPE),
    Names(norm, "renorm", ALL),
    Names(numerical_gradient),
    Names(reduce, "std_mean var_mean"),
    Names(extremum, forms=BOTH, out=Out.EXACT),
    Names(extremum, "aminmax max min", BOTH),
    Names(reduce, "all any count_nonzero", BOTH, Out.EXACT),
    Names(reduce, forms=BOTH),
    Names(reduce, "nansum", BOTH, Out.OWN_TYPE),
    Names(statistic),
    Names(statistic, "nanmedian", BOTH, Out.EXACT),
    Names(statistic, "corrcoef cov diff histogram mode nanquantile", BOTH),
    Names(joining),
    Names(movement, "repeat", METHOD),
    Names(statistic, "sum_to_size", METHOD),
    Names(diagonal, "vander"),
    Names(diagonal, "diag", BOTH, Out.EXACT),
    Names(diagonal, forms=BOTH),
    Names(diagonal, "tril triu", ALL, Out.EXACT),
    Names(movement, "broadcast_shapes broadcast_tensors"),
    Names(movement, forms=BOTH),
    Names(splitting, "unstack"),
    Names(splitting, forms=BOTH),
    Names(reshape, "expand_as view", METHOD),
    Names(permutation, "permute_dims"),
    Names(permutation, "diagonal", BOTH, Out.EXACT),
    Names(permutation, forms=BOTH),
    Names(reshape, "expand_dims"),
    Names(reshape, forms=BOTH),
    Names(stride, "unfold", METHOD),
    Names(stride, forms=BOTH),
    Names(view_copy),
    Names(counting, "bucketize searchsorted", FUNCTION, Out.EXACT),
    Names(counting, "isin"),
    Names(counting, forms=BOTH),
    Names(order, "argsort logcumsumexp median", BOTH, Out.EXACT),
    Names(order, forms=BOTH),
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
    Names(device, "device get_cpu_devices set_cpu_devices"),
    Names(dtype_info, "can_cast finfo iinfo promote_types result_type"),
    Names(interchange, "from_dlpack"),
    Names(
        memory_format,
        """
        channels_last channels_last_3d contiguous_format layout memory_format preserve_format
        sparse_coo sparse_csr strided
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
    Names(sparse_tensor),
)

METHODS: Final = (
    complex_number, constructor, scatter, inplace, integer, operator, override, product, python_map,
    random_inplace, reshape, slice_scatter, sparse_tensor, stride, subscript,
)  # fmt: skip
"""Modules with a class `Methods`: methods without a function or with other arguments."""


class Public(NamedTuple):
    """A public name: its function, that one's module and name in it, the forms and `out=`."""

    name: str
    function: Any
    module: str
    attribute: str
    forms: Form
    out: Out


@functools.cache
def rows() -> tuple[Public, ...]:
    """Every public name."""
    return tuple(_rows())


def _rows() -> Iterator[Public]:
    for declaration, source in FACES.items():
        if not source.face.torch:
            continue
        function = declared.function_of(source)
        module = function.__module__ if declaration in WRITTEN else declared.__name__
        for word in source.face.torch.split():
            forms = ALL if word.endswith("_") else BOTH
            yield Public(word.rstrip("_"), function, module, declaration, forms, source.face.out)
    for row in TABLE:
        for name in _names(row):
            function = getattr(row.module, name)
            yield Public(name, function, row.module.__name__, name, row.forms, row.out)


def _names(row: Names) -> list[str]:
    if row.names:
        return row.names.split()
    others = [name for other in TABLE if other.module is row.module for name in other.names.split()]
    return [name for name in row.module.__all__ if name not in others]


def public() -> tuple[dict[str, Any], dict[str, Out]]:
    """The functions `weft.NAME` by name, and how each takes `out=`."""
    shown = [row for row in rows() if Form.FUNCTION in row.forms]
    functions = {row.name: row.function for row in shown}
    return {"Tensor": Tensor, **functions}, {row.name: row.out for row in shown}


def methods() -> dict[str, Any]:
    """The methods of tensors that are defined in this package, by name."""
    members_: dict[str, Any] = {}
    for row in rows():
        if Form.METHOD in row.forms:
            members_[row.name] = under_name(row.function, row.name)
        if Form.IN_PLACE in row.forms:
            members_[f"{row.name}_"] = inplace.changing(row.function, f"{row.name}_")
    for module in METHODS:
        members_ |= members(module.Methods)
    return members_


def under_name(function: Any, name: str) -> Any:
    """A function under its public name, which Python's messages give: `acos` as `arccos`."""
    if not isinstance(function, FunctionType) or function.__name__ == name:
        return function
    code, defaults, closure = function.__code__, function.__defaults__, function.__closure__
    copy = FunctionType(code, function.__globals__, name, defaults, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__module__, copy.__doc__ = function.__module__, function.__doc__
    copy.__annotations__ = function.__annotations__
    vars(copy).update(vars(function))
    copy.__qualname__ = name
    return guarded(copy) if is_guarded(function) else copy


def members(cls: type[Any]) -> dict[str, Any]:
    """The attributes that a class defines itself."""
    return {name: member for name, member in vars(cls).items() if name not in _OF_CLASSES}


_OF_CLASSES: Final = frozenset(vars(type("Methods", (), {}))) | {"__annotations__"}


def _offer(op: Op) -> None:
    """Add the methods of an operation that a user declares, unless tensors have their own."""
    for name in op.face.names("torch") if op.face and isinstance(op.lower, Elementwise) else ():
        if not hasattr(Tensor, name):
            setattr(Tensor, name, declared.function_of(op))


for _name, _method in methods().items():
    setattr(Tensor, _name, _method)
HOOKS.declared = _offer
guard_methods(Tensor, Handle)
