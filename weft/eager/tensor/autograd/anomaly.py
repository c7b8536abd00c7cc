"""Finds the origin of a NaN: programs run node by node, and each value is checked.

`find_nan` runs a whole step this way, `detect_anomaly` each backward pass.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from weft.eager.record.listing.expansion import Expanded, expand
from weft.eager.record.pending.lazy import Array, Lazy, Record, serials
from weft.eager.record.pending.mode import Setting, Switched
from weft.eager.record.pending.state import compute, flush, trace
from weft.eager.record.recognition.structure import Structure
from weft.eager.record.run.recovery import undo
from weft.eager.tensor.generator import default_generator
from weft.errors import GradientError
from weft.ir.dtype import as_dtype
from weft.ir.node import Node, Source, Value
from weft.ir.shape import show
from weft.ops.boundary.state import CONSTANT, placeholder
from weft.ops.call import Subgraph, call
from weft.ops.declaration import op_of
from weft.transform.interpreter import evaluate_node

__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]

GRADIENTS: Final = "gradients"


@dataclass(frozen=True)
class Finding:
    """The first NaN or infinity.

    Attributes:
        op: what computed it.
        phase: `"forward"`, `"backward"`, `"optimizer"`, or `"input"` for a value that was given.
        source: the user's line; in a backward pass, that of the forward operation.
        index: of the first such element.
        value: that element.
        inputs: what it was computed from, as text.
    """

    op: str
    phase: str
    source: Source | None
    index: tuple[int, ...]
    value: float
    type: str
    inputs: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f" at [{', '.join(map(str, self.index))}]" if self.index else ""
        verb = "was given to" if self.phase == "input" else "comes out of"
        what = f"{self.value} {verb} {self.op}{place} of {self.type}"
        line = "" if self.source is None else f" (created at {self.source})"
        phase = "" if self.phase == "input" else f", in the {self.phase} pass"
        phase = ", in the optimizer's update" if self.phase == "optimizer" else phase
        return "\n    ".join([what + phase + line, *self.inputs])


@dataclass
class Report:
    """The report of `find_nan`; true if it found a NaN.

    Attributes:
        nan: where the first NaN is, or `None`.
        infinity: where finite numbers first gave an infinity, before that NaN.
        restored: how many arrays that the step changed in place were restored.
    """

    nan: Finding | None = None
    infinity: Finding | None = None
    restored: int = 0

    def __bool__(self) -> bool:
        return self.nan is not None

    def __repr__(self) -> str:
        if self.nan is None:
            lines = ["find_nan: no NaN in any value that the step has computed"]
        else:
            lines = [f"find_nan: {self.nan}"]
        if self.infinity is not None:
            lines.append(f"  before that, {self.infinity}" if self.nan else f"  {self.infinity}")
        lines.append(
            f"  {self.restored} arrays that the step changed in place were put back; gradients and "
            "what Python has counted were not"
        )
        return "\n".join(lines)


@dataclass
class Inspector:
    """Runs structures by the NumPy references and checks every floating-point value.

    Attributes:
        backward: whether it checks gradients only.
        before: arrays changed in place, with their old contents.
    """

    backward: bool = False
    report: Report = field(default_factory=Report)
    before: list[tuple[Array, Array]] = field(default_factory=list[tuple[Array, Array]])

    def __call__(self, structure: Structure, leaves: Sequence[Array]) -> list[Array]:
        """The outputs' arrays; in-place results are written to their leaves."""
        if self.report.nan is None and not self.backward:
            self._look_at_leaves(structure, leaves)
        found = self._run(structure, expand(structure), leaves)
        results: list[Array] = []
        for array, home in zip(found, structure.homes, strict=True):
            if home < 0:
                results.append(np.array(array, order="C"))
                continue
            memory = leaves[home]
            if not any([memory is known for known, _ in self.before]):
                self.before.append((memory, memory.copy()))
            memory[...] = array
            results.append(memory)
        return results

    def restore(self) -> None:
        """Restore what was changed in place."""
        for memory, content in self.before:
            memory[...] = content
        self.report.restored = len(self.before)

    def _look_at_leaves(self, structure: Structure, leaves: Sequence[Array]) -> None:
        for lazy, array in zip(structure.leaves, leaves, strict=True):
            place = _first(array, np.isnan)
            if place is None:
                continue
            made = lazy.record
            user = made or next((r for r in structure.records if lazy in r.inputs), None)
            name = "an operation" if user is None else user.plan.name
            phase = "input" if made is None else "forward"
            source = None if user is None else user.source
            self.report.nan = _finding(array, place, name, phase, source)
            return

    def _run(
        self, structure: Structure, expanded: Expanded, leaves: Sequence[Array]
    ) -> list[Array]:
        values: dict[Value, Array] = dict(zip(expanded.feeds, leaves, strict=True))
        nodes = _needed(expanded, values)
        last = {v: node for node in nodes for v in node.inputs}
        kept = set(expanded.outputs)
        phases = _phases(structure.records)
        position = {node: i for i, node in enumerate(expanded.graph.nodes)}
        for node in nodes:
            arrays = [values[v] for v in node.inputs]
            at = bisect_right(expanded.begins, position[node]) - 1
            found = self._evaluated(node, arrays, phases[at] if at >= 0 else "forward")
            for value, array in zip(node.outputs, found, strict=True):
                values.setdefault(value, array)
            for v in node.inputs:
                if last[v] is node and v not in kept:
                    values.pop(v, None)
        return [values[v] for v in expanded.outputs]

    def _evaluated(self, node: Node, arrays: Sequence[Array], phase: str) -> Sequence[Array]:
        """The results of a node; a call of a traced function is checked inside."""
        if op_of(node) is CONSTANT:
            return (node.attrs["value"].array,)
        phase = "backward" if GRADIENTS in node.name.split("/") else phase
        function = node.attrs["function"] if op_of(node) is call else None
        if isinstance(function, Subgraph):
            values = dict(zip(function.inputs, arrays, strict=True))
            for inner in function.nodes:
                found = self._evaluated(inner, [values[v] for v in inner.inputs], phase)
                values.update(zip(inner.outputs, found, strict=True))
            return [values[v] for v in function.outputs]
        found = evaluate_node(node, arrays)
        if self.report.nan is None and (phase == "backward" or not self.backward):
            self._look(node, arrays, found, phase)
        return found

    def _look(
        self, node: Node, inputs: Sequence[Array], outputs: Sequence[Array], phase: str
    ) -> None:
        for array in outputs:
            place = _first(array, np.isnan)
            if place is not None:
                told = _told(inputs, array, place)
                self.report.nan = _finding(array, place, node.op, phase, node.source, told)
                return
            if self.report.infinity is None and all([_first(x, np.isinf) is None for x in inputs]):
                place = _first(array, np.isinf)
                if place is not None:
                    told = _told(inputs, array, place)
                    found = _finding(array, place, node.op, phase, node.source, told)
                    self.report.infinity = found


def _needed(expanded: Expanded, fed: dict[Value, Array]) -> list[Node]:
    """The nodes to run, in order."""
    wanted = {v.node for v in expanded.outputs if v not in fed}
    order: list[Node] = []
    for node in reversed(expanded.graph.nodes):
        if node in wanted and op_of(node) is not placeholder:
            order.append(node)
            wanted.update([v.node for v in node.inputs if v not in fed])
    return order[::-1]


def _phases(records: Sequence[Record]) -> list[str]:
    """For each record, the phase of the training step that it belongs to."""
    after: set[Lazy] = set()  # what depends on gradients
    phases: list[str] = []
    for record in records:
        if record.plan.name == GRADIENTS:
            phases.append("backward")
        else:
            follows = any([x in after for x in record.inputs])
            in_place = any([y.home is not None for y in record.outputs])
            phases.append("optimizer" if follows and in_place else "forward")
        if phases[-1] == "backward" or any([x in after for x in record.inputs]):
            after.update(record.outputs)
    return phases


def _first(array: Array, test: Callable[[Array], Array]) -> tuple[int, ...] | None:
    """The index of the first element that a test finds; `None` if there is none."""
    if as_dtype(array.dtype).kind not in "fc":
        return None
    hits = test(array)
    if not hits.any():
        return None
    return tuple([int(i) for i in np.unravel_index(int(np.argmax(hits)), array.shape)])


def _finding(
    array: Array, place: tuple[int, ...], op: str, phase: str, source: Source | None,
    told: tuple[str, ...] = (),
) -> Finding:  # fmt: skip
    kind = f"{as_dtype(array.dtype)} {show(array.shape)}"
    return Finding(op, phase, source, place, array[place].item(), kind, told)


def _told(inputs: Sequence[Array], output: Array, place: tuple[int, ...]) -> tuple[str, ...]:
    """What an element was computed from: the elements at its index, or the range of an input."""
    lines: list[str] = []
    for i, x in enumerate(inputs):
        kind = f"input {i}, {as_dtype(x.dtype)} {show(x.shape)}"
        if x.shape == output.shape:
            lines.append(f"{kind}: {x[place].item()} there")
        elif x.size:
            lines.append(f"{kind}: from {x.min().item()} to {x.max().item()}")
    return tuple(lines)


def find_nan(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Report:
    """Run a training step with checks and report where the first NaN comes from.

    The step runs node by node in NumPy, which is slow. Afterwards parameters, everything else that
    was changed in place, and the random generator are restored: dropout drops the same elements in
    the real step.

    Args:
        step: the forward pass, and the backward pass and update if they are to be checked; called
            with the other arguments. Its exceptions are passed on unless a NaN was found.

    Returns:
        A report: true if there is a NaN. Printed, it shows the operation, the line of the program,
        the first bad element and what that was computed from.

    Example:
        >>> import weft as wf
        >>> x = wf.tensor([1.0, -1.0], requires_grad=True)
        >>> report = wf.find_nan(lambda: wf.log(x).sum())
        >>> report.nan.op, report.nan.index
        ('log', (1,))
    """
    flush()
    start = next(serials)
    inspector = Inspector()
    state = default_generator.get_state()
    with Setting("inspect", inspector):
        try:
            kept = step(*args, **kwargs)
            flush()
            del kept
        except Exception:
            undo(start)
            if not inspector.report:
                raise
        finally:
            default_generator.set_state(state)
            inspector.restore()
    return inspector.report


def detect_anomaly(check_nan: bool = True) -> Setting:
    """Inside it, a backward pass that computes a NaN raises an error that names the forward line.

    Backward passes then run at once, node by node, which is slow: for debugging only. So do
    gradients of `weft.func` and functions traced by `jit` or `vmap`.
    """
    return Setting("anomaly", check_nan)


def set_detect_anomaly(mode: bool, check_nan: bool = True) -> Setting:
    """Turn `detect_anomaly` on or off from now on; as a context manager, until its end."""
    return Switched("anomaly", mode and check_nan)


def is_anomaly_enabled() -> bool:
    """Whether backward passes are checked."""
    return trace.now.anomaly


def check_gradients(gradients: Sequence[Lazy], only: bool = True) -> None:
    """In anomaly mode, compute gradients now and check everything on the way.

    While a function is traced there are no values: its results are checked afterwards.

    Args:
        only: whether the values are all gradients; otherwise only gradients among their inputs
            count.

    Raises:
        GradientError: there is a NaN.
    """
    if not trace.now.anomaly or trace.now.depth:
        return
    inspector = Inspector(backward=not only)
    with Setting("inspect", inspector):
        compute(gradients)
    if inspector.report:
        found = inspector.report
        more = "" if found.infinity is None else f"\n  before that, {found.infinity}"
        raise GradientError(f"backward: {found.nan}{more}")
    for g in gradients if only else ():
        place = None if g.array is None else _first(g.array, np.isnan)
        if g.array is not None and place is not None:
            found = _finding(g.array, place, "the user's own function", "backward", None)
            raise GradientError(f"backward: {found}")
