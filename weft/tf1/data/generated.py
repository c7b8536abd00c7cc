"""The elements of a Python generator as a dataset's elements, checked one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from weft.pipeline.structure import rebuilt
from weft.tf1.data.spec import Spec
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.convert import is_text
from weft.tf1.framework.dtypes import string
from weft.tf1.framework.host import fits


class Generated:
    """Elements of these types and shapes. After one that does not fit, the others follow.

    Raises:
        InvalidArgumentError: in place of an element of another structure, type or shape.
    """

    def __init__(self, elements: Iterable[Any], spec: Any) -> None:
        self._running = iter(elements)
        self._spec = spec

    def __iter__(self) -> Generated:
        return self

    def __next__(self) -> Any:
        return _conformed(self._spec, next(self._running), "element")

    def close(self) -> None:
        """Let a generator run its `finally` blocks."""
        close: Any = getattr(self._running, "close", None)
        if close:
            close()


def _conformed(spec: Any, element: Any, where: str) -> Any:
    if isinstance(spec, Spec):
        return _leaf(spec, element, where)
    if isinstance(spec, dict):
        if not isinstance(element, dict) or element.keys() != spec.keys():
            raise _refused(where, f"a dict of {sorted(spec)}", element)
        return {key: _conformed(s, element[key], f"{where}[{key!r}]") for key, s in spec.items()}
    if not isinstance(element, tuple) or len(element) != len(spec):
        raise _refused(where, f"a tuple of {len(spec)}", element)
    pairs = enumerate(zip(spec, element, strict=True))
    return rebuilt(spec, [_conformed(s, x, f"{where}[{i}]") for i, (s, x) in pairs])


def _leaf(spec: Spec, x: Any, where: str) -> Any:
    try:
        found = _texts(x) if spec.dtype is string else np.asarray(x, spec.dtype.ir.numpy)
    except (TypeError, ValueError, OverflowError):
        raise _refused(where, f"of type {spec.dtype.name}", x) from None
    if spec.dims is not None and not fits(np.shape(found), spec.dims):
        raise _refused(where, f"of shape {spec.dims}", x)
    return found


def _texts(x: Any) -> Any:
    """A text as it is, or an array of them."""
    if isinstance(x, str | bytes):
        return x
    array = np.asarray(x, object)
    if not all([is_text(item) for item in array.ravel()]):
        raise TypeError
    coded = [item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel()]
    array = np.empty(array.shape, object)
    array.ravel()[:] = coded
    return array


def _refused(where: str, expected: str, got: Any) -> InvalidArgumentError:
    shown = f"{type(got).__name__} {got!r:.60}"
    text = f"from_generator: expected {where} to be {expected}, got {shown}"
    return InvalidArgumentError(None, None, text)
