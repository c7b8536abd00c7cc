"""What names and calls in a file of `torch.save` stand for: a closed table of data."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from pathlib import PosixPath, PurePosixPath
from typing import Any, Final, NamedTuple, cast

import numpy as np

from weft.formats.pytorch.pickle_reader import Name, Unpicklable, contents
from weft.formats.pytorch.storage import (
    Sparse,
    Storage,
    dequantized,
    elements_of,
    sparse_matrix,
    storage_elements,
    view,
)
from weft.ir.dtype import NAMED

Array = np.ndarray[Any, Any]
Arguments = tuple[Any, ...]
_NUMBERS: Final = "biufcSU"  # kinds of NumPy's types whose elements are plain bytes


class Makers(NamedTuple):
    """What the parts of a file become.

    Attributes:
        tensor: of an array of its own, and whether it requires a gradient.
        parameter: of such a tensor, and whether it requires a gradient.
        sparse: of a sparse matrix.
        values: PyTorch's constants by their names there, layouts for example.
    """

    tensor: Callable[[Array, bool], Any]
    parameter: Callable[[Any, bool], Any]
    sparse: Callable[[Sparse], Any]
    values: Mapping[str, Any]


ARRAYS: Final = Makers(
    lambda x, _: x, lambda x, _: x, lambda x: x._asdict(), {"torch.strided": "torch.strided"}
)  # fmt: skip
"""Tensors as arrays."""


class FileObjects:
    """The objects of one file.

    Args:
        bytes_of: the bytes of a storage, by its key and the type of its elements.
    """

    def __init__(
        self, makers: Makers, bytes_of: Callable[[Any, np.dtype[Any] | None, int], Array]
    ) -> None:
        self._makers, self._bytes_of = makers, bytes_of

    def value(self, name: Name) -> Any:
        """A type, a layout or a constant; the name itself of all others."""
        if name.module == "torch" and name.name in NAMED:
            return NAMED[name.name]
        if str(name) == "builtins.Ellipsis":
            return ...
        return self._makers.values.get(str(name), name)

    def load(self, identity: Arguments) -> Any:
        """A storage; or the name of the class of a module saved with its source."""
        kind, *rest = identity
        if kind == "module":
            return rest[0]
        if kind != "storage" or type(rest[3]) is not int or rest[3] < 0:
            raise Unpicklable(f"a persistent id of {kind!r}")
        storage, key, _, count = rest[:4]
        elements = storage_elements(storage)
        content = self._bytes_of(key, elements, count)
        if count * (elements.itemsize if elements else 1) > len(content):
            raise Unpicklable(f"{count} elements in a storage of {len(content)} bytes")
        if len(rest) > 4 and rest[4] is not None:  # a storage that is a part of another
            _, first, length = rest[4]
            if elements is None or not 0 <= first <= first + length <= count:
                raise Unpicklable("a storage outside of its base")
            content = content[first * elements.itemsize : (first + length) * elements.itemsize]
        return Storage(content, elements)

    def call(self, name: Name, arguments: Arguments) -> Any:
        """What a known function returns.

        Raises:
            Unpicklable: the name is not in the table.
        """
        known = _CALLS.get(str(name))
        if known is None:
            raise Unpicklable(f"{name}; save its parts, its state_dict() for example")
        return known(self, arguments)

    def build(self, target: Any, state: Any) -> None:
        """Sets the state of an object that has one."""
        for kind, build in _BUILDS:
            if isinstance(target, kind):
                return build(target, state)
        raise Unpicklable(f"attributes of an object of {type(target).__name__}")

    def checked(self, whole: Any) -> Any:
        """The content of a file.

        Raises:
            Unpicklable: something in it is no data.
        """
        for item in contents(whole):
            if isinstance(item, Name):
                raise Unpicklable(f"{item}; save its name")
            if isinstance(item, Storage):
                raise Unpicklable("a storage; save the tensor")
        return whole

    # -- tensors

    def tensor(self, arguments: Arguments) -> Any:
        """A strided tensor: storage, offset, shape, strides, and what later versions added."""
        requires_grad, _, metadata = (*arguments[4:], False, None, None)[:3]
        return self._strided(arguments[:4], None, requires_grad, metadata)

    def tensor_of_type(self, arguments: Arguments) -> Any:
        """The same with an element type, as the storage has none."""
        requires_grad, _, dtype, *metadata = arguments[4:]
        return self._strided(arguments[:4], elements_of(dtype), requires_grad, *metadata)

    def _strided(
        self, place: Arguments, elements: Any, requires_grad: Any, metadata: Any = None
    ) -> Any:
        storage, offset, shape, strides = place
        array = view(storage, offset, shape, strides, elements)
        marks = cast("dict[str, Any]", metadata or {})
        if set(marks) - {"conj", "neg"}:
            raise Unpicklable(f"a tensor with {', '.join(map(str, marks))}")
        array = np.conj(array) if marks.get("conj") else array
        array = np.negative(array) if marks.get("neg") else array
        return self._makers.tensor(array, bool(requires_grad))

    def parameter(self, arguments: Arguments) -> Any:
        """A parameter: its tensor, and whether it requires a gradient."""
        data, requires_grad = (*arguments, True)[:2]
        return self._makers.parameter(data, bool(requires_grad))

    def typed(self, arguments: Arguments) -> Any:
        """A tensor with attributes of its own, which are left out."""
        function, kind, inner, _ = arguments
        if str(kind) not in _TENSOR_TYPES:
            raise Unpicklable(f"{kind}; save x.as_subclass(torch.Tensor)")
        if not isinstance(function, Name) or function.module != "torch._utils":
            raise Unpicklable(f"a tensor made by {function}")
        return self.call(function, inner)

    def quantized(self, arguments: Arguments) -> Any:
        """A quantized tensor, as the numbers it stands for."""
        array = dequantized(view(*arguments[:4]), arguments[4])
        return self._makers.tensor(array, bool(arguments[5]))

    def sparse(self, arguments: Arguments) -> Any:
        """A sparse matrix."""
        layout, data = arguments
        *arrays, shape = data[:-1] if type(data[-1]) is bool else data  # whether it is coalesced
        name = str(layout).replace("weft.", "torch.")
        return self._makers.sparse(sparse_matrix(name, [*map(np.asarray, arrays)], shape))

    def without_values(self, _: Arguments) -> Any:
        """A tensor of the meta device."""
        raise Unpicklable("a tensor of the meta device, which has no values")

    def layout(self, arguments: Arguments) -> Any:
        """A layout by its name."""
        (text,) = arguments
        module, _, name = str(text).rpartition(".")
        return self.value(Name(module, name))


# -- Python's and NumPy's objects


def _plain(make: Callable[..., Any], *kinds: type) -> Callable[[FileObjects, Arguments], Any]:
    """A Python container or number of arguments of these types."""

    def made(_: FileObjects, arguments: Arguments) -> Any:
        if not all([type(argument) in kinds for argument in arguments]):
            raise Unpicklable(f"a {make.__name__} of {arguments!r:.80}")
        return make(*arguments)

    return made


def _text_bytes(_: FileObjects, arguments: Arguments) -> bytes:
    text, encoding = arguments
    if encoding != "latin1":
        raise Unpicklable(f"text in {encoding!r}")
    return cast("str", text).encode("latin1")


def _default_dict(_: FileObjects, arguments: Arguments) -> Any:
    factory = arguments[0] if arguments else None
    if factory is not None and str(factory) not in _FACTORIES:
        raise Unpicklable(f"a defaultdict of {factory}; save dict(x)")
    return defaultdict(_FACTORIES[str(factory)] if factory is not None else None)


def _numpy_dtype(_: FileObjects, arguments: Arguments) -> np.dtype[Any]:
    if not isinstance(arguments[0], str):
        raise Unpicklable(f"NumPy's type {arguments[0]!r:.80}")
    found = np.dtype(arguments[0])
    if found.kind not in _NUMBERS:
        raise Unpicklable(f"NumPy's type {found}")
    return found


def _numpy_scalar(_: FileObjects, arguments: Arguments) -> Any:
    dtype, content = arguments
    return np.frombuffer(content, _checked_dtype(dtype))[0]


def _numpy_array(_: FileObjects, arguments: Arguments) -> Array:
    """An empty array, whose state follows."""
    if str(arguments[0]) != "numpy.ndarray":
        raise Unpicklable(f"an array of {arguments[0]}")
    return np.empty(0, np.int8)


def _numpy_buffer(_: FileObjects, arguments: Arguments) -> Array:
    content, dtype, shape, order = arguments
    return np.frombuffer(content, _checked_dtype(dtype)).reshape(shape, order=order).copy(order)


def _checked_dtype(dtype: Any) -> np.dtype[Any]:
    if not isinstance(dtype, np.dtype):
        raise Unpicklable(f"NumPy's type {dtype!r:.80}")
    return cast("np.dtype[Any]", dtype)


# -- states


def _build_dict(target: OrderedDict[Any, Any], state: Any) -> None:
    """The versions of modules."""
    if not isinstance(state, dict) or set(cast("Any", state)) != {"_metadata"}:
        raise Unpicklable("attributes of an object")
    cast("Any", target)._metadata = state["_metadata"]


def _build_namespace(target: Namespace, state: Any) -> None:
    if not isinstance(state, dict):
        raise Unpicklable("a Namespace without names")
    vars(target).update(cast("dict[str, Any]", state))


def _build_dtype(target: np.dtype[Any], state: Any) -> None:
    """The order of bytes; no fields, as `_numpy_dtype` has made none."""
    if state[1] == ">" or any([part is not None for part in state[2:5]]):
        raise Unpicklable(f"NumPy's type {target} of other bytes")


def _build_array(target: Array, state: Any) -> None:
    _, shape, dtype, columns_first, content = state
    if not isinstance(content, bytes):
        raise Unpicklable("an array of objects")
    order = "F" if columns_first else "C"
    made = np.frombuffer(content, _checked_dtype(dtype)).reshape(shape, order=order)
    state = (1, made.shape, made.dtype, bool(columns_first), content)
    cast("Any", target).__setstate__(state)


_TENSOR_TYPES: Final = (
    "torch.Tensor", "torch._tensor.Tensor", "torch.nn.parameter.Parameter",
    "torch.nn.parameter.Buffer",
)  # fmt: skip
_FACTORIES: Final[Mapping[str, Callable[[], Any]]] = {
    f"builtins.{kind.__name__}": kind for kind in (int, float, bool, str, list, dict, set, tuple)
}
_BUILDS: Final[tuple[tuple[type, Callable[[Any, Any], None]], ...]] = (
    (OrderedDict, _build_dict),
    (Namespace, _build_namespace),
    (np.dtype, _build_dtype),
    (np.ndarray, _build_array),
)
_ARRAY_MODULES: Final = ("numpy.core", "numpy._core")
_CALLS: Final[Mapping[str, Callable[[FileObjects, Arguments], Any]]] = {
    "collections.OrderedDict": _plain(OrderedDict, list, dict),
    "collections.Counter": _plain(Counter, dict),
    "collections.defaultdict": _default_dict,
    "argparse.Namespace": _plain(Namespace),
    **{
        f"{module}.{kind.__name__}": _plain(kind, str)
        for module in ("pathlib", "pathlib._local")
        for kind in (PosixPath, PurePosixPath)
    },
    "torch.Size": _plain(tuple, list, tuple),
    "torch.device": _plain(lambda *given: ":".join(map(str, given)), str, int),
    "_codecs.encode": _text_bytes,
    **{
        f"builtins.{kind.__name__}": _plain(kind, *of)
        for kind, of in (
            (set, (list,)), (frozenset, (list,)), (complex, (float,)), (bytearray, (bytes,)),
            (bytes, ()),
            (slice, (int, type(None))),
        )
    },
    **dict.fromkeys(["builtins.range", "builtins.xrange"], _plain(range, int)),
    "numpy.dtype": _numpy_dtype,
    **{f"{module}.multiarray.scalar": _numpy_scalar for module in _ARRAY_MODULES},
    **{f"{module}.multiarray._reconstruct": _numpy_array for module in _ARRAY_MODULES},
    **{f"{module}.numeric._frombuffer": _numpy_buffer for module in _ARRAY_MODULES},
    "torch._utils._rebuild_tensor": FileObjects.tensor,
    "torch._utils._rebuild_tensor_v2": FileObjects.tensor,
    "torch._utils._rebuild_tensor_v3": FileObjects.tensor_of_type,
    "torch._utils._rebuild_meta_tensor_no_storage": FileObjects.without_values,
    "torch._utils._rebuild_parameter": FileObjects.parameter,
    "torch._utils._rebuild_parameter_with_state": FileObjects.parameter,
    "torch._utils._rebuild_qtensor": FileObjects.quantized,
    "torch._utils._rebuild_sparse_tensor": FileObjects.sparse,
    "torch._tensor._rebuild_from_type_v2": FileObjects.typed,
    "torch.serialization._get_layout": FileObjects.layout,
}  # fmt: skip
