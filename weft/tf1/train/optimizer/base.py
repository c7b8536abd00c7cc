"""The optimizer base: gradients, slots, and the operation that applies them.

An update works on graph values: `update(g, var, *slots, *rates)` returns the new values. For a
row-sparse gradient, equal rows are summed and the same rule runs. Where TensorFlow's sparse kernels
leave other rows alone although the rule would change them (momentum, RMSProp), the update is lazy
and keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft import ops
from weft.documentation import inherit_arguments
from weft.errors import DTypeError, GraphError
from weft.ir.node import Value
from weft.ops.optimizer.sparse import updated_rows
from weft.tf1.control import dependency
from weft.tf1.control.gradient import gradients
from weft.tf1.control.tape import GradientTape
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.default_graph import colocate_with, control_dependencies, get_collection
from weft.tf1.framework.graph import (
    computes_at_once,
    emit,
    fail,
    get_default_graph,
    name_scope,
    within,
)
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.train.optimizer.slot_creator import create_slot_with_initializer
from weft.tf1.variable import initializer as init_ops
from weft.tf1.variable.variable import Variable
from weft.tf1.variable.variable_list import trainable_variables as all_trainable

Update = Callable[..., Sequence[Value]]


class Optimizer:
    """Base class. A subclass gives its hyperparameters and slots, and names its rule's operation.

    Args:
        use_locking: accepted as in TensorFlow; has no effect.
        name: of the operations' scope, and of the slots.
    """

    _kind: str = "Apply"
    """The name of the operation that applies an update."""
    _lazy: ClassVar[bool] = False
    """Whether rows without a gradient are left alone."""

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_arguments(cls)

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise GraphError("Optimizer: expected a name")
        self._name = name
        self._use_locking = use_locking
        self._kept: tuple[str, ...] = ()
        self._options: dict[str, Any] = {}  # of the rule
        self._fresh: dict[str, Any] = {}
        self._slots: dict[str, dict[Any, Variable]] = {}
        self._extra: dict[tuple[str, Any], Variable] = {}
        self._rates: dict[str, Tensor] = {}

    # what a subclass defines
    def _hyperparameters(self) -> dict[str, Any]:
        """Names and values (numbers, tensors or functions) of the hyperparameters."""
        return {name: vars(self)[f"_{name}"] for name in self._kept}

    def _keep(self, **rates: Any) -> None:
        """Keep hyperparameters, as attributes with TensorFlow's names, such as `_momentum`."""
        self._kept = tuple(rates)
        vars(self).update({f"_{name}": rate for name, rate in rates.items()})

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        """Create the slot variables: those whose initializers `_fresh` has."""
        for var in var_list:
            for name, make in self._fresh.items():
                self.slot(var, name, self._slot_name(name), make)

    def _slot_name(self, slot: str) -> str:
        """The last part of the names of a slot's variables."""
        del slot
        return self._name

    @staticmethod
    def _rule(*values: Any, **options: Any) -> Sequence[Value]:
        """From (g, var, *slots, *rates) to the new values of var and slots."""
        raise NotImplementedError

    def _update_of(self, var: Variable) -> Update:
        """The rule with its options: equal functions for equal options, as traces need."""
        rule, names, options = type(self)._rule, tuple(self._options), tuple(self._options.values())

        def update(*values: Any) -> Sequence[Value]:
            return rule(*values, **dict(zip(names, options, strict=True)))

        return update

    def _apply(self, grad: Any, var: Variable) -> Operation:
        """The operation that updates `var`."""
        rates = [self.rate(name, var) for name in self._rates]
        slots = [
            self.slot(var, name, self._slot_name(name), make) for name, make in self._fresh.items()
        ]
        update = self._update_of(var)
        return self.emit(self._kind, grad, var, slots, rates, update, self._lazy)

    def _finish(self, update_ops: list[Operation], name_scope: str) -> Operation:
        """The operation that runs after all updates."""
        return dependency.group(*update_ops, name=name_scope)

    # public methods
    def get_name(self) -> str:
        """The name of the optimizer."""
        return self._name

    def minimize(
        self, loss: Any, global_step: Any = None, var_list: Any = None, gate_gradients: int = 1,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
        name: str | None = None, grad_loss: Any = None,
    ) -> Operation:  # fmt: skip
        """An operation that takes one step down the gradient of `loss`, a scalar or a vector's sum.

        Raises:
            GraphError: no variable has a gradient.
        """
        pairs = self.compute_gradients(
            loss,
            var_list,
            gate_gradients,
            aggregation_method,
            colocate_gradients_with_ops,
            grad_loss,
        )
        if not any(g is not None for g, _ in pairs):
            raise fail(
                GraphError,
                f"minimize: expected a gradient for at least one of "
                f"{[str(v) for _, v in pairs]}, {loss} depends on none of them",
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self, loss: Any, var_list: Any = None, gate_gradients: int = 1,
        aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Variable]]:  # fmt: skip
        """Pairs (gradient or `None`, variable) for `var_list`, by default all trainable ones."""
        del aggregation_method
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise fail(GraphError, f"gate_gradients: expected GATE_*, got {gate_gradients!r}")
        tape = GradientTape()
        with tape:
            tensor = convert_to_tensor(loss() if callable(loss) else loss)
        if not tensor.dtype.is_floating:
            raise fail(GraphError, f"minimize: expected a loss of a floating type, got {tensor}")
        if var_list is None:
            var_list = all_trainable() + get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
        variables = list(var_list) if isinstance(var_list, list | tuple) else [var_list]
        if not variables:
            raise fail(GraphError, "minimize: expected variables to optimize, there are none")
        for variable in variables:
            if not isinstance(variable, Variable):
                raise fail(DTypeError, f"minimize: expected variables, got {variable!r}")
        start = None if grad_loss is None else [grad_loss]
        if computes_at_once():
            return list(zip(tape.gradient(tensor, variables, start), variables, strict=True))
        found = gradients(
            tensor, variables, start, colocate_gradients_with_ops=colocate_gradients_with_ops
        )
        return list(zip(found, variables, strict=True))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Operation:
        """An operation that updates each variable by its gradient, then counts the step.

        Raises:
            GraphError: all gradients are `None`.
            DTypeError: a variable is not of a floating type: update its real and imaginary parts.
        """
        pairs = [(_gradient(g, v), v) for g, v in tuple(grads_and_vars)]
        if not pairs:
            raise fail(GraphError, "apply_gradients: expected variables, got none")
        present = [(g, v) for g, v in pairs if g is not None]
        if not present:
            raise fail(
                GraphError, f"apply_gradients: expected gradients for {[v for _, v in pairs]}"
            )
        for _, variable in present:
            if not variable.dtype.is_floating:
                text = f"expected variables of floating types, got {variable}"
                raise fail(DTypeError, f"apply_gradients: {text}")
        graph = present[0][1].graph
        with within(graph):
            with control_dependencies(None):
                self._create_slots([v for _, v in present])
            if computes_at_once(graph):
                graph.at_once.take_waiting()
            with name_scope(name, self._name) as scope:
                self._prepare()
                updates = [self._update(g, v) for g, v in present]
                if global_step is None:
                    train = self._finish(updates, scope)
                else:
                    with control_dependencies([self._finish(updates, "update")]):
                        step = _global_step(global_step)
                        with colocate_with(step):
                            train = step.assign_add(1, name=scope).op
            new = train not in graph.get_collection_ref(GraphKeys.TRAIN_OP)
            if computes_at_once(graph):
                graph.at_once.end_step()
            elif new:
                graph.add_to_collection(GraphKeys.TRAIN_OP, train)
            return train

    def _prepare(self) -> None:
        self._rates = {}
        for name, value in self._hyperparameters().items():
            self._rates[name] = convert_to_tensor(value() if callable(value) else value, name=name)

    def rate(self, name: str, var: Variable) -> Tensor:
        """A hyperparameter in the type of `var`."""
        tensor = self._rates[name]
        kind = var.dtype.base_dtype
        if tensor.dtype.base_dtype is kind:
            return tensor
        return emit("Cast", [tensor], "cast", dtype=kind.ir, name="Cast")

    def _update(self, grad: Any, var: Variable) -> Operation:
        with name_scope("update_" + var.op.name.replace("/", "_")), colocate_with(var):
            op = self._apply(grad, var)
            if var.constraint is None:
                return op
            with control_dependencies([op]):
                return var.assign(var.constraint(var.read_value())).op

    # slots
    def get_slot(self, var: Any, name: str) -> Variable | None:
        """The slot `name` of `var`, or `None`."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Names of the slots, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """All variables that the optimizer created, sorted by name."""
        found = [v for slot in self._slots.values() for v in slot.values()]
        found += list(self._extra.values())
        graph = get_default_graph()
        return sorted((v for v in found if v.graph is graph), key=lambda v: v.name)

    def named_variables(self) -> dict[str, Variable]:
        """All variables that the optimizer created, by slot and number of their variable."""
        found = {
            f"{name}-{i}": v
            for name, slots in self._slots.items()
            for i, v in enumerate(slots.values())
        }
        return found | {name: v for (name, _), v in self._extra.items()}

    def slot(self, var: Variable, name: str, op_name: str, initializer: Any = None) -> Variable:
        """The slot `name` of `var`; created with zeros of its shape, or by `initializer`."""
        slots = self._slots.setdefault(name, {})
        if var not in slots:
            make = initializer or init_ops.zeros_initializer()
            slots[var] = create_slot_with_initializer(var, make, var.shape, var.dtype, op_name)
        return slots[var]

    def extra(self, name: str, value: Any, like: Variable) -> Variable:
        """A variable of the optimizer itself, such as a power that every step updates."""
        key = (name, like.graph)
        if key not in self._extra:
            with colocate_with(like):
                self._extra[key] = Variable(
                    value, trainable=False, name=name, dtype=like.dtype.base_dtype
                )
        return self._extra[key]

    # updates
    def emit(
        self, kind: str, grad: Any, var: Variable, slots: Sequence[Variable],
        rates: Sequence[Tensor], update: Update, lazy: bool = False,
    ) -> Operation:  # fmt: skip
        """An update operation: new values of `var` and its slots, from their latest ones.

        Args:
            update: from (g, var, *slots, *rates) to the new values of var and slots.
            lazy: leave rows without a gradient alone.
        """
        graph = get_default_graph()
        handles = [var, *slots]
        refs = [v._ref() for v in handles]  # pyright: ignore[reportPrivateUsage]
        if isinstance(grad, IndexedSlices):
            inputs = [*refs, *rates, grad.values, grad.indices]
            build = _sparse_build(handles, len(rates), update, lazy)
            name = kind.replace("Apply", "SparseApply", 1)
        else:
            inputs = [*refs, *rates, grad]
            build, name = _dense_build(handles, len(rates), update), kind
        return graph.emit(name, inputs, build, name=name, ref=True)


def _gradient(g: Any, v: Any) -> Any:
    if not isinstance(v, Variable):
        raise fail(DTypeError, f"apply_gradients: expected a variable, got {v!r}")
    if g is None or isinstance(g, IndexedSlices):
        return g
    tensor = convert_to_tensor(g, v.dtype.base_dtype)
    if not tensor.shape.is_compatible_with(v.shape):
        raise fail(
            GraphError,
            f"apply_gradients: expected a gradient of shape {v.shape} for {v.name}, "
            f"got {tensor.shape}",
        )
    return tensor


def _global_step(step: Any) -> Variable:
    if not isinstance(step, Variable):
        raise fail(DTypeError, f"global_step: expected a variable, got {step!r}")
    return step


def _dense_build(handles: Sequence[Variable], rates: int, update: Update) -> Callable[..., Any]:
    def build(*values: Value) -> tuple[Value, ...]:
        count = len(handles)
        old = [ops.read(v.handle, latest=True) for v in handles]
        new = update(values[-1], *old, *values[count : count + rates])
        return tuple(ops.assign(v.handle, n) for v, n in zip(handles, new, strict=True))

    return build


def _sparse_build(
    handles: Sequence[Variable], rates: int, update: Update, lazy: bool
) -> Callable[..., Any]:
    def build(*values: Value) -> tuple[Value, ...]:
        count = len(handles)
        rows, indices = values[-2], values[-1]
        old = [ops.read(v.handle, latest=True) for v in handles]
        if lazy:
            new = updated_rows(old, indices, rows, update, values[count : count + rates])
        else:
            total = ops.scatter_add(ops.zeros_like(old[0]), indices, rows)
            new = update(total, *old, *values[count : count + rates])
        return tuple(ops.assign(v.handle, n) for v, n in zip(handles, new, strict=True))

    return build
