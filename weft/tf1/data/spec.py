"""Static types and shapes of a dataset's elements, in their structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import DTypeError
from weft.host.nested import Nesting
from weft.pipeline.structure import leaves, rebuilt
from weft.tf1.framework.convert import is_tensor
from weft.tf1.framework.dtypes import as_dtype, string
from weft.tf1.framework.host import host_op
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.framework.tensor_spec import TensorSpec

Dims = tuple[int | None, ...] | None


class Spec(NamedTuple):
    """A leaf: its type, and its dimensions as far as known; None for an unknown rank."""

    dtype: Any
    dims: Dims

    def batched(self, size: int | None) -> Spec:
        """The spec with an additional first axis."""
        return Spec(self.dtype, None if self.dims is None else (size, *self.dims))

    def row(self) -> Spec:
        """The spec without the first axis."""
        return Spec(self.dtype, None if self.dims is None else self.dims[1:])

    @property
    def shape(self) -> TensorShape:
        """The shape in the graph's form."""
        return as_shape(self.dims)


# A `Spec` is a leaf, although it is a tuple
SPECS: Final = Nesting(lists=False, atoms=(Spec,))
spec_map = SPECS.mapped
spec_leaves = SPECS.leaves


def of_value(x: Any) -> Spec:
    """The spec of a tensor, an array, a number or a string."""
    if is_tensor(x):
        return Spec(x.dtype.base_dtype, x.shape.as_dims())
    array = np.asarray(x)
    if array.dtype.kind in "USO":
        return Spec(string, array.shape)
    if isinstance(x, float | int) and not isinstance(x, bool | np.generic):
        array = array.astype(np.float32 if isinstance(x, float) else np.int32)
    return Spec(as_dtype(array.dtype), array.shape)


def of_types(types: Any, shapes: Any = None) -> Any:
    """The spec of TensorFlow's pair of structures, such as `output_types` and `output_shapes`."""
    if isinstance(types, dict):
        given: Any = shapes or {}
        return {key: of_types(t, given.get(key)) for key, t in types.items()}
    if isinstance(types, tuple):
        parts: Sequence[Any] = [None] * len(types) if shapes is None else shapes
        if len(parts) != len(types):
            raise DTypeError(f"output_shapes: expected {len(types)} shapes, got {len(parts)}")
        return rebuilt(types, [of_types(t, s) for t, s in zip(types, parts, strict=True)])
    dims = as_shape(shapes).as_dims()
    return Spec(as_dtype(types), dims)


def tensors_of(
    spec: Any, take: Callable[..., Any], name: str, inputs: Sequence[Tensor] = ()
) -> Any:
    """Tensors of the leaves of what `take(state, *arrays of the inputs)` gives once per run."""
    given = spec_leaves(spec)

    def elements(state: Any, *arrays: Any) -> Any:
        found = leaves(take(state, *arrays))
        return found if len(given) != 1 else found[0]

    dtypes, shapes = [s.dtype for s in given], [s.dims for s in given]
    op = host_op("IteratorGetNext", inputs, elements, dtypes, shapes, name, with_state=True)
    rest = iter(op.outputs)
    return spec_map(lambda _: next(rest), spec)


def common(first: Any, second: Any, name: str = "concatenate") -> Any:
    """The spec of elements of both, with the shapes that both have.

    Args:
        name: of the operation, for the error.

    Raises:
        DTypeError: they differ in structure or type.
    """
    if _outline(first) != _outline(second):
        raise DTypeError(f"{name}: expected elements of {_outline(first)}, got {_outline(second)}")
    others = iter(spec_leaves(second))
    return spec_map(lambda s: Spec(s.dtype, _both(s.dims, next(others).dims)), first)


def _outline(spec: Any) -> Any:
    names = spec_map(lambda s: s.dtype.name, spec)
    return (type(spec).__name__, names) if hasattr(names, "_fields") else names


def _both(a: Dims, b: Dims) -> Dims:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([m if m == n else None for m, n in zip(a, b, strict=True)])


class Specified:
    """What gives elements of a structure: their types and shapes."""

    spec: Any

    @property
    def element_spec(self) -> Any:
        """The types and shapes, in the elements' structure."""
        return spec_map(lambda s: TensorSpec(s.shape, s.dtype), self.spec)

    @property
    def output_types(self) -> Any:
        """The element types, in the elements' structure."""
        return spec_map(lambda s: s.dtype, self.spec)

    @property
    def output_shapes(self) -> Any:
        """The shapes, in the elements' structure."""
        return spec_map(lambda s: s.shape, self.spec)


def per_leaf(spec: Any, given: Any, leaf: Callable[[Any], Any]) -> Any:
    """What is given for each leaf of elements, nested as they are; one for all is given again."""

    def each(part: Any, value: Any) -> list[Any]:
        if isinstance(part, Spec):
            return [leaf(value)]
        if isinstance(part, Mapping):
            return [x for key in part for x in each(part[key], value[key])]
        return [x for p, v in zip(part, value, strict=True) for x in each(p, v)]

    found = each(spec, given)
    return found[0] if len(found) == 1 else tuple(found)
