"""Slots: variables that belong to another one, lie where it lies, and are divided as it is."""

from __future__ import annotations

import contextlib
from typing import Any

from weft.ir.shape import known
from weft.tf1 import creation
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.default_graph import colocate_with
from weft.tf1.framework.graph import name_scope
from weft.tf1.framework.tensor_shape import as_shape
from weft.tf1.shaping.arrangement import shape as shape_of
from weft.tf1.variable import initializer as init_ops
from weft.tf1.variable.slice_info import SaveSliceInfo
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_scope import get_variable_scope


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Variable:
    """A slot with an initial value.

    Args:
        primary: the variable or tensor that it belongs to.
        val: the initial value.
        name: what is added to the primary's name.
        colocate_with_primary: whether it lies where the primary does.
    """
    known = convert_to_tensor(val).shape.is_fully_defined()
    return _slot(primary, val, name, colocate_with_primary, validate_shape=known)


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: Any, name: str,
    colocate_with_primary: bool = True,
) -> Variable:  # fmt: skip
    """A slot that an initializer fills.

    Args:
        primary, name, colocate_with_primary: as of `create_slot`.
        initializer: a function from shape and type to a tensor.
        shape: the shape of the slot.
        dtype: its type.
    """
    dims = known(as_shape(shape).as_dims())
    return _slot(
        primary, lambda: init_ops.call(initializer, dims, dtype.base_dtype), name,
        colocate_with_primary, dtype=dtype.base_dtype,
    )  # fmt: skip


def create_zeros_slot(
    primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True
) -> Variable:
    """A slot of zeros with the primary's shape.

    Args:
        primary, name, colocate_with_primary: as of `create_slot`.
        dtype: its type; the primary's by default.
    """
    kind = (primary.dtype if dtype is None else dtype).base_dtype
    dims = as_shape(primary.shape)
    if dims.is_fully_defined():
        zeros = init_ops.zeros_initializer()
        return create_slot_with_initializer(primary, zeros, dims, kind, name, colocate_with_primary)
    like = primary.initialized_value() if isinstance(primary, Variable) else primary
    return create_slot(primary, creation.zeros(shape_of(like), kind), name, colocate_with_primary)


def _slot(
    primary: Any, value: Any, name: str, beside: bool, dtype: Any = None,
    validate_shape: bool = True,
) -> Variable:  # fmt: skip
    scope = get_variable_scope().name
    prefix = f"{scope}/{primary.op.name}" if scope else primary.op.name
    place = colocate_with(primary) if beside else contextlib.nullcontext()
    with name_scope(""), place:
        made = Variable(
            value, trainable=False, name=f"{prefix}/{name}", dtype=dtype,
            validate_shape=validate_shape,
        )  # fmt: skip
    whole = primary.slice_info if isinstance(primary, Variable) else None
    rank = made.shape.ndims
    if whole is not None and rank != 0:
        full_name = whole.full_name + made.op.name[len(prefix) :]
        sizes = (whole.full_shape, whole.var_offset, whole.var_shape)
        made.slice_info = SaveSliceInfo(full_name, *[each[:rank] for each in sizes])
    return made
