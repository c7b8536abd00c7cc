"""Host values: values of a run that Python computes before the program runs, such as strings.

Programs have no strings. A `HostValue` is a node of a small graph beside the program; where numbers
come out (`delivered`), the program has a placeholder that the session feeds. Each node is computed
once per run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError
from weft.tf1.errors import InvalidArgumentError
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.graph import get_default_graph
from weft.tf1.framework.tensor import HOOKS, Tensor

Run = dict[int, Any]  # the results of nodes in a run
_now: Final = threading.local()


class StringType:
    """`tf.string`: strings and bytes, which only input pipelines have."""

    name = "string"
    base_dtype = property(lambda self: self)
    as_numpy_dtype = np.object_

    def __repr__(self) -> str:
        return "tf.string"


string: Final = StringType()


class HostValue:
    """`function(*inputs)`, computed by Python once per run."""

    dtype = string
    shape: Any = None

    def __init__(
        self, function: Callable[..., Any], inputs: Sequence[HostValue] = (), name: str = "Host"
    ) -> None:
        self.function = function
        self.inputs = list(inputs)
        self.name = f"{name}:0"
        self.graph = get_default_graph()

    def compute(self, run: Run, state: Any) -> Any:
        """The value in this run, in a session with this state."""
        if id(self) not in run:
            run[id(self)] = self.function(*[x.compute(run, state) for x in self.inputs])
        return run[id(self)]

    def part(self, select: Callable[[Any], Any]) -> HostValue:
        """A part of this value."""
        return HostValue(select, [self], self.name[:-2])

    def _host_fetch(self, session: Any) -> Any:
        value = self.compute(current(), session.state)
        return value.encode() if isinstance(value, str) else value

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value, in a separate run."""
        found: Any = session or HOOKS.default_session()
        return found.run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} dtype=string>"


class HostConstant(HostValue):
    """Texts that are known when the graph is built: one, or an array of them.

    Args:
        value: text or bytes, or nested lists or an array of them.

    Raises:
        DTypeError: there is something else in it.
    """

    def __init__(self, value: Any, name: str | None = None) -> None:
        given = np.asarray(value, dtype=object)
        flat = [x.encode() if isinstance(x, str) else x for x in given.ravel()]
        if not all(isinstance(x, bytes) for x in flat):
            raise DTypeError(f"constant: expected texts, got {value!r:.80}")
        self.array = np.empty(given.shape, dtype=object)
        self.array.ravel()[:] = flat
        super().__init__(lambda: self.array[()], name=name or "Const")
        self.shape = self.array.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.array, dtype=dtype)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)

    def __len__(self) -> int:
        return len(self.array)


def is_text(value: Any) -> bool:
    """Whether a plain value is text, or lists or an array that begin with one."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, np.ndarray):
        kind = value.dtype.kind
        return kind in "US" or (kind == "O" and value.size > 0 and is_text(value.flat[0]))
    return isinstance(value, str | bytes)


class HostPlaceholder(HostValue):
    """A string that must be fed in each run."""

    numpy = None

    def __init__(self, name: str | None = None) -> None:
        super().__init__(lambda: None, name=name or "Placeholder")

    def convert(self, value: Any) -> Any:
        """A feed, unchanged."""
        if not isinstance(value, str | bytes | np.ndarray):
            got = type(value).__name__
            raise InvalidArgumentError(None, None, f"feed {self.name}: expected a text, got {got}")
        return value

    def compute(self, run: Run, state: Any) -> Any:
        """The fed value."""
        if id(self) not in run:
            text = f"placeholder: expected a feed for {self.name}, got none"
            raise InvalidArgumentError(None, None, text)
        return run[id(self)]


def enter(run: Run) -> None:
    """Make this the thread's current run; dataset functions run nested inside."""
    _now.run = run


def current() -> Run:
    """The values of the thread's current run."""
    return _now.run


def delivered(value: HostValue, dtype: Any, shape: Any, name: str) -> Tensor:
    """A tensor of a host value's numbers in each run."""
    kind = as_dtype(dtype)
    graph = get_default_graph()
    dims = None if shape is None else tuple(shape)
    op = graph.emit(name, (), "placeholder", dtype=kind.ir, shape=dims, name=name)
    tensor = op.outputs[0]

    def array(x: Any) -> Any:
        found = np.asarray(x, order="C")
        if found.dtype == object:
            raise DTypeError(f"{tensor.name}: expected numbers of type {kind.name}, got texts")
        if dims is not None and not fits(found.shape, dims):
            text = f"{tensor.name}: expected an element of shape {dims}, got {found.shape}"
            raise InvalidArgumentError(None, op, text)
        return np.ascontiguousarray(found.astype(kind.ir.numpy, copy=False)).reshape(found.shape)

    graph.keys.setdefault("implicit", {})[tensor.value] = HostValue(array, [value], name)
    return tensor


def fits(shape: Sequence[int], dims: Sequence[int | None]) -> bool:
    """Whether a shape has these dimensions, as far as they are known."""
    pairs = list(zip(shape, dims, strict=False))
    return len(shape) == len(dims) and all(d is None or n == d for n, d in pairs)
