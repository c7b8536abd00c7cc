"""A loop over slices as one call, in eager execution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import ops
from weft.ir.node import TensorType, Value
from weft.ir.shape import known
from weft.tf1.control.region import Region, inside, stand_in
from weft.tf1.eager.tensor import SMALL, EagerTensor, array_in
from weft.tf1.framework.convert import convert_to_tensor, emit_constant
from weft.tf1.framework.graph import Graph, get_default_graph
from weft.tf1.framework.tensor import Tensor
from weft.tf1.variable.variable import variable_of

Step = Callable[[list[Tensor], list[Tensor]], tuple[list[Tensor], list[Tensor]]]


class _Body(Graph):
    """The graph of a step.

    Attributes:
        outer: tensors from outside that it uses.
        held: what stands for them inside.
    """

    def __init__(self) -> None:
        super().__init__()
        self.outer: list[Tensor] = []
        self.held: list[Tensor] = []
        self.capture = self._captured

    def _captured(self, tensor: Tensor) -> Tensor:
        for outer, held in zip(self.outer, self.held, strict=True):
            if outer is tensor:
                return held
        if isinstance(tensor, EagerTensor) and tensor.variable is None:
            array = array_in(tensor.held) if not tensor.dtype.is_floating else None
            if array is not None and array.size <= SMALL:
                return emit_constant(array, "Const")
        self.outer.append(tensor)
        self.held.append(stand_in(self, tensor.used.type, "outer"))
        return self.held[-1]

    def own(self, x: Any) -> Tensor:
        """A result of the step as a tensor of this graph."""
        tensor = convert_to_tensor(x)
        return tensor if tensor.graph is self else self._captured(tensor)


def scanned(
    step: Step, state: Sequence[Tensor], xs: Sequence[Tensor], reverse: bool
) -> tuple[list[Tensor], list[Tensor]] | None:
    """The last state and the stacked results; `None` if a step does more than compute."""
    inner = _Body()
    try:
        with inner.as_default(), inside(inner):
            held = [stand_in(inner, x.used.type, "state") for x in state]
            rows = [stand_in(inner, _slice(x), "slice") for x in xs]
            new, ys = step(held, rows)
            results = [inner.own(x) for x in (*new, *ys)]
        arguments = [x.value for x in (*held, *rows, *inner.held)]
        region = Region(inner, 0, arguments, [x.used for x in results])
        if region.assigned or region.read or region.captured:
            return None
        body = region.function((), (), ())
    except Exception:  # it reads values, or is wrong: turn by turn it is told
        return None
    count = len(state)
    if [v.type for v in body.outputs[:count]] != [x.used.type for x in state]:
        return None
    options: dict[str, Any] = {"carried": count, "mapped": len(xs), "reverse": reverse}

    def build(*values: Value) -> Sequence[Value]:
        return ops.scan.all(*values, body=body, length=len(xs[0]), **options)

    outer = [t if t.has_value else convert_to_tensor(variable_of(t, "scan")) for t in inner.outer]
    inputs = [*state, *xs, *outer]
    found = list(get_default_graph().emit("While", inputs, build, name="While").outputs)
    return found[:count], found[count:]


def _slice(x: Tensor) -> TensorType:
    return TensorType(x.used.dtype, known(x.used.shape)[1:])
