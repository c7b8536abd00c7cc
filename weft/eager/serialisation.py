"""`save` and `load`: tensors in a safetensors file, by name or in nested dicts and lists."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.checkpoint.arrays import read_arrays, write_arrays
from weft.eager.call import leaf, wrap
from weft.eager.handle import Handle
from weft.eager.lazy import Array
from weft.errors import DataError, DTypeError
from weft.ops.base import at_user_line

TREE: Final = "weft.tree"  # in the metadata: how the arrays are nested, and what else there is
_TENSOR: Final = "tensor"
_PLAIN: Final = (str, int, float, bool, type(None))


def save(obj: Any, path: str | os.PathLike[str]) -> None:
    """Write tensors to a safetensors file, which is complete or not changed at all.

    A dict of tensors becomes a file that other libraries read by the same names. Dicts, lists and
    tuples may be nested, and hold numbers, texts, truth values and `None` as well; keys are texts
    or integers. Whether a tensor needs a gradient is not saved.

    Raises:
        DTypeError: something else is in there.
        OSError: the folder is missing or full, or may not be written to.

    Example:
        >>> import tempfile, weft as wf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     wf.save({"w": wf.ones(2), "epoch": 3}, folder + "/model.safetensors")
        ...     wf.load(folder + "/model.safetensors")
        {'w': tensor([1., 1.]), 'epoch': 3}
    """
    if isinstance(obj, Mapping) and all([_is_named(k, v) for k, v in obj.items()]):
        write_arrays(Path(path), {k: _array(v) for k, v in obj.items()})
        return
    arrays: dict[str, Array] = {}
    tree = _packed(obj, "", arrays)
    write_arrays(Path(path), arrays, {TREE: json.dumps(tree)})


def _is_named(key: Any, value: Any) -> bool:
    return isinstance(key, str) and isinstance(value, Handle | np.ndarray)


def _array(x: Any) -> Array:
    return x.array if isinstance(x, Handle) else np.asarray(x)


def _packed(obj: Any, place: str, arrays: dict[str, Array]) -> Any:
    """The structure as JSON: each part is a list of its kind and its content."""
    if isinstance(obj, Handle | np.ndarray | np.generic):
        name = place or _TENSOR
        while name in arrays:  # {"a.b": ..., "a": {"b": ...}}
            name += "_"
        arrays[name] = _array(obj)
        return [_TENSOR, name]
    if isinstance(obj, Mapping):
        items = [[_key(k), _packed(x, _within(place, k), arrays)] for k, x in obj.items()]
        return ["dict", items]
    if isinstance(obj, list | tuple):
        kind = "list" if isinstance(obj, list) else "tuple"
        return [kind, [_packed(x, _within(place, i), arrays) for i, x in enumerate(obj)]]
    if isinstance(obj, _PLAIN):
        return ["plain", obj]
    raise DTypeError(
        f"save: expected tensors, numbers or texts in dicts and lists, got {type(obj).__name__} "
        f"at {place or 'the top'!r}; save what it consists of{at_user_line()}"
    )


def _within(place: str, key: Any) -> str:
    return f"{place}.{key}" if place else str(key)


def _key(key: Any) -> str | int:
    if type(key) in (str, int):
        return key
    raise DTypeError(f"save: expected texts or integers as keys, got {key!r}{at_user_line()}")


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` has written, or the tensors by name of any other safetensors file.

    Raises:
        DataError: the file is damaged, or no safetensors file.
        OSError: there is no such file, or it may not be read.
    """
    found = read_arrays(Path(path))
    tensors = {name: wrap(leaf(array)) for name, array in found.arrays.items()}
    if TREE not in found.metadata:
        return tensors
    try:
        return _unpacked(json.loads(found.metadata[TREE]), tensors)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(f"load: {path} is damaged: its {TREE!r}: {error!r}") from None


def _unpacked(tree: Any, tensors: Mapping[str, Any]) -> Any:
    kind, content = tree
    if kind == _TENSOR:
        return tensors[content]
    if kind == "plain":
        return content
    if kind == "dict":
        return {key: _unpacked(x, tensors) for key, x in content}
    items = [_unpacked(x, tensors) for x in content]
    return {"list": list, "tuple": tuple}[kind](items)
