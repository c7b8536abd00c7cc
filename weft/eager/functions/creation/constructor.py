"""Tensors from data, shapes and numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.documentation import named
from weft.eager.record.memory import memory_pool
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.device import CPU, Device, device_of, moved, number_of
from weft.eager.tensor.dispatch import lazy_of, leaf, record, recorded, wrap
from weft.eager.tensor.dtype import promotion
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.conversion import (
    array_from,
    copied,
    filled_with,
    showing,
    shown,
)
from weft.eager.tensor.scalar import number
from weft.eager.tensor.size import Size
from weft.eager.tensor.view.memory_format import check_place
from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, bool_
from weft.ir.node import Value, at_user_line
from weft.ir.shape import known
from weft.ops.declaration import REGISTRY, catalogue
from weft.ops.warning import warn

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

# From data


def tensor(
    data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor with a copy of `data`: nested lists, numbers, an array, or a tensor.

    Python floats get the default dtype (float32), integers int64; arrays keep their dtype.

    Raises:
        ShapeError: nested lists of unequal lengths.
        DTypeError: no numbers, numbers mixed with lists, or numbers that `dtype` cannot hold.

    Example:
        >>> import weft as wf
        >>> wf.tensor([[1, 2], [3, 4]]).shape
        (2, 2)
    """
    kind = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Handle):
        return finished(copied(data.lazy, kind), requires_grad, device)
    return finished(leaf(array_from(data, kind, copy=True)), requires_grad, device)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` itself if it is a tensor; an array's memory if the dtype fits; otherwise a copy.

    >>> import numpy as np
    >>> import weft as wf
    >>> x = wf.as_tensor(np.zeros(3))
    >>> wf.as_tensor(x) is x
    True
    """
    kind = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Handle):
        x: Any = data
        return x.to(dtype=kind, device=device)
    array, number = array_from(data, kind, copy=False), number_of(device)
    found = wrap(leaf(array)) if isinstance(data, list | tuple) else showing(array)
    return found.to(Device("cpu", number)) if number else found


def from_numpy(array: Array) -> Tensor:
    """A tensor that shares the memory of an array.

    In-place changes of the tensor appear in the array at once. An operation on the tensor reads the
    elements that the array has when its line runs, even if the array changes before the result is
    read.

    Raises:
        DTypeError: no array, no numeric dtype, or a foreign byte order.

    Example:
        >>> import numpy as np
        >>> import weft as wf
        >>> a = np.zeros(2, np.float32)
        >>> x = wf.from_numpy(a)
        >>> a[0] = 5
        >>> x.tolist()
        [5.0, 0.0]
    """
    if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        text = f"from_numpy: expected a NumPy array, got {type(array).__name__}; use tensor()"
        raise DTypeError.here(text)
    warn_of_read_only("from_numpy", array)
    if not array.dtype.isnative:
        raise DTypeError.here(
            f"from_numpy: expected an array in this machine's byte order, got {array.dtype}; use "
            f"tensor(), which copies"
        )
    return showing(array_from(array, None, copy=False))


def warn_of_read_only(name: str, array: Array) -> None:
    """Warn about a tensor on read-only memory."""
    if not array.flags.writeable:
        text = f"{name}: the memory is read-only: changes of the tensor will not appear in it"
        warn(text)


def finished(lazy: Lazy, requires_grad: bool, device: Any = None) -> Tensor:
    """A new tensor, with `requires_grad` as given, on a device or on that of new tensors."""
    if device is not None or trace.now.device:
        lazy = moved(lazy, number_of(device))
    x = wrap(lazy)
    return x if requires_grad is False else x.requires_grad_(requires_grad)


# From shapes

_INTS: Final = frozenset({int})


def dims(size: Sequence[Any], name: str) -> tuple[int, ...]:
    """A shape given as several integers or as one sequence.

    Raises:
        DTypeError: something else.
        ShapeError: a negative number.
    """
    if type(size) is tuple and _INTS.issuperset(map(type, size)) and min(size, default=0) >= 0:
        return size  # mostly
    found: Any = size[0] if len(size) == 1 and not _is_index(size[0]) else size
    try:
        shape = tuple([operator.index(d) for d in found])
    except TypeError:
        text = f"{name}: expected integers as dimensions, got {found!r}{at_user_line()}"
        raise DTypeError(text) from None
    if any([d < 0 for d in shape]):
        raise ShapeError.here(f"{name}: expected dimensions that are not negative, got {found!r}")
    return shape


def given(shape: Sequence[Any], size: Any, name: str) -> tuple[int, ...]:
    """A shape, which may also be given as `size`.

    Raises:
        ShapeError: as `dims`.
    """
    return dims(shape if size is None else (size,), name)


def of_type(kind: DType, given: tuple[Any, ...], size: Any, device: Any) -> Tensor:
    """PyTorch's legacy constructors: from a list, or uninitialized with a shape.

    A tensor is returned as it is, and an array's memory is shared, if the dtype is `kind`.

    Raises:
        DTypeError: a tensor of another dtype, a number that is no dimension, or too many arguments.
    """
    first: Any = given[0] if given else ()
    if not given or isinstance(first, Size) or all([_is_dimension(n) for n in given]):
        return empty(
            *given, size=size if given or size is not None else (0,), dtype=kind, device=device
        )
    check_place(device, None)
    if len(given) > 1 or not isinstance(first, Handle | np.ndarray | Sequence):
        text = f"expected dimensions, or one list, array or tensor, got {shown(given)}"
        raise DTypeError.here(f"Tensor of {kind}: {text}")
    if not isinstance(first, Handle):
        return as_tensor(first, kind, device)
    if first.lazy.type.dtype is not kind:
        text = f"expected elements of {kind}, got {first.lazy.type.dtype}; use to()"
        raise DTypeError.here(f"Tensor of {kind}: {text}")
    same: Any = first
    return same.view_as(same) if device is None else same.to(device)


def _is_dimension(x: Any) -> bool:
    return _is_index(x) and not isinstance(x, Handle)


def _is_index(x: Any) -> bool:
    return hasattr(x, "__index__") and not isinstance(x, np.ndarray)


def floating(dtype: Any) -> DType:
    """The given dtype, or the default one."""
    return promotion.get_default_dtype() if dtype is None else as_dtype(dtype)


@recorded(differentiable=False)
def _filled(value: Value, *, shape: tuple[int, ...]) -> Value:
    return catalogue.broadcast_to(value, shape=shape)


def _constant(name: str, value: int, doc: str):
    @named(name, doc)
    def constant(
        *shape: Any, size: Any = None, dtype: Any = None, device: Any = None,
        requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        check_place(device, layout, memory_format)
        static = {"value": value, "shape": given(shape, size, name), "dtype": floating(dtype)}
        lazy = filled_with.record((), static)
        return finished(lazy[0], requires_grad, device)

    return constant


zeros = _constant(
    "zeros", 0,
    """Zeros with a shape given as integers or as one sequence.

    >>> import weft as wf
    >>> wf.zeros(2, 3).shape, wf.zeros((2, 3), dtype=wf.int64).dtype
    ((2, 3), int64)
    """,
)  # fmt: skip
ones = _constant("ones", 1, "Ones with a shape given as integers or as one sequence.")


def empty(
    *shape: Any, size: Any = None, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """An uninitialized tensor."""
    check_place(device, layout, memory_format)
    if trace.now.depth:  # a traced function may fill only what it has created
        return zeros(*shape, size=size, dtype=dtype, device=device, requires_grad=requires_grad)
    # Fresh zeros cost nothing before they are touched, and are deterministic.
    array = memory_pool.zeros(given(shape, size, "empty"), floating(dtype).numpy)
    return finished(leaf(array), requires_grad, device)


def full(
    size: Any, fill_value: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    *, layout: Any = None, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor filled with a number, whose dtype is the number's unless `dtype` is given.

    >>> import weft as wf
    >>> wf.full((2,), 7).tolist()
    [7, 7]
    """
    check_place(device, layout, memory_format)
    shape = dims((size,), "full")
    kind = None if dtype is None else as_dtype(dtype)
    return finished(filled(fill_value, shape, kind), requires_grad, device)


def filled(value: Any, shape: tuple[int, ...], dtype: DType | None) -> Lazy:
    """A number or one-element tensor, expanded to a shape."""
    if isinstance(value, Handle):
        x = copied(value.lazy, dtype)
        x = record(REGISTRY["reshape"], (x,), {"shape": ()})[0]
    else:
        if isinstance(value, np.generic):
            value = promotion.TORCH.bare(value)
        x = number(value, dtype or promotion.TORCH.number(value, bool_))
    return _filled.record((wrap(x),), {"shape": shape})[0]


def _typed_like(x: Any, dtype: Any) -> tuple[tuple[int, ...], DType]:
    kind = lazy_of(x).type
    return known(kind.shape), kind.dtype if dtype is None else as_dtype(dtype)


def near(x: Any, device: Any) -> Any:
    """The device of a new tensor like `x`: the given one, or that of `x`."""
    if device is not None or not isinstance(x, Handle):
        return device
    found = device_of(x.lazy)
    return None if found is CPU and not trace.now.device else found


def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of rank 0, with the default floating-point dtype unless `dtype` is given.

    >>> import weft as wf
    >>> wf.scalar_tensor(3)
    tensor(3.)
    """
    return full((), s, floating(dtype), device, requires_grad, layout=layout)


def _like(make: Callable[..., Tensor], what: str):
    @named(f"{make.__name__}_like", f"{what} with the shape and dtype of `x`.")
    def like(
        x: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, *,
        layout: Any = None, pin_memory: bool = False, memory_format: Any = None,
    ) -> Tensor:  # fmt: skip
        shape, kind = _typed_like(x, dtype)
        return make(
            shape, dtype=kind, device=near(x, device), requires_grad=requires_grad, layout=layout,
            memory_format=memory_format,
        )  # fmt: skip

    return like


zeros_like, ones_like = _like(zeros, "Zeros"), _like(ones, "Ones")
empty_like = _like(empty, "An uninitialized tensor")


def full_like(
    x: Any, fill_value: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, *,
    layout: Any = None, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor filled with a number, with the shape and dtype of `x`."""
    shape, kind = _typed_like(x, dtype)
    return full(
        shape,
        fill_value,
        kind,
        near(x, device),
        requires_grad,
        layout=layout,
        memory_format=memory_format,
    )


class Methods(Handle):
    """The constructor, and methods for new tensors with the dtype of a tensor."""

    def __init__(
        self, *given: Any, size: Any = None, device: Any = None, **options: Any
    ) -> None:  # fmt: skip
        if hasattr(self, "lazy"):
            return  # a subclass has made it in `__new__`, and these are its arguments
        if options:
            raise TypeError(f"Tensor: unexpected arguments {', '.join(options)}")
        like = given[0].lazy.type.dtype if given and isinstance(given[0], Handle) else None
        made: Any = of_type(like or promotion.get_default_dtype(), given, size, device)
        self.adopt(made.lazy, made.view_of)
        if getattr(made, "lent", False):
            self.lend()

    def new(self, *given: Any, size: Any = None, device: Any = None) -> Tensor:
        """A tensor of the same dtype: from a list, or uninitialized with a shape.

        >>> import weft as wf
        >>> wf.ones(2).new([3, 4]).tolist(), tuple(wf.ones(2).new(2, 3).shape)
        ([3.0, 4.0], (2, 3))
        """
        return of_type(self.lazy.type.dtype, given, size, near(self, device))

    def new_tensor(
        self, data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
    ) -> Tensor:
        """A tensor with a copy of `data` and this tensor's dtype."""
        return tensor(data, dtype or self.lazy.type.dtype, near(self, device), requires_grad)

    def new_zeros(self, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
        """Zeros with another shape and the same dtype; `options` as for `zeros`."""
        options["device"] = near(self, options.get("device"))
        return zeros(*size, dtype=dtype or self.lazy.type.dtype, **options)

    def new_ones(self, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
        """Ones with another shape and the same dtype; `options` as for `ones`."""
        options["device"] = near(self, options.get("device"))
        return ones(*size, dtype=dtype or self.lazy.type.dtype, **options)

    def new_empty(self, *size: Any, dtype: Any = None, **options: Any) -> Tensor:
        """An uninitialized tensor with another shape and the same dtype.

        `options` as for `empty`.
        """
        options["device"] = near(self, options.get("device"))
        return empty(*size, dtype=dtype or self.lazy.type.dtype, **options)

    def new_full(self, size: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Tensor:
        """A number, expanded to another shape, with the same dtype; `options` as for `full`."""
        options["device"] = near(self, options.get("device"))
        return full(size, fill_value, dtype or self.lazy.type.dtype, **options)
