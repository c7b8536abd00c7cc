"""Checks at execution: `Assert`, `assert_equal` and others, `check_numerics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.documentation import named
from weft.errors import DTypeError, ShapeError
from weft.tf1.control.dependency import no_op
from weft.tf1.control.py_func import host_function, passed_through
from weft.tf1.elementwise import arithmetic
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.convert import as_dtype, convert_to_tensor, same_type, static_value
from weft.tf1.framework.graph import fail, get_default_graph, name_scope
from weft.tf1.framework.host import host_op
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.reduction import reduce_all

__all__ = [
    "Assert", "assert_equal", "assert_greater", "assert_greater_equal",
    "assert_integer", "assert_less", "assert_less_equal", "assert_near", "assert_negative",
    "assert_non_negative", "assert_non_positive", "assert_none_equal", "assert_positive",
    "assert_rank", "assert_rank_at_least", "assert_rank_in", "assert_scalar", "assert_type",
    "check_numerics", "verify_tensor_all_finite",
]  # fmt: skip


def Assert(
    condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None
) -> Operation:
    """An operation that fails if the condition is false.

    Args:
        condition: a scalar boolean.
        data: texts and tensors that are part of the error's message.
        summarize: how many elements of each tensor the message has; 3 by default.
        name: of the operation.

    Raises:
        InvalidArgumentError: at execution; at once if the condition is known to be false.
    """
    with name_scope(name, "Assert", [condition]) as scope:
        flag = convert_to_tensor(condition, name="condition")
        parts = [d if isinstance(d, str | bytes) else convert_to_tensor(d) for d in data]
        tensors = [p for p in parts if isinstance(p, Tensor)]
        count = 3 if summarize is None else summarize

        def check(holds: Any, *arrays: Any) -> Any:
            if not np.all(holds):
                left = iter(arrays)
                said = [_brief(next(left), count) if isinstance(p, Tensor) else f"[{_text(p)}]"
                        for p in parts]  # fmt: skip
                raise InvalidArgumentError(None, None, f"assertion failed: {' '.join(said)}")
            return holds

        known = static_value(flag)
        if known is not None and not np.all(known):
            check(known, *map(_known, tensors))
        if known is not None:
            return no_op(scope)
        if get_default_graph().in_body:  # where only programs run
            dims = flag.shape.as_dims()
            return host_function("Assert", check, [flag, *tensors], [flag.dtype], [dims], scope)
        return host_op("Assert", [flag, *tensors], check, [flag.dtype], [flag.shape], scope)


def _known(tensor: Tensor) -> Any:
    """The value of a tensor, if it is known; else its name."""
    value = np.asarray(tensor) if tensor.has_value else static_value(tensor)
    return tensor.name if value is None else value


def _text(part: str | bytes) -> str:
    return part.decode() if isinstance(part, bytes) else part


def _brief(array: Any, count: int) -> str:
    """The first elements of a tensor, as TensorFlow prints them."""
    flat = np.ravel(array)
    shown = flat if count < 0 else flat[:count]
    dots = "..." if len(shown) < len(flat) else ""
    return f"[{' '.join(str(v) for v in shown)}{dots}]"


def _shown(x: Any) -> str:
    return str(getattr(x, "name", x))


def _comparison(title: str, sign: str, holds: Callable[[Any, Any], Any], what: str):
    @named(
        title,
        f"""An operation that fails unless {what}, for all elements.

    Args:
        x, y: tensors or numbers.
        data: texts of the message; by default both names.
        summarize: as in `Assert`.
        message: the beginning of the message.
        name: of the operations.

    Raises:
        InvalidArgumentError: at execution.
    """,
    )
    def check(
        x: Any, y: Any, data: Any = None, summarize: int | None = None,
        message: str | None = None, name: str | None = None,
    ) -> Operation:  # fmt: skip
        with name_scope(name, title, [x, y]):
            a, b = same_type(title, x, y)
            told = data if data is not None else [
                f"Condition x {sign} y did not hold element-wise:", f"x ({_shown(a)}) = ", a,
                f"y ({_shown(b)}) = ", b,
            ]  # fmt: skip
            head = [message] if message else []
            return Assert(reduce_all(holds(a, b)), [*head, *told], summarize)

    return check


assert_equal = _comparison("assert_equal", "==", arithmetic.equal, "x == y")
assert_none_equal = _comparison("assert_none_equal", "!=", arithmetic.not_equal, "x != y")
assert_less = _comparison("assert_less", "<", arithmetic.less, "x < y")
assert_less_equal = _comparison("assert_less_equal", "<=", arithmetic.less_equal, "x <= y")
assert_greater = _comparison("assert_greater", ">", arithmetic.greater, "x > y")
assert_greater_equal = _comparison("assert_greater_equal", ">=", arithmetic.greater_equal, "x >= y")


def _sign(title: str, compare: Callable[..., Operation], sign: str):
    @named(title, f"An operation that fails unless x {sign} 0, for all elements.")
    def check(
        x: Any, data: Any = None, summarize: int | None = None, message: str | None = None,
        name: str | None = None,
    ) -> Operation:  # fmt: skip
        tensor = convert_to_tensor(x)
        zero = convert_to_tensor(0, tensor.dtype.base_dtype)
        told = [f"Condition x {sign} 0 did not hold element-wise:",
                f"x ({_shown(tensor)}) = ", tensor]  # fmt: skip
        return compare(tensor, zero, told if data is None else data, summarize, message, name)

    return check


assert_positive = _sign("assert_positive", assert_greater, ">")
assert_negative = _sign("assert_negative", assert_less, "<")
assert_non_negative = _sign("assert_non_negative", assert_greater_equal, ">=")
assert_non_positive = _sign("assert_non_positive", assert_less_equal, "<=")


def assert_near(
    x: Any, y: Any, rtol: Any = None, atol: Any = None, data: Any = None,
    summarize: int | None = None, message: str | None = None, name: str | None = None,
) -> Operation:  # fmt: skip
    """An operation that fails unless |x - y| < atol + rtol * |y|, for all elements.

    Args:
        x, y: tensors or numbers.
        rtol, atol: ten times the type's precision by default.
        data, summarize, message, name: as in `assert_equal`.
    """
    a, b = same_type("assert_near", x, y)
    least = 10 * float(np.finfo(a.dtype.base_dtype.as_numpy_dtype).eps)
    relative, absolute = (least if t is None else t for t in (rtol, atol))
    limit = absolute + relative * arithmetic.abs(b)
    text = data
    if data is None:
        text = [f"x and y not equal to tolerance rtol = {relative}, atol = {absolute}",
                f"x ({_shown(a)}) = ", a, f"y ({_shown(b)}) = ", b]  # fmt: skip
    return assert_less(arithmetic.abs(a - b), limit, text, summarize, message, name)


def _rank_check(title: str, fits: Callable[[int, Any], bool], what: str):
    @named(
        title,
        f"""Fails unless the rank of x is {what}; a rank that is not known passes.

    Raises:
        ShapeError: it is another.
    """,
    )
    def check(
        x: Any, rank: Any, data: Any = None, summarize: int | None = None,
        message: str | None = None, name: str | None = None,
    ) -> Operation:  # fmt: skip
        del data, summarize
        tensor = convert_to_tensor(x)
        wanted = static_value(rank) if not isinstance(rank, list | tuple) else rank
        have = tensor.shape.ndims
        if have is not None and wanted is not None and not fits(have, wanted):
            text = f"{message + ' ' if message else ''}{title}: expected rank {what} {wanted}"
            raise fail(ShapeError, f"{text}, got shape {tensor.shape} of {tensor.name}")
        return no_op(name or title)

    return check


assert_rank = _rank_check("assert_rank", lambda n, r: n == int(r), "equal to")
assert_rank_at_least = _rank_check("assert_rank_at_least", lambda n, r: n >= int(r), "at least")
assert_rank_in = _rank_check("assert_rank_in", lambda n, r: n in [int(k) for k in r], "one of")


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """The tensor, which must be a scalar.

    Raises:
        ShapeError: it has a known shape with axes.
    """
    x = convert_to_tensor(tensor, name=name)
    if x.shape.ndims not in (0, None):
        text = f"expected a scalar, got shape {x.shape} of {x.name}"
        raise fail(ShapeError, f"{message + ' ' if message else ''}assert_scalar: {text}")
    return x


def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """Fails unless the tensor has a type.

    Raises:
        DTypeError: it has another.
    """
    x = convert_to_tensor(tensor)
    if x.dtype.base_dtype is not as_dtype(tf_type).base_dtype:
        text = f"expected {as_dtype(tf_type).name}, got {x.dtype.name} of {x.name}"
        raise fail(DTypeError, f"{message + ' ' if message else ''}assert_type: {text}")
    return no_op(name or "assert_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Fails unless the tensor's type is an integer one.

    Raises:
        DTypeError: it is not.
    """
    tensor = convert_to_tensor(x)
    if not tensor.dtype.is_integer:
        text = f"expected an integer type, got {tensor.dtype.name} of {tensor.name}"
        raise fail(DTypeError, f"{message + ' ' if message else ''}assert_integer: {text}")
    return no_op(name or "assert_type")


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """The tensor, if all its elements are finite.

    Raises:
        InvalidArgumentError: at execution, with the message.
    """

    def check(array: Any) -> Any:
        if not np.isfinite(array).all():
            what = "NaN" if np.isnan(array).any() else "Inf"
            raise InvalidArgumentError(None, None, f"{message} : Tensor had {what} values")
        return array

    x = convert_to_tensor(tensor, name="tensor")
    return passed_through("CheckNumerics", x, [], check, name or "CheckNumerics")


def verify_tensor_all_finite(
    t: Any = None, msg: str = "", name: str | None = None, x: Any = None, message: str = ""
) -> Tensor:
    """`check_numerics` with the arguments in another order."""
    return check_numerics(t if x is None else x, msg or message, name)
