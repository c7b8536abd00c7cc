"""`Op`: an operation of the catalogue, and the callable that adds its nodes.

The rules of an operation, all pure:

- `dtype(*dtypes, **attrs)` and `shape(*shapes, **attrs)` give the outputs' types, and raise
  `DTypeError` / `ShapeError` with what they expected; the name and the user's line are added here.
  The shape rule of a `partial` operation also accepts unknown ranks (`None`), unknown attributes
  (`UNKNOWN`) and attribute entries that are `None`. Other rules are not called then, and their
  outputs have unknown rank.
- `reference(*arrays, **attrs)` is the definition in NumPy: test oracle, constant folding,
  interpreter.
- `fast(*arrays, **attrs)` replaces a slow reference (which may use float64) in the interpreter of
  eager programs. It computes in the inputs' own precision and is never called for half precision.
- `vjp(g, y, *x, **attrs)` returns one cotangent (or `None`) for each data input, written in
  operations, so that higher-order gradients need no further rules. `g` and `y` are tuples if there
  are several outputs. `NO_GRADIENT` says that there is none, `BY_EXPANSION` that it follows from
  the expansion, `BY_BODY` that it follows from the functions among the attributes. A rule may use
  `shape.known(x.shape)`: if that raises, the rule is called again when shapes are known.
- `normal(*shapes, **attrs)` normalizes the attributes for passes and the code generator, once
  shapes are known: axes sorted and not negative, defaults resolved.
- `lower` says how the operation becomes machine code: one of the classes of
  `weft.ops.declaration.lowering`.
- `facts` are what else passes and kernels have to know: see `weft.ops.declaration.fact`.
- `face` is what front ends have to know: see `weft.ops.declaration.face`.
- `cases()` yields the examples that drive the catalogue tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from weft.errors import DTypeError, GraphError, ShapeError, WeftError
from weft.ir.dtype import DType, as_dtype
from weft.ir.graph import current_graph
from weft.ir.node import Node, TensorType, Value, at_user_line
from weft.ir.shape import Shape, is_static
from weft.ir.signed_zero import told_apart
from weft.ops.declaration.attribute import (
    KINDS,
    REQUIRED,
    freeze,
    is_complete,
    known_value,
    signature,
)
from weft.ops.declaration.constant import constant_of
from weft.ops.declaration.face import Face
from weft.ops.declaration.fact import PLAIN, Facts
from weft.ops.declaration.lowering import Lowering

__all__ = ["REGISTRY", "Array", "Case", "Op", "as_given", "catalogue"]

Array = np.ndarray[Any, Any]


def as_given(*_: Shape, **attrs: Any) -> Mapping[str, Any]:
    """The `normal` rule of an operation whose attributes need no normalization."""
    return attrs


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
    outputs: int = 1  # -1: the shape rule decides (split)
    stateful: bool = False  # has an effect or differs between calls: never folded or merged
    partial: bool = False  # the shape rule accepts unknown shapes and attributes
    literals: tuple[DType | None, ...] = ()  # dtypes of bare numbers, if declared
    normal: Callable[..., Mapping[str, Any]] = as_given
    fast: Callable[..., Any] | None = None
    facts: Facts = PLAIN
    face: Face | None = None
    _plans: dict[Any, tuple[Mapping[str, Any], tuple[TensorType, ...]]] = field(
        default_factory=dict[Any, Any], init=False, repr=False
    )  # input types and given attributes -> attributes and types of the node

    def __call__(self, *args: Any, name: str | None = None, **attrs: Any) -> Value:
        """Add a node and return its first output; `all` returns every output.

        Raises:
            GraphError: it has as many outputs as inputs, and there are none.
        """
        outputs = self.node(args, attrs, name).outputs
        if not outputs:
            raise GraphError.here(f"{self.name}: expected at least one input, got none")
        return outputs[0]

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
        data: tuple[Value, ...] = args
        kinds: list[TensorType] = []
        for value in args:
            if not isinstance(value, Value):
                data = self._data_inputs(args)
                kinds = [value.type for value in data]
                break
            kinds.append(value.type)
        types = tuple(kinds)
        key = (types, signature(attrs)) if attrs else types
        plan = self._plans.get(key)
        if plan is None:
            try:
                return self._planned(args, data, types, attrs, key, name)
            except WeftError:
                raise
            except _PLAIN as error:
                raise self._senseless(attrs, error) from error
        return current_graph().add(self.name, data, plan[0], plan[1], name)

    def _planned(
        self, args: tuple[Any, ...], data: tuple[Value, ...], types: tuple[TensorType, ...],
        attrs: Mapping[str, Any], key: Any, name: str | None,
    ) -> Node:  # fmt: skip
        """Check and add a node that is not in `_plans` yet, and cache its plan."""
        if data is args:
            self._check_arity(args)
        exact = key is types or key[1] is not None
        full, supplied = self._attributes(attrs, exact)
        inferred = self.infer(types, full)
        if not supplied:
            if self.normal is not as_given and all([is_static(t.shape) for t in types]):
                full = self.normal(*[t.shape for t in types], **full)
            if exact:
                if len(self._plans) >= _MOST_PLANS:
                    self._plans.clear()
                self._plans[key] = full, inferred
            return current_graph().add(self.name, data, full, inferred, name)
        plain = {k: v for k, v in full.items() if k not in supplied}
        inputs = (*data, *supplied.values())
        return current_graph().add(self.name, inputs, plain, inferred, name, tuple(supplied))

    def types(
        self, types: tuple[TensorType, ...], attrs: Mapping[str, Any]
    ) -> tuple[TensorType, ...]:
        """Types of the outputs of a node with these input types and plain attributes.

        Raises:
            ShapeError, DTypeError: the inputs do not fit; the message names the user's line.
        """
        self._check_arity(types)
        return self.infer(types, self._attributes(attrs, True)[0])

    def _check_arity(self, args: tuple[Any, ...]) -> None:
        variadic = bool(self.inputs) and self.inputs[-1].startswith("*")
        least = len(self.inputs) - variadic
        if len(args) < least or (len(args) > least and not variadic):
            raise GraphError.here(
                f"{self.name}: expected inputs {', '.join(self.inputs)}, got {len(args)}"
            )

    def _data_inputs(self, args: tuple[Any, ...]) -> tuple[Value, ...]:
        if len(args) != len(self.inputs):
            self._check_arity(args)
        literals = (*self.literals, *[None] * len(args))[: len(args)]
        like = None
        for dtype, value in zip(literals, args, strict=True):
            if dtype is None and isinstance(value, Value):
                like = value.type.dtype
                break
        return tuple([
            value if isinstance(value, Value) else constant_of(value, dtype or like)
            for dtype, value in zip(literals, args, strict=True)
        ])  # fmt: skip

    def _attributes(
        self, attrs: Mapping[str, Any], exact: bool
    ) -> tuple[dict[str, Any], dict[str, Value]]:
        """Attributes with defaults and known values; and those supplied as values.

        If all are `exact`, none is or contains a value.
        """
        full: dict[str, Any] = {**self.attrs}
        supplied: dict[str, Value] = {}
        for key, value in attrs.items():
            if key not in full:
                raise GraphError.here(
                    f"{self.name}: unknown attribute {key!r}, expected one of {', '.join(full)}"
                )
            operand = None if exact else _operand(value)
            if operand is None:
                attribute = _attribute(key, self._of_kind(key, value, type(full[key])), exact)
                full[key] = self._as_annotated(key, attribute)
                continue
            if key == "axes" and operand.rank == 0:
                operand = catalogue.reshape(operand, shape=(1,))
            full[key] = known_value(operand)
            if not is_complete(full[key]):
                supplied[key] = operand
        for key, value in full.items():
            if value is REQUIRED:
                raise GraphError.here(f"{self.name}: attribute {key!r} is missing")
        return full, supplied

    def _of_kind(self, key: str, value: Any, kind: type) -> Any:
        """An attribute with a bool default must be a bool; an axis must not."""
        if kind is bool:
            if isinstance(value, _TRUTHS):
                return bool(value)
            expected = "a bool"
        elif key in ("axis", "axes") and isinstance(value, bool | np.bool_):
            expected = "an integer"
        else:
            return value
        raise DTypeError.here(f"{self.name}: {key}: expected {expected}, got {value!r}")

    def _as_annotated(self, key: str, value: Any) -> Any:
        """A scalar attribute of the class that the reference takes; a bool counts as an int."""
        annotation = self.reference.__annotations__.get(key)
        kinds = KINDS.get(annotation)
        if kinds is None or isinstance(value, kinds):
            return int(value) if type(value) is bool and annotation == "int" else value
        expected = f"{key}: expected {annotation}, got {value!r}{at_user_line()}"
        raise DTypeError(f"{self.name}: {expected}")

    def infer(
        self,
        types: tuple[TensorType, ...],
        attrs: Mapping[str, Any],
        place: Callable[[], str] = at_user_line,
    ) -> tuple[TensorType, ...]:
        """Types of the outputs, from types of the data inputs; errors end with the `place`.

        Raises:
            ShapeError, DTypeError: the inputs do not fit.
            GraphError: an attribute is invalid.
        """
        try:
            return self.derive(types, attrs)
        except (ShapeError, DTypeError) as error:
            raise type(error)(f"{self.name}: {error}{place()}") from None
        except WeftError:
            raise
        except _PLAIN as error:
            raise self._senseless(attrs, error, place) from error

    def _senseless(
        self, attrs: Mapping[str, Any], error: Exception, place: Callable[[], str] = at_user_line
    ) -> GraphError:
        """Weft's error for a rule's plain exception."""
        text = f"cannot make sense of {_shown(attrs)}: {error}{place()}"
        return GraphError(f"{self.name}: {text}")

    def derive(
        self, types: tuple[TensorType, ...], attrs: Mapping[str, Any]
    ) -> tuple[TensorType, ...]:
        """Like `infer`, but errors are raised by the rules without a place."""
        dtypes = self.dtype(*[t.dtype for t in types], **attrs)
        shapes: Any = [t.shape for t in types]
        if not self.partial and (None in shapes or not all(map(is_complete, attrs.values()))):
            shapes = None if isinstance(dtypes, DType) else (None,) * len(dtypes)
        else:
            shapes = self.shape(*shapes, **attrs)
        if isinstance(dtypes, DType):
            if self.outputs == 1:
                return (TensorType(dtypes, shapes),)
            dtypes = (dtypes,) * len(shapes)
        return tuple(TensorType(d, s) for d, s in zip(dtypes, shapes, strict=True))

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


_PLAIN: Final = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
_TRUTHS: Final = bool | np.bool_ | int  # NumPy calls numbers by them
_MOST_PLANS: Final = 1024  # for each operation; cleared at once, so that no order has to be kept


REGISTRY: dict[str, Op] = {}


class Catalogue:
    """Operations by name, for rules that use other families: `catalogue.add(x, y)`.

    So families use each other without importing each other.
    """

    def __getattr__(self, name: str) -> Op:
        try:
            return REGISTRY[name]
        except KeyError:
            raise AttributeError(f"the catalogue has no operation {name!r}") from None


catalogue: Final = Catalogue()


def _shown(attrs: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value!r}" for key, value in attrs.items()) or "no attributes"


def _attribute(key: str, value: Any, frozen: bool) -> Any:
    if key == "dtype" and value is not None:
        return as_dtype(value)
    if key == "axes" and isinstance(value, int):
        return (value,)
    return told_apart(value) if frozen else freeze(value)


def _operand(value: Any) -> Value | None:
    """The value that supplies an attribute, a packed list such as `[n, 784]`; `None` if plain."""
    if isinstance(value, Value):
        return value
    if isinstance(value, list | tuple) and _holds_value(value):
        items = [_operand(v) or v for v in cast("list[Any]", value)]
        like = next(v.dtype for v in items if isinstance(v, Value))
        packed = [v if isinstance(v, Value) else constant_of(v, like) for v in items]
        return catalogue.stack(*packed, axis=0)
    return None


def _holds_value(items: Any) -> bool:
    return any(
        isinstance(v, Value) or (isinstance(v, list | tuple) and _holds_value(v)) for v in items
    )
