"""References to resources, and the operations that call them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.errors import DTypeError
from weft.ir.dtype import string
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import selected
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import as_shape

_RESOURCES: Final = "resources"  # of a graph's keys: handles by the operation that makes them


@dataclass(frozen=True)
class Handle:
    """A resource as operations refer to it.

    Attributes:
        tensor: the reference, for programs that show or select it.
        spec: the resource.
        selector: an index before the inputs of each call, where `spec` means one of several.
    """

    tensor: Tensor
    spec: ResourceSpec
    selector: tuple[Tensor, ...] = ()

    def call(
        self, kind: str, method: str, inputs: Sequence[Tensor] = (), dtypes: Sequence[Any] = (),
        shapes: Sequence[Any] = (), name: str | None = None, waits: bool = False,
        options: Mapping[str, Any] | None = None, beside: Sequence[Handle] = (),
    ) -> Operation:  # fmt: skip
        """An operation that calls a method, on the device of the resource.

        Args:
            kind: TensorFlow's type of the operation.
            method: the method of the resource.
            inputs: its inputs.
            dtypes: the element types of the outputs.
            shapes: the static shapes of the outputs; unknown by default.
            name: of the operation; `kind` by default.
            waits: whether the method may wait for what other runs do.
            options: plain values for the method.
            beside: other resources that the method calls, which must be in the same task.
        """
        graph: Any = self.tensor.op.graph
        known = shapes or [None] * len(dtypes)
        with graph.as_default(), _together([self, *beside]):
            return graph.emit(
                kind, [self.tensor, *inputs], "resource_call", name=name or kind,
                values=[x.used for x in (*self.selector, *inputs)],
                resource=self.spec, method=method, options=tuple((options or {}).items()),
                dtypes=tuple([as_dtype(d).base_dtype.ir for d in dtypes]),
                shapes=tuple([as_shape(s).as_dims() for s in known]), waits=waits,
            )  # fmt: skip

    def tensor_of(
        self, kind: str, method: str, dtype: Any, shape: Any = (), name: str | None = None,
        inputs: Sequence[Tensor] = (), waits: bool = False,
    ) -> Tensor:  # fmt: skip
        """The only output of such an operation."""
        return self.call(kind, method, inputs, [dtype], [shape], name, waits).outputs[0]


def resource(
    kind: str, options: Mapping[str, Any], shared_name: str | None, name: str,
    attrs: Mapping[str, Any] | None = None,
) -> Handle:  # fmt: skip
    """A resource in the default graph, and the operation that refers to it.

    Args:
        kind: TensorFlow's type, which is the kind of the resource.
        options: plain values that make it what it is.
        shared_name: all with this name are the same resource, in all sessions of a server.
        name: of the operation, and of the resource if `shared_name` is not given.
        attrs: further values of `get_attr`.
    """
    graph = get_default_graph()
    full = graph.unique_name(name)
    spec = ResourceSpec(kind, shared_name or full, graph.container_name, tuple(options.items()))
    names = {"shared_name": shared_name or "", "container": spec.container}
    shown = {**options, **{role: text.encode() for role, text in names.items()}}
    op = graph.emit(
        kind, (), "resource_call", name=full + "/", attrs={**shown, **(attrs or {})},
        resource=spec, method="handle", dtypes=(string,), shapes=((),),
    )  # fmt: skip
    return _kept(Handle(op.outputs[0], spec))


def one_of(index: Tensor, handles: Sequence[Handle], name: str) -> Handle:
    """What means one of several resources, by an index that each run computes."""
    graph = get_default_graph()
    full = graph.unique_name(name)
    spec = selected([h.spec for h in handles], full)
    with _together(handles):
        op = graph.emit(
            "GatherV2", [index], "resource_call", name=full + "/", resource=spec,
            method="handle", dtypes=(string,), shapes=((),),
        )  # fmt: skip
    return _kept(Handle(op.outputs[0], spec, (index,)))


@contextlib.contextmanager
def _together(handles: Sequence[Handle]) -> Iterator[None]:
    """Operations built inside are where all of these resources are."""
    graph = get_default_graph()
    with contextlib.ExitStack() as stack:
        for number, handle in enumerate(handles):
            op = handle.tensor.op
            stack.enter_context(graph.colocate_with(op, ignore_existing=number == 0))
        yield


def _kept(handle: Handle) -> Handle:
    handle.tensor.graph.keys.setdefault(_RESOURCES, {})[handle.tensor.op.name] = handle
    return handle


def handle_of(tensor: Any) -> Handle:
    """The handle whose reference a tensor is.

    Raises:
        DTypeError: it is none.
    """
    op = getattr(tensor, "op", None)
    found = None if op is None else op.graph.keys.get(_RESOURCES, {}).get(op.name)
    if found is None:
        raise fail(DTypeError, f"queue_ref: expected the reference of a resource, got {tensor!r}")
    return found


def dims_of(shapes: Sequence[Any] | None) -> tuple[tuple[int | None, ...] | None, ...] | None:
    """Shapes as plain values."""
    return None if shapes is None else tuple([as_shape(s).as_dims() for s in shapes])


def names_of(dtypes: Sequence[DType]) -> tuple[str, ...]:
    """Element types as plain values."""
    return tuple([d.base_dtype.name for d in dtypes])
