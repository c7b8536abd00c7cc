"""The optimizer base: parameter groups, state, and one recorded update of all parameters.

A step is one recorded call, so it becomes part of the same program as the backward pass. Everything
that changes from step to step (learning rate, bias corrections) is an input of that program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, dataclass_transform

from weft.documentation import inherit_arguments
from weft.eager.functions.api import Tensor, enable_grad
from weft.eager.record.call.interned_type import intern
from weft.eager.record.call.placed_type import device_of
from weft.eager.record.memory import memory_pool
from weft.eager.record.memory.snapshot import is_open
from weft.eager.record.pending.determinism import are_deterministic_algorithms_enabled, end_program
from weft.eager.record.pending.lazy import Lazy, known
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import wrap
from weft.eager.tensor.lookup import UsesByPass, is_large, looked_up, pays
from weft.eager.tensor.scalar import number
from weft.errors import DTypeError, OptimizerError
from weft.host.garbage_collection import uncollected
from weft.host.interrupt import Uninterrupted
from weft.ir.dtype import DType, as_dtype
from weft.ops.optimizer.rule import Rule
from weft.ops.optimizer.rule import Update as Update
from weft.ops.refusal import GuardedMaking
from weft.optim.carried import Known, Scalars, advance, joined
from weft.optim.hook import OF_ALL
from weft.optim.hook import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from weft.optim.hook import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from weft.optim.lag import Lagged, rule_of
from weft.optim.option import (
    Option,
    constructor,
    decays,
    hint,
    nonnegative,
    option,
    taken_options,
)
from weft.optim.saved_state import SavedState
from weft.optim.update import DIFFERENTIABLE_UPDATE, UPDATE, UPDATE_OF_ROWS, Bucket, arithmetic
from weft.transport.division import division_of

Group = dict[str, Any]
Shapes = tuple[tuple[str, tuple[int, ...]], ...]
Buckets = dict[tuple[int, int, DType, Scalars, Shapes], list[tuple[Tensor, Tensor]]]
"""Parameters and their gradients, by group, step, dtype, scalars as the step before left them, and
shapes of state."""
Counted = Sequence[tuple[Scalars, Sequence[Tensor]]]
"""Parameters whose step counts were incremented, by scalars as the step before left them."""


@dataclass_transform(eq_default=False, field_specifiers=(option, nonnegative, decays, hint))
class Optimizer(SavedState, GuardedMaking):
    """Base class: a subclass gives the update rule in graph operations, and the rule's numbers.

    Its options are fields (`weft.optim.option`), from which its constructor is made. What they
    require together is checked by `__post_init__`. A subclass may also write a constructor itself.

    Args:
        params: tensors, or dictionaries with `params` and the options of their group.
        defaults: options of groups that do not give their own.

    Raises:
        OptimizerError: no parameters, one that is not a leaf, or one that occurs twice.
    """

    rule: ClassVar[Rule]
    """`rule(p, g, *slots, hyper, **flags) -> Update`, a function of graph values."""
    count: Callable[[int], Any] | None
    """Called with 1 at each update, and with -1 when an update is undone.

    Ctrl-C never comes between the update and the call.
    """
    takes_rows: ClassVar[bool] = False
    differentiable: bool = False
    may_lag: ClassVar[bool] = False
    """Whether table rows without a gradient may be updated later, as the rule is elementwise."""

    elementwise: ClassVar[bool] = True
    """Whether each element is updated on its own, so that a shard of a parameter can be."""

    _options: ClassVar[dict[str, Option]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        new = taken_options(cls)
        merged = {**cls._options, **new}
        cls._options = dict(sorted(merged.items(), key=lambda item: item[1].keyword))
        if new and "__init__" not in vars(cls):
            cls.__init__ = constructor(cls, cls._options, partial(_made, fields=cls._options))
            inherit_arguments(cls)
        super().__init_subclass__(**options)

    def __post_init__(self) -> None:
        """Checks what options require together; called by a constructor made from fields."""

    def __init__(self, params: Iterable[Any], defaults: Group) -> None:
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self.steps_made = 0
        self.count: Callable[[int], Any] | None = None
        self._lagged: dict[Tensor, Lagged] = {}
        self._hooks: dict[str, dict[int, Callable[..., Any]]] = {}
        if isinstance(params, Tensor):
            raise DTypeError.here(
                f"{type(self).__name__}: expected an iterable of tensors, got one tensor; pass "
                f"[tensor]"
            )
        entries: list[Any] = list(params)
        if not entries:
            raise OptimizerError.here(f"{type(self).__name__}: got no parameters")
        groups = entries if isinstance(entries[0], dict) else [{"params": entries}]
        for group in groups:
            self.add_param_group(group)

    # -- what a subclass defines

    def numbers(self, group: Group, step: int) -> dict[str, float]:
        """The numbers that the rule needs at this step (counted from 1).

        `group` also has the numbers named by `carries`, as the step before left them.
        """
        raise NotImplementedError

    def scalars(self, group: Group, step: int) -> dict[str, float]:
        """The numbers named by `carries`, as `step` steps with today's options would leave them.

        They are the first ones, and those of a state that lacks them.
        """
        return {}

    def carried(self, group: Group, step: int) -> dict[str, float]:
        """The same numbers after this step; `group` has them as the step before left them."""
        return self.scalars(group, step)

    def flags(self, group: Group, step: int) -> dict[str, Any]:
        """The options that decide the rule's structure."""
        return {}

    def slots(self, group: Group) -> dict[str, float]:
        """Names of the state tensors of a parameter, and their initial values."""
        return {}

    def shapes(self, p: Tensor) -> Shapes:
        """Names and shapes of a parameter's state tensors, unless all slots have its shape."""
        return ()

    # -- groups

    def add_param_group(self, group: Group) -> None:
        """Add parameters, with their own options.

        Raises:
            OptimizerError: as in the constructor.
        """
        params = group["params"]
        tensors: list[Tensor] = [params] if isinstance(params, Tensor) else list(params)
        known = {id(p) for g in self.param_groups for p in g["params"]}
        for p in tensors:
            self._check(p, known)
            known.add(id(p))
        self.param_groups.append({**self.defaults, **group, "params": tensors})

    def _check(self, p: Any, known: set[int]) -> None:
        name = type(self).__name__
        if not isinstance(p, Tensor):
            raise OptimizerError.here(f"{name}: expected tensors, got {type(p).__name__}")
        if not (p.is_leaf or self.differentiable):
            raise OptimizerError.here(
                f"{name}: expected leaves, got the result of an operation; optimize what it was "
                f"computed from"
            )
        if id(p) in known:
            raise OptimizerError.here(f"{name}: a parameter is given twice")
        if not self.elementwise and division_of(p) is not None:
            raise OptimizerError.here(
                f"{name}: expected whole parameters, got a rank's part of one; its rule needs all "
                f"elements, so use another optimizer, such as Adam"
            )

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients. Called after `step`, it lets the program not store them at all."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none or p.grad is None:
                    p.grad = None
                else:
                    p.grad.zero_()

    # -- the step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient, in one recorded call.

        Args:
            closure: computes the loss again, calls `backward` and returns the loss.
        """
        if not (self._hooks or any(OF_ALL.values())):
            return self._step(closure)
        args: tuple[Any, ...] = () if closure is None else (closure,)
        kwargs: dict[str, Any] = {}
        for hook in self._called("step_pre"):
            args, kwargs = hook(self, args, kwargs) or (args, kwargs)
        loss = self._step(*args, **kwargs)
        for hook in self._called("step_post"):
            hook(self, args, kwargs)
        return loss

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        self.steps_made += 1
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        trace.now.make_room()  # before the part that Ctrl-C must not interrupt, as it may take long
        with Uninterrupted():  # parameters, their state and step counts change together
            self._update()
        trace.now.keep_up()
        end_program()
        return loss

    @uncollected  # what finalizers read is not computed before parameters have their values
    def _update(self) -> None:
        buckets = self._buckets()
        if buckets:
            now, before = trace.now, trace.now.grad_mode
            now.grad_mode = before and self.differentiable
            now.prompt = not self.differentiable  # `keep_up` comes before `step` returns
            try:
                self._record(self._without_lagging(buckets))
            finally:
                now.grad_mode, now.prompt = before, False
            last = trace.now.pending[-1].outputs[0]
            # Without the gradients, which would be kept.
            counted = [(key[3], [p for p, _ in pairs]) for key, pairs in buckets.items()]
            trace.now.on_failure(last, partial(self._uncount, counted))
            trace.now.limit = 0  # what comes next belongs to the next program
        if self.count is not None:
            self.count(1)

    def _without_lagging(self, buckets: Buckets) -> Buckets:
        """Update tables of which few rows have a gradient; returns the buckets of the others."""
        if not self.may_lag or self.differentiable or are_deterministic_algorithms_enabled():
            return buckets  # how far a row is behind depends on when the table was last read
        uses: UsesByPass = {}
        rest: Buckets = {}
        for key, pairs in buckets.items():
            whole = [(p, g) for p, g in pairs if not (is_large(p) and self._lag(p, g, key, uses))]
            if whole:
                rest[key] = whole
        return rest

    def _lag(self, p: Tensor, grad: Tensor, key: Any, uses: UsesByPass) -> bool:
        """Update only the rows of a table that have a gradient, where that is faster."""
        index, step, _, scalars, _ = key
        group, g = self.param_groups[index], grad.lazy
        if not pays(p, looked_up(p.lazy, g, uses)):
            return False
        numbers = self.numbers(joined(group, self.carries, scalars), step)
        flags = tuple(self.flags(group, step).items())
        if flags != tuple(self.flags(group, step + 1).items()):
            return False
        slots = [self.state[p][name] for name in self.slots(group)]
        if any([is_open(tensor.lazy) for tensor in (p, *slots)]):
            return False  # another reader must see all rows updated
        rule = rule_of(type(self).rule, len(slots), tuple(numbers), flags)
        if rule is None or not (slots or group.get("weight_decay")):
            return False
        idle = not group.get("weight_decay") and group.get("eps", 1.0) > 0
        lagged = self._lagged.setdefault(p, Lagged())
        lagged.step([p, *slots], g, rule, list(numbers.values()), step, idle)
        return True

    def _buckets(self) -> Buckets:
        """Parameters that share numbers and flags; their step counts are incremented."""
        buckets: Buckets = {}
        for i, group in enumerate(self.param_groups):
            known: Known = {}
            entries = 1 + len(self.carries) + len(self.slots(group))
            for p in group["params"]:
                grad = p.grad  # read once: another thread may drop it
                if grad is None:
                    continue
                state = self.state[p]
                if len(state) < entries or "step" not in state:
                    self._begin(p, group, state)
                state["step"] = int(state["step"]) + 1  # a tensor, as PyTorch saves it
                before = advance(self, state, group, known) if self.carries else ()
                key = (i, state["step"], p.dtype, before, self.shapes(p))
                buckets.setdefault(key, []).append((p, grad))
        return buckets

    def _uncount(self, counted: Counted) -> None:
        """Undo the increment of the step counts."""
        if self.count is not None:
            self.count(-1)
        for scalars, params in counted:
            before = dict(zip(self.carries, scalars, strict=True))
            for p in params:
                state = self.state[p]
                state.update(before, step=state["step"] - 1)
                if not state["step"]:
                    del self.state[p]

    def _begin(self, p: Tensor, group: Group, state: dict[str, Any]) -> None:
        """Fill in what the state lacks: all of it, or what an option needs that was changed."""
        if "step" not in state:
            state.update(self.scalars(group, 0), step=0)
        shapes = dict(self.shapes(p) or [(name, p.shape) for name in self.slots(group)])
        for name, fill in self.slots(group).items():
            if name in shapes and name not in state:
                state[name] = _filled(p, fill, shapes[name])

    def begin(self) -> None:
        """Make the state that the first step would make, if there is none, as for loading into.

        Raises:
            OptimizerError: only a step makes this optimizer's state.
        """
        if self.state:
            return
        for group in self.param_groups:
            for p in group["params"]:
                if p.requires_grad:
                    self._begin(p, group, self.state[p])

    def _record(self, buckets: Buckets) -> None:
        for part in _by_device(buckets):
            self._record_part(part)

    def _record_part(self, buckets: Buckets) -> None:
        static: list[Bucket] = []
        values: list[Lazy] = []
        changed: list[Tensor] = []
        for (index, step, dtype, scalars, shapes), pairs in buckets.items():
            params = [p for p, _ in pairs]
            group = self.param_groups[index]
            hyper = self.numbers(joined(group, self.carries, scalars), step)
            names = tuple(dict(shapes) or self.slots(group))
            flags = tuple(self.flags(group, step).items())
            rule: Rule = type(self).rule
            static.append(
                Bucket(rule, tuple(hyper), len(params), len(names), flags, self.takes_rows)
            )
            scalar_type = dtype.real if dtype.is_complex else arithmetic(dtype)
            values += [number(x, scalar_type) for x in hyper.values()]
            values += [p.lazy for p in params]
            values += [grad.lazy for _, grad in pairs]
            changed += params
            for name in names:
                slots = [self.state[p][name] for p in params]
                values += [s.lazy for s in slots]
                changed += slots
        if self.differentiable:
            plan = DIFFERENTIABLE_UPDATE.plan(values, {"buckets": tuple(static)})
            for tensor, new in zip(changed, trace.now.record(plan, tuple(values)), strict=True):
                tensor.replace(new)
                tensor.lazy.home = None  # gradients of the update need the previous value
            return
        update = UPDATE_OF_ROWS if self.takes_rows else UPDATE
        plan = update.plan(values, {"buckets": tuple(static)})
        results = trace.now.record(plan, tuple(values))
        Tensor.replace_all_soon(changed, results)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {v}" for k, v in sorted(group.items()) if k != "params"]
        return "\n".join([*lines, ")"])


def _made(
    self: Optimizer, params: Iterable[Any], values: Mapping[str, Any],
    fields: Mapping[str, Option],
) -> None:  # fmt: skip
    """The constructor that is made from fields."""
    owner = type(self).__name__
    checked = {n: o.check(owner, n, values[n]) if o.check else values[n] for n, o in fields.items()}
    if "differentiable" in checked:
        self.differentiable = checked["differentiable"]
    Optimizer.__init__(self, params, {n: v for n, v in checked.items() if fields[n].grouped})
    self.__post_init__()


def _by_device(buckets: Buckets) -> list[Buckets]:
    """The parameters of each device."""
    devices = {device_of(p.lazy.type) for pairs in buckets.values() for p, _ in pairs}
    if len(devices) < 2:
        return [buckets] if buckets else []
    return [
        {
            key: [pair for pair in pairs if device_of(pair[0].lazy.type) == device]
            for key, pairs in buckets.items()
            if any(device_of(p.lazy.type) == device for p, _ in pairs)
        }
        for device in sorted(devices)
    ]


def _filled(p: Tensor, fill: float, shape: tuple[int, ...]) -> Tensor:
    """State of a parameter, at least float32; both parts of complex state are filled."""
    state = memory_pool.zeros(shape, arithmetic(p.dtype).numpy)
    if fill:
        state.fill(complex(fill, fill) if p.dtype.is_complex else fill)
    return wrap(known(state, intern(as_dtype(state.dtype), state.shape, device_of(p.lazy.type))))
