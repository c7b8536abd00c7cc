"""`defop`: an operation declared in one place, and `Op`, the callable that adds its nodes.

The rules of an operation, all pure:

- `dtype(*dtypes, **attrs)` and `shape(*shapes, **attrs)` give the outputs' types, and raise
  `DTypeError` / `ShapeError` with what they expected; the name and the user's line are added here.
- `reference(*arrays, **attrs)` is the NumPy meaning: oracle, constant folder, interpreter.
- `vjp(g, y, *x, **attrs)` returns one cotangent (or `None`) per data input, written in operations,
  so that higher orders come free; `NO_GRADIENT` says that there is none.
- `lower` says how the operation becomes machine code: one of the classes in this file.
- `cases()` yields the examples that drive the catalogue tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, GraphError, ShapeError
from weft.ir.dtype import DType, as_dtype
from weft.ir.graph import current_graph
from weft.ir.node import Literal, Node, TensorType, Value, user_source
from weft.ir.shape import Shape

Array = np.ndarray[Any, Any]


class _Sentinel:
    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


REQUIRED: Final = _Sentinel("REQUIRED")
"""Default of an attribute that has none."""
UNKNOWN: Final = _Sentinel("UNKNOWN")
"""Value, during inference, of an attribute that a node will supply and of which nothing is known."""


def NO_GRADIENT(*_: Any, **__: Any) -> tuple[None, ...]:
    """The `vjp` of an operation that is not differentiable, said explicitly."""
    return ()


@dataclass(frozen=True)
class Elementwise:
    """`rule(b, *scalars, **attrs)` computes one element from one element of each input.

    Inputs broadcast. `b` is the emitter of `weft.ops.emitter`.
    """

    rule: Callable[..., Any]


@dataclass(frozen=True)
class Pull:
    """`rule(b, index, *inputs, **attrs)` computes the output element at `index`.

    `index` is a tuple of `Index`; each input is a function from a tuple of `Index` to a scalar, with
    `.shape` (concrete) and `.dtype`. Movement, gathers, iota and random bits are of this kind.
    """

    rule: Callable[..., Any]


@dataclass(frozen=True)
class Reduce:
    """A reduction over `attrs["axes"]` with `attrs["keepdims"]`: `add | multiply | maximum | minimum`."""

    combine: str


@dataclass(frozen=True)
class Opaque:
    """A kernel family of the code generator, by name (matmul, convolution, sort, ...)."""

    family: str


@dataclass(frozen=True)
class Alias:
    """The output is the first input's memory seen with another shape (reshape, identity, read)."""


@dataclass(frozen=True)
class Boundary:
    """Not computed: it comes from outside (placeholder, variable, constant) or only orders others."""


@dataclass(frozen=True)
class Composite:
    """`expand(*values, **attrs)` rewrites the operation in others, once shapes are concrete."""

    expand: Callable[..., Any]


Lowering = Elementwise | Pull | Reduce | Opaque | Alias | Boundary | Composite


@dataclass(frozen=True)
class Case:
    """One example of an operation for the catalogue tests: inputs, attributes, tolerance."""

    inputs: tuple[Array, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    rtol: float = 2e-6
    atol: float = 1e-6
    differentiate: bool = True


@dataclass(frozen=True, eq=False)
class Op:
    """An operation of the catalogue; calling it adds a node to the current graph."""

    name: str
    inputs: tuple[str, ...]  # names; a last name with a star takes any number
    attrs: Mapping[str, Any]  # name -> default, or REQUIRED
    dtype: Callable[..., DType | tuple[DType, ...]]
    shape: Callable[..., Shape | tuple[Shape, ...]]
    reference: Callable[..., Any]
    vjp: Callable[..., Any]
    lower: Lowering
    cases: Callable[[], Iterable[Case]]
    outputs: int = 1  # -1: as many as the shape rule says (split)
    stateful: bool = False  # has an effect or differs from call to call: never folded or merged

    def __call__(self, *args: Any, name: str | None = None, **attrs: Any) -> Value:
        """Add a node and return its first output; `all` returns every output."""
        return self.node(args, attrs, name).outputs[0]

    def all(self, *args: Any, name: str | None = None, **attrs: Any) -> tuple[Value, ...]:
        """Add a node and return all its outputs."""
        return self.node(args, attrs, name).outputs

    def node(
        self, args: tuple[Any, ...], attrs: Mapping[str, Any], name: str | None = None
    ) -> Node:
        """Check and add a node.

        Raises:
            ShapeError, DTypeError: the inputs do not fit; the message names the user's line.
        """
        data = self._data_inputs(args)
        full, supplied = self._attributes(attrs)
        types = self.infer(tuple(v.type for v in data), full)
        plain = {k: v for k, v in full.items() if k not in supplied}
        return current_graph().add(
            self.name, (*data, *supplied.values()), plain, types, name, tuple(supplied)
        )

    def _data_inputs(self, args: tuple[Any, ...]) -> tuple[Value, ...]:
        variadic = bool(self.inputs) and self.inputs[-1].startswith("*")
        least = len(self.inputs) - variadic
        if len(args) < least or (len(args) > least and not variadic):
            raise GraphError(
                f"{self.name}: expected inputs {', '.join(self.inputs)}, got {len(args)}"
            )
        like = next((a.dtype for a in args if isinstance(a, Value)), None)
        return tuple(a if isinstance(a, Value) else constant_of(a, like) for a in args)

    def _attributes(self, attrs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Value]]:
        """Attributes with defaults and what is known of the supplied ones; the supplied ones."""
        full: dict[str, Any] = {**self.attrs}
        supplied: dict[str, Value] = {}
        for key, value in attrs.items():
            if key not in full:
                raise GraphError(
                    f"{self.name}: unknown attribute {key!r}, expected {', '.join(full)}"
                )
            if isinstance(value, Value):
                known = known_value(value)
                if not _is_complete(known):
                    supplied[key] = value
                full[key] = known
            else:
                full[key] = freeze(value)
        for key, value in full.items():
            if value is REQUIRED:
                raise GraphError(f"{self.name}: attribute {key!r} is missing")
        return full, supplied

    def infer(
        self, types: tuple[TensorType, ...], attrs: Mapping[str, Any]
    ) -> tuple[TensorType, ...]:
        """Types of the outputs, from types of the data inputs.

        An unknown rank or a wholly unknown attribute gives outputs of unknown rank.
        """
        try:
            dtypes = self.dtype(*[t.dtype for t in types], **attrs)
            if any(t.shape is None for t in types) or any(a is UNKNOWN for a in attrs.values()):
                shapes: Any = None if isinstance(dtypes, DType) else (None,) * len(dtypes)
            else:
                shapes = self.shape(*[t.shape for t in types], **attrs)
        except (ShapeError, DTypeError) as error:
            source = user_source()
            where = "" if source is None else f" (created at {source})"
            raise type(error)(f"{self.name}: {error}{where}") from None
        if isinstance(dtypes, DType):
            if self.outputs == 1:
                return (TensorType(dtypes, shapes),)
            dtypes = (dtypes,) * len(shapes)
        return tuple(TensorType(d, s) for d, s in zip(dtypes, shapes, strict=True))

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


REGISTRY: dict[str, Op] = {}


def defop(
    name: str,
    *,
    inputs: str,
    dtype: Callable[..., Any],
    shape: Callable[..., Any],
    reference: Callable[..., Any],
    vjp: Callable[..., Any],
    lower: Lowering,
    cases: Callable[[], Iterable[Case]],
    attrs: Mapping[str, Any] | None = None,
    outputs: int = 1,
    stateful: bool = False,
) -> Op:
    """Declare an operation and enter it in the registry.

    Args:
        inputs: names of the data inputs, separated by spaces, such as `"x y"` or `"*xs"`.
        attrs: attribute names with their defaults (`REQUIRED` where there is none).

    Raises:
        GraphError: the name is taken.
    """
    if name in REGISTRY:
        raise GraphError(f"defop: {name!r} is declared twice")
    op = Op(
        name, tuple(inputs.split()), attrs or {}, dtype, shape, reference, vjp, lower, cases,
        outputs, stateful,
    )  # fmt: skip
    REGISTRY[name] = op
    return op


def op_of(node: Node) -> Op:
    """The operation that `node` is an instance of.

    Raises:
        GraphError: the catalogue has no such operation.
    """
    try:
        return REGISTRY[node.op]
    except KeyError:
        raise GraphError(f"{node.describe()}: the catalogue has no operation {node.op!r}") from None


def freeze(value: Any) -> Any:
    """An attribute value in the form that nodes keep: hashable, lists as tuples, arrays as literals."""
    if isinstance(value, list | tuple):
        items: list[Any] = [freeze(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        return tuple(items)
    if isinstance(value, np.ndarray):
        return Literal(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, np.generic):
        return value.item()
    return value


def constant_of(value: Any, dtype: DType | None = None) -> Value:
    """A constant node for a Python number or an array; a bare number takes the type `dtype`."""
    if dtype is not None and not isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value).astype(dtype.numpy)
    else:
        array = np.asarray(value)
    if (
        array.dtype == np.float64
        and dtype is None
        and not isinstance(value, np.ndarray | np.generic)
    ):
        array = array.astype(np.float32)
    literal = Literal(array)
    kind = TensorType(as_dtype(array.dtype), array.shape)
    return current_graph().add("constant", (), {"value": literal}, (kind,)).outputs[0]


def _is_complete(known: Any) -> bool:
    if isinstance(known, tuple):
        return all(item is not None for item in known)  # pyright: ignore[reportUnknownVariableType]
    return known is not UNKNOWN


KNOWN_RULES: dict[str, Callable[[Node], Any]] = {}
"""Per operation: what is known, before anything runs, of an integer output that may become a shape."""


def known_value(value: Value) -> Any:
    """What is known of a value at construction: an int, a tuple of `int | None`, or `UNKNOWN`.

    Shape arithmetic such as `stack([shape(x)[0], 784])` gives `(None, 784)`.
    """
    node = value.node
    if node.op == "constant":
        array: Array = node.attrs["value"].array
        return freeze(array.tolist())
    rule = KNOWN_RULES.get(node.op)
    return UNKNOWN if rule is None else rule(node)
