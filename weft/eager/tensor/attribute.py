"""Attributes of tensors (dtype, shape, device), conversions, and elements as Python numbers."""

from __future__ import annotations

import builtins
import math
from typing import Any, NoReturn, Self

import numpy as np

from weft.eager.record.call import placed_type
from weft.eager.record.pending.state import needs_gradient, trace
from weft.eager.tensor.argument import tensor_of
from weft.eager.tensor.device import (
    CPU,
    Device,
    device_of,
    is_device,
    moved,
    number_of,
    refuse_cuda,
)
from weft.eager.tensor.dispatch import converted, record, wrap
from weft.eager.tensor.dtype.dtype_name import dtype_meant, name_of
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.size import Size
from weft.eager.tensor.view.memory_format import check_format, layout, strided
from weft.eager.tensor.view.storage import TypedStorage, UntypedStorage
from weft.eager.tensor.view.view_transform import memory_of, placed
from weft.errors import DTypeError, GradientError, ShapeError, nameless
from weft.ir import dtype as types
from weft.ir.dtype import DType, as_dtype
from weft.ir.node import at_user_line
from weft.ir.shape import known, normal_axis, show
from weft.ops.declaration import REGISTRY
from weft.ops.refusal import REFUSABLE, guarded, refuse
from weft.runtime.flight import aloft
from weft.runtime.memory.anonymous import is_shared


def clone(x: Any, *, memory_format: Any = None) -> Any:
    """A copy of the tensor; gradients flow through."""
    return x.clone(memory_format=memory_format)


def is_tensor(x: Any) -> bool:
    """Whether something is a tensor."""
    return isinstance(x, Handle)


def is_inference(x: Any) -> bool:
    """Whether a tensor was made in `inference_mode`."""
    return tensor_of("is_inference", x).is_inference()


def is_floating_point(x: Any) -> bool:
    """Whether the elements of a tensor are floating-point numbers."""
    return tensor_of("is_floating_point", x).dtype.is_floating


def is_complex(x: Any) -> bool:
    """Whether the elements of a tensor are complex numbers."""
    return tensor_of("is_complex", x).dtype.is_complex


def is_signed(x: Any) -> bool:
    """Whether the dtype of a tensor has negative numbers."""
    return tensor_of("is_signed", x).is_signed()


def is_nonzero(x: Any) -> bool:
    """Whether the only element of a tensor is not 0."""
    return bool(tensor_of("is_nonzero", x))


def numel(x: Any) -> int:
    """Number of elements of a tensor."""
    return tensor_of("numel", x).numel()


class Attributes(Handle):
    """Attributes, conversions and values."""

    __slots__ = ()

    # -- what it is

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.shown.type.dtype

    @property
    def shape(self) -> Size:
        """Dimensions."""
        dims: Any = self.shown.type.shape  # always known
        return tuple.__new__(Size, dims)

    @property
    def ndim(self) -> builtins.int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def device(self) -> Device:
        """Where it lives."""
        return device_of(self.shown)

    @property
    def is_leaf(self) -> builtins.bool:
        """Whether its gradient accumulates in `.grad`, or would if it needed one."""
        lazy = self.lazy
        return lazy.leaf is not None or not needs_gradient(lazy)

    @property
    def is_cpu(self) -> builtins.bool:
        """Yes: tensors live in this computer's memory."""
        return True

    @property
    def is_mps(self) -> builtins.bool:
        """No."""
        return False

    @property
    def is_xpu(self) -> builtins.bool:
        """No."""
        return False

    @property
    def is_meta(self) -> builtins.bool:
        """No: a tensor has data."""
        return False

    @property
    def is_quantized(self) -> builtins.bool:
        """No."""
        return False

    @property
    def _base(self) -> Any:
        """The base tensor of a view; `None` if it is no view."""
        base: Any = None
        view = self.view_of
        while view is not None:
            base, view = view.base, view.base.view_of
        return base

    def _is_view(self) -> builtins.bool:
        return self.view_of is not None

    @property
    def layout(self) -> layout:
        """Strided: all elements are stored."""
        return strided

    @property
    def is_sparse(self) -> builtins.bool:
        """No: sparse storage is not used."""
        return False

    @property
    def is_cuda(self) -> builtins.bool:
        """Whether it lives on an NVIDIA GPU."""
        return False

    @property
    def nbytes(self) -> builtins.int:
        """Size of all elements in bytes."""
        return self.numel() * self.dtype.size

    @property
    def itemsize(self) -> builtins.int:
        """Bytes of one element."""
        return self.dtype.size

    def element_size(self) -> builtins.int:
        """Bytes of one element."""
        return self.dtype.size

    @guarded
    def size(self, dim: builtins.int | None = None) -> Any:
        """Dimensions, or one of them."""
        shape = self.shape
        try:
            return shape if dim is None else shape[normal_axis(dim, len(shape))]
        except REFUSABLE as error:
            return refuse(error, "size", self.size, (dim,), {})

    def dim(self) -> builtins.int:
        """Number of dimensions."""
        return len(self.shape)

    def numel(self) -> builtins.int:
        """Number of elements."""
        return math.prod(self.shape)

    def nelement(self) -> builtins.int:
        """Number of elements."""
        return math.prod(self.shape)

    def stride(self, dim: builtins.int | None = None) -> Any:
        """Stride of a dimension in elements, or the strides of all dimensions."""
        shape = self.shape
        if self.view_of is not None and 0 not in shape:
            found = tuple([n // self.dtype.size for n in placed(self)[1].strides])
        else:
            found = tuple(
                [math.prod([max(d, 1) for d in shape[i + 1 :]]) for i in range(len(shape))]
            )
        return found if dim is None else found[normal_axis(dim, len(shape))]

    def is_pinned(self) -> builtins.bool:
        """No: no device would gain from pinned memory."""
        return False

    def is_shared(self) -> builtins.bool:
        """Whether the memory is shared with other processes, as a batch of a loader's worker is."""
        return is_shared(self.array)  # pyright: ignore[reportAttributeAccessIssue]

    def pin_memory(self) -> Self:
        """The tensor itself; see `is_pinned`."""
        return self

    def data_ptr(self) -> builtins.int:
        """Address of the first element; the value is computed first.

        A view lies in the memory of its base.
        """
        root, _, start = placed(self)
        return root.array.ctypes.data + start if self.numel() else 0

    def untyped_storage(self) -> UntypedStorage:
        """The memory that the tensor and its views share, as bytes."""
        return UntypedStorage(placed(self)[0])

    def storage(self) -> TypedStorage:
        """The memory that the tensor and its views share, as elements."""
        return TypedStorage(placed(self)[0])

    def is_inference(self) -> builtins.bool:
        """Whether it was made in `inference_mode`, unless it is a view of a tensor that was not."""
        return getattr(self, "inferred", False)

    def is_floating_point(self) -> builtins.bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype.is_floating

    def is_complex(self) -> builtins.bool:
        """Whether the elements are complex numbers."""
        return self.dtype.is_complex

    def is_signed(self) -> builtins.bool:
        """Whether the dtype has negative numbers."""
        return self.dtype.kind in "ifc"

    def is_nonzero(self) -> builtins.bool:
        """Whether the only element is not 0."""
        return builtins.bool(self)

    def is_same_size(self, other: Handle) -> builtins.bool:
        """Whether another tensor has the same shape."""
        return self.shape == known(other.lazy.type.shape)

    def ndimension(self) -> builtins.int:
        """Number of dimensions."""
        return len(self.shape)

    def get_device(self) -> builtins.int:
        """The index of the device; -1 for the CPU."""
        return -1

    # -- conversions

    def to(
        self, *what: Any, dtype: Any = None, device: Any = None,
        copy: builtins.bool = False, non_blocking: builtins.bool = False,
        memory_format: Any = None,
    ) -> Self:  # fmt: skip
        """The tensor as another dtype or on another device; itself if nothing changes and `copy` is
        false.

        Args:
            what: a dtype, a device, or a tensor whose dtype and device are taken.
            dtype, device: the same by name.
            copy: make a copy in any case.
            non_blocking, memory_format: no effect; see `view.memory_format`.

        Example:
            >>> import weft as wf
            >>> wf.tensor([1.5]).to(wf.int64).tolist()
            [1]
        """
        number = None if device is None else number_of(device)
        check_format(memory_format)
        flags = [x for x in what if isinstance(x, builtins.bool)]  # non_blocking, copy
        for x in what:
            if isinstance(x, Handle):
                dtype, number = x.lazy.type.dtype, placed_type.device_of(x.lazy.type)
            elif is_device(x):
                number = number_of(x)
            elif x is not None and not isinstance(x, builtins.bool):
                dtype = x
        kind = self.dtype if dtype is None else as_dtype(dtype)
        here = number is None or number == placed_type.device_of(self.shown.type)
        if kind is self.dtype and here:
            same: Any = self
            return self.clone() if copy or flags[1:] == [True] else same
        found = self.lazy if kind is self.dtype else converted(self.lazy, kind)
        return wrap(found if number is None else moved(found, number), self)

    def type(self, dtype: Any = None) -> Any:
        """The tensor as another dtype; without one, PyTorch's name of its type.

        Args:
            dtype: a dtype, or a typed tensor class such as `wf.IntTensor`, or its name.

        >>> import weft as wf
        >>> wf.ones(1).type(), wf.ones(1).type("torch.LongTensor").dtype
        ('torch.FloatTensor', int64)
        """
        if dtype is None:
            return name_of(self.dtype)
        return self.to(dtype_meant(dtype) or as_dtype(dtype))

    def type_as(self, other: Handle) -> Self:
        """The tensor as the dtype of another one."""
        return self.to(other.lazy.type.dtype)

    def float(self, *, memory_format: Any = None) -> Self:
        """As float32."""
        return self.to(types.float32, memory_format=memory_format)

    def double(self, *, memory_format: Any = None) -> Self:
        """As float64."""
        return self.to(types.float64, memory_format=memory_format)

    def half(self, *, memory_format: Any = None) -> Self:
        """As float16."""
        return self.to(types.float16, memory_format=memory_format)

    def bfloat16(self, *, memory_format: Any = None) -> Self:
        """As bfloat16."""
        return self.to(types.bfloat16, memory_format=memory_format)

    def long(self, *, memory_format: Any = None) -> Self:
        """As int64."""
        return self.to(types.int64, memory_format=memory_format)

    def int(self, *, memory_format: Any = None) -> Self:
        """As int32."""
        return self.to(types.int32, memory_format=memory_format)

    def short(self, *, memory_format: Any = None) -> Self:
        """As int16."""
        return self.to(types.int16, memory_format=memory_format)

    def char(self, *, memory_format: Any = None) -> Self:
        """As int8."""
        return self.to(types.int8, memory_format=memory_format)

    def byte(self, *, memory_format: Any = None) -> Self:
        """As uint8."""
        return self.to(types.uint8, memory_format=memory_format)

    def bool(self, *, memory_format: Any = None) -> Self:
        """As bool: whether an element differs from 0."""
        return self.to(types.bool_, memory_format=memory_format)

    def cfloat(self) -> Self:
        """As complex64."""
        return self.to(types.complex64)

    def cdouble(self) -> Self:
        """As complex128."""
        return self.to(types.complex128)

    def cpu(self) -> Self:
        """The tensor on the first CPU."""
        return self.to(CPU)

    def cuda(
        self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None
    ) -> NoReturn:
        """Not available.

        Raises:
            ConfigError: there is no CUDA device.
        """
        del device, non_blocking, memory_format
        refuse_cuda("Tensor.cuda")

    def clone(self, *, memory_format: Any = None) -> Self:
        """A copy of the tensor; gradients flow through.

        >>> import weft as wf
        >>> x = wf.zeros(2)
        >>> y = x.clone().normal_()
        >>> x.tolist()
        [0.0, 0.0]
        """
        check_format(memory_format)
        return wrap(record(REGISTRY["identity"], (self.lazy,), {})[0], self)

    # -- values

    def numpy(self, *, force: builtins.bool = False) -> np.ndarray[Any, Any]:
        """The memory of the tensor as a NumPy array; not a copy.

        Args:
            force: return it even if the tensor requires grad; NumPy does not track gradients.

        Raises:
            GradientError: the tensor requires grad, outside `no_grad()`.
        """
        if self.shown.tracked and trace.now.grad_mode and not force:
            raise GradientError.here(
                "numpy: the tensor requires grad, which NumPy does not track; call detach().numpy()"
            )
        return memory_of(self)

    def item(self) -> Any:
        """The only element, as a Python number.

        Raises:
            ShapeError: it has several elements or none.
        """
        array = self.shown.array if self.window is None else None
        if array is None or aloft:
            array = self.array
        if array.size != 1:
            raise ShapeError.here(
                f"item: expected one element, got {array.size} in shape {show(self.shape)}; "
                f"index the tensor, or call tolist()"
            )
        return array.item()

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return self.array.tolist()

    def __float__(self) -> builtins.float:
        return float(self._real_item("float"))

    def _real_item(self, name: str) -> Any:
        item = self.item()
        if isinstance(item, complex) and item.imag:
            raise DTypeError.here(f"{name}: expected a real number, got {item}")
        return item.real if isinstance(item, complex) else item

    def __int__(self) -> builtins.int:
        return int(self._real_item("int"))

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> builtins.int:
        if self.dtype.is_floating:
            text = f"expected an integer tensor as an index, got one of {self.dtype}"
            raise nameless(DTypeError(text + at_user_line()))
        return int(self.item())

    def __bool__(self) -> builtins.bool:
        if self.shown.type.shape and self.numel() != 1:  # most have no axes
            raise ShapeError.here(
                f"bool: a tensor of shape {show(self.shape)} is neither true nor false; "
                f"use any() or all(), or compare one element"
            )
        return bool(self.item())
