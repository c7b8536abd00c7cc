"""Tensors for other libraries: NumPy, DLPack, copying, other processes."""

from __future__ import annotations

import copy
import ctypes
from typing import Any, Final, Self

import ml_dtypes
import numpy as np

from weft.eager.record.pending.lazy import Array
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.conversion import array_from, copied, showing
from weft.eager.tensor.view.view_transform import memory_of
from weft.errors import ConfigError, DTypeError, GradientError
from weft.ir.hooks import HOOKS
from weft.runtime.memory.anonymous import array_on, descriptor_of, is_shared, shared_copy

_CPU: Final = 1  # kDLCPU
# Byte offset of the dtype in the struct of a capsule: after the data pointer, the device (two
# int32) and the rank (int32). A versioned struct begins with a header of 32 bytes.
_TYPE_AT: Final = {b"dltensor": 20, b"dltensor_versioned": 52}
_UNSIGNED: Final = 1
_BFLOAT: Final = 4
_SIXTEEN: Final = 16


class _Element:
    """Patches the dtype in a DLPack capsule for bfloat16, which NumPy does not know."""

    def __init__(self, capsule: Any) -> None:
        for name, place in _TYPE_AT.items():
            if _is_valid(capsule, name):
                self._code = ctypes.c_uint8.from_address(_pointer(capsule, name) + place)
                self._bits = ctypes.c_uint8.from_address(_pointer(capsule, name) + place + 1)

    def exchange(self, old: int, new: int) -> bool:
        """Change the type code, if it is `old` with 16 bits."""
        found = self._code.value == old and self._bits.value == _SIXTEEN
        if found:
            self._code.value = new
        return found


_is_valid: Final = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
_pointer: Final = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class _Held:
    """A capsule already taken from its owner, as a DLPack producer."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)


def from_dlpack(x: Any) -> Any:
    """A tensor that shares the memory of another library's array, or of a DLPack capsule.

    As with `from_numpy`, changes of either are seen by the other.

    Raises:
        ConfigError: it is not in this computer's memory.
        DTypeError: it has elements that tensors cannot have.

    Example:
        >>> import numpy as np
        >>> import weft as wf
        >>> wf.from_dlpack(np.arange(3)).tolist()
        [0, 1, 2]
    """
    if is_capsule(x):
        return _opened(x)
    kind, _ = x.__dlpack_device__()
    if kind != _CPU:
        text = f"from_dlpack: expected memory of the CPU, got device type {int(kind)}"
        raise ConfigError.here(text)
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # written before DLPack had versions
        capsule = x.__dlpack__()
    return _opened(capsule)


def is_capsule(x: Any) -> bool:
    """Whether it is a DLPack capsule, as returned by `__dlpack__`."""
    return any(_is_valid(x, name) for name in _TYPE_AT)


def _opened(capsule: Any) -> Any:
    """A tensor that shares the memory of a capsule."""
    bfloat = _Element(capsule).exchange(_BFLOAT, _UNSIGNED)
    try:
        array = np.from_dlpack(_Held(capsule))
    except (BufferError, RuntimeError) as error:
        raise DTypeError.here(f"from_dlpack: {error}") from None
    array = array.view(ml_dtypes.bfloat16) if bfloat else array
    return showing(array_from(array, None, copy=False))


class Interchange(Handle):
    """Protocols by which other libraries take tensors."""

    __slots__ = ()
    __array_priority__ = 1000  # NumPy's operators defer to the tensor's

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(_plain(self, "numpy"), dtype, copy=copy)

    def __array_wrap__(
        self, array: Array, context: Any = None, return_scalar: bool = False
    ) -> Self:
        return wrap(leaf(array_from(array, None, copy=False)), self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return HOOKS.array_namespace()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        if stream is not None and not isinstance(stream, int):
            raise DTypeError.here(f"__dlpack__: expected a stream's number or None, got {stream!r}")
        array = _plain(self, "__dlpack__")
        options: dict[str, Any] = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        given: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        if array.dtype != ml_dtypes.bfloat16:
            return array.__dlpack__(**given)  # the CPU has no streams
        capsule = array.view(np.uint16).__dlpack__(**given)
        _Element(capsule).exchange(_UNSIGNED, _BFLOAT)
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)

    def __copy__(self) -> Self:
        x: Any = self
        found: Any = x.detach().requires_grad_(self.lazy.tracked)
        found.__dict__.update(x.__dict__)
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        lazy = _leaf_only(self, "deepcopy").lazy
        found: Any = type(self).__new__(type(self))
        found.adopt(copied(lazy))
        memo[id(self)] = found
        found.requires_grad_(lazy.tracked)
        if getattr(self, "lasting", False):
            found.lasting = True
        found._grad = copy.deepcopy(self._grad, memo)
        found.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return found

    def share_memory_(self) -> Self:
        """Move the tensor to memory that processes share, to which it is passed without a copy.

        Processes that are started afterwards see each other's changes in place. Those of
        `weft.multiprocessing` are passed the memory, forked ones have it. The tensor and its views
        stay one tensor. It is no error if it lies there already.

        Raises:
            GradientError: gradients flow through it to another tensor.
        """
        root: Handle = _leaf_only(self, "share_memory_")
        while root.window is not None:
            root = root.window.base  # pyright: ignore[reportAssignmentType]
        if not is_shared(root.array):
            root.move(shared_copy(root.array))
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        lazy = _leaf_only(self, "passing to another process").lazy
        state = getattr(self, "__dict__", None) or None
        return _rebuilt, (type(self), self.array, lazy.tracked), state


def _plain(x: Handle, name: str) -> Array:
    """The memory of a tensor that requires no grad."""
    memory = memory_of(x)  # first: while a function is traced there is none
    if x.lazy.tracked:
        raise GradientError.here(
            f"{name}: the tensor requires grad, which other libraries do not track; pass "
            f"its detach()"
        )
    return memory


def _leaf_only(x: Handle, what: str) -> Handle:
    if x.lazy.tracked and x.lazy.leaf is None:
        raise GradientError.here(
            f"{what}: expected a leaf, got the result of an operation that gradients flow through; "
            f"detach() it first"
        )
    return x


def shared_parts(x: Handle) -> tuple[Any, ...] | None:
    """What another process needs to share the memory of a tensor of `share_memory_`.

    Returns:
        A descriptor, and arguments of `on_shared`; `None` if the tensor has other memory.
    """
    array = x.array
    memory = None if x.window is not None else descriptor_of(array)
    if memory is None or not array.flags.c_contiguous:
        return None
    return memory, (type(x), x.lazy.type.dtype, array.shape, x.lazy.tracked)


def on_shared(memory: int, what: tuple[Any, ...]) -> Any:
    """The tensor of another process, in the memory that it shares."""
    kind, dtype, shape, requires_grad = what
    x = _rebuilt(kind, array_on(memory, dtype.numpy, shape), requires_grad)
    x.lend()
    return x


def _rebuilt(kind: type[Handle], array: Array, requires_grad: bool) -> Any:
    """A tensor that came from another process."""
    x: Any = kind.__new__(kind)
    x.adopt(leaf(array))
    return x.requires_grad_(requires_grad)
