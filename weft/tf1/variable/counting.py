"""`tf.count_up_to`: a variable that counts runs, up to a limit."""

from __future__ import annotations

from typing import Any

from weft.errors import ArgumentError, EndOfDataError
from weft.tf1.control.dependency import identity
from weft.tf1.elementwise.arithmetic import minimum
from weft.tf1.framework.default_graph import control_dependencies
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.tensor import OPERATORS, Tensor
from weft.tf1.variable.variable import variable_of

__all__ = ["count_up_to"]


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """The value of an integer variable, which is then one more; at the limit, an error.

    Args:
        ref: the variable.
        limit: the value at which the counting ends.
        name: of the operation.

    Raises:
        OutOfRangeError: at execution, if the variable is at its limit.
        ArgumentError: the variable is not of integers.
    """
    variable = variable_of(ref, "count_up_to")
    if not variable.dtype.base_dtype.is_integer:
        text = f"expected a variable of integers, got {variable.dtype.name}"
        raise fail(ArgumentError, f"count_up_to: {text}")
    most = int(limit)

    def checked(value: Any) -> Any:
        if value >= most:
            raise EndOfDataError(f"Reached limit of {most}")
        return value

    with name_scope(name, "CountUpTo") as scope:
        before = identity(variable.read_value())
        with control_dependencies([before]):
            after = variable.assign(minimum(before + 1, most))
        with control_dependencies([after]):
            dtype = variable.dtype.base_dtype
            return host_tensor("CountUpTo", [before], checked, dtype, before.shape, scope)


OPERATORS["count_up_to"] = count_up_to
