"""Module hooks: functions called around the forward pass, the backward pass and state dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.eager.tensor.autograd.call_hook import around_of, entered
from weft.eager.tensor.autograd.hook import RemovableHandle
from weft.eager.tensor.dispatch import recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError
from weft.ir.node import Value
from weft.nn.module.tree import ON_REGISTRATION, Tree
from weft.ops.declaration import catalogue
from weft.ops.warning import warn

__all__ = [
    "register_module_backward_hook", "register_module_buffer_registration_hook",
    "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip

Hook = Callable[..., Any]


class Hooks:
    """The hooks of a module, with their options."""

    def __init__(self) -> None:
        self.before: dict[int, Hook] = {}
        self.after: dict[int, Hook] = {}
        self.with_kwargs: dict[int, bool] = {}
        self.always: dict[int, bool] = {}
        self.backward_before: dict[int, Hook] = {}
        self.backward: dict[int, Hook] = {}
        self.takes_dicts: dict[int, bool] = {}


def enter(hooks: dict[int, Any], entry: Any, first: bool = False) -> RemovableHandle:
    """Add a hook after (or before) the others."""
    handle = RemovableHandle(hooks)
    others = list(hooks.items()) if first else []
    if first:
        hooks.clear()
    hooks[handle.id] = entry
    hooks.update(others)
    return handle


GLOBAL: Final[dict[int, tuple[str, Hook, bool, bool]]] = {}
"""Hooks of all modules: kind, hook, with_kwargs, always_call."""


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before `forward` of every module, before its own hooks."""
    return enter(GLOBAL, ("before", hook, False, False))


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after `forward` of every module, before its own hooks.

    Args:
        hook: the function.
        with_kwargs: call `hook(module, args, kwargs, output)`.
        always_call: also if `forward` fails, with the output `None`.
    """
    return enter(GLOBAL, ("after", hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the backward pass of every module."""
    return enter(GLOBAL, ("backward_before", hook, False, False))


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` once every module's gradients are computed."""
    return enter(GLOBAL, ("backward", hook, False, False))


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """The old name of `register_module_full_backward_hook`.

    Args:
        hook: the function.
    """
    return register_module_full_backward_hook(hook)


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, parameter)` when any module registers a parameter.

    A returned value other than `None` is registered instead.

    >>> from weft import nn
    >>> from weft.nn.module.hook import register_module_parameter_registration_hook
    >>> names = []
    >>> with register_module_parameter_registration_hook(lambda m, name, p: names.append(name)):
    ...     _ = nn.Linear(2, 3)
    >>> names
    ['weight', 'bias']
    """
    return enter(ON_REGISTRATION["_parameters"], hook)


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """The same for buffers: `hook(module, name, buffer)`."""
    return enter(ON_REGISTRATION["_buffers"], hook)


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """The same for submodules: `hook(module, name, submodule)`."""
    return enter(ON_REGISTRATION["_modules"], hook)


def with_global(own: Hooks | None) -> Hooks:
    """The hooks of all modules, followed by those of one."""
    hooks = Hooks()
    for number, (place, hook, with_kwargs, always) in list(GLOBAL.items()):
        getattr(hooks, place)[number] = hook
        hooks.with_kwargs[number], hooks.always[number] = with_kwargs, always
    if own is not None:
        for place, entries in vars(own).items():
            getattr(hooks, place).update(entries)
    return hooks


class Hooked(Tree):
    """Registration of hooks, and calls with hooks."""

    _hooks: Hooks | None = None
    forward: Callable[..., Any]

    def _all_hooks(self) -> Hooks:
        if self._hooks is None:
            object.__setattr__(self, "_hooks", Hooks())
        assert self._hooks is not None
        return self._hooks

    @property
    def _forward_pre_hooks(self) -> dict[int, Hook]:
        """The forward pre-hooks, by the id of their handle."""
        return self._all_hooks().before

    @property
    def _forward_hooks(self) -> dict[int, Hook]:
        """The forward hooks."""
        return self._all_hooks().after

    @property
    def _forward_pre_hooks_with_kwargs(self) -> dict[int, bool]:
        """The forward pre-hooks that take keyword arguments."""
        hooks = self._all_hooks()
        return {number: True for number in hooks.before if hooks.with_kwargs.get(number)}

    @property
    def _forward_hooks_with_kwargs(self) -> dict[int, bool]:
        """The forward hooks that take keyword arguments."""
        hooks = self._all_hooks()
        return {number: True for number in hooks.after if hooks.with_kwargs.get(number)}

    @property
    def _backward_pre_hooks(self) -> dict[int, Hook]:
        """The backward pre-hooks."""
        return self._all_hooks().backward_before

    @property
    def _backward_hooks(self) -> dict[int, Hook]:
        """The backward hooks."""
        return self._all_hooks().backward

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; a returned value replaces the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)` and returns both.
        """
        hooks = self._all_hooks()
        handle = enter(hooks.before, hook, prepend)
        hooks.with_kwargs[handle.id] = with_kwargs
        return handle

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; a returned value replaces the output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`. With `always_call` it is also
        called, with the output `None`, if `forward` raises.
        """
        hooks = self._all_hooks()
        handle = enter(hooks.after, hook, prepend)
        hooks.with_kwargs[handle.id], hooks.always[handle.id] = with_kwargs, always_call
        return handle

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward pass.

        A returned value replaces the gradients, for a module with one output.
        """
        return enter(self._all_hooks().backward_before, hook, prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the input gradients are computed.

        A returned value replaces `grad_input`, for a module with one input.
        """
        return enter(self._all_hooks().backward, hook, prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """The old name of `register_full_backward_hook`.

        It is also called for modules that return a dict, with the gradients of the dict's values.
        """
        handle = self.register_full_backward_hook(hook)
        self._all_hooks().takes_dicts[handle.id] = True
        return handle

    def _call_hooked(self, hooks: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return self._call_between(hooks, args, kwargs)
        except Exception:
            for number, hook in list(hooks.after.items()):
                if hooks.always.get(number):
                    self._call_after(hooks, number, hook, args, kwargs, None)
            raise

    def _call_after(
        self, hooks: Hooks, number: int, hook: Hook, args: Any, kwargs: Any, output: Any
    ) -> Any:
        if hooks.with_kwargs.get(number):
            return hook(self, args, kwargs, output)
        return hook(self, args, output)

    def _call_between(self, hooks: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for number, hook in list(hooks.before.items()):
            if hooks.with_kwargs.get(number):
                changed = hook(self, args, kwargs)
                args, kwargs = (args, kwargs) if changed is None else changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        gradients = Passage(self, hooks) if hooks.backward or hooks.backward_before else None
        if gradients is not None:
            args = gradients.inputs(args)
        output = self.forward(*args, **kwargs)
        for number, hook in list(hooks.after.items()):
            replaced = self._call_after(hooks, number, hook, args, kwargs, output)
            if replaced is not None:
                output = replaced
        return output if gradients is None else gradients.outputs(output)


def _passed(*xs: Value) -> list[Value]:
    return [catalogue.identity(x) for x in xs]


_pass: Final = recorded(_passed)


class Passage:
    """The gradients of one call of a module, for its backward hooks."""

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self._module = module
        self._hooks = hooks
        # while a backward pass is inside the module
        self._grad_output: tuple[Any, ...] | None = None
        self._inputs = 0
        self._any_input = False

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with their gradients tracked."""
        watched = list(args)
        self._inputs = len(args)
        self._any_input = self._watch(watched, self._on_inputs)
        return tuple(watched)

    def outputs(self, output: Any) -> Any:
        """The outputs, with their gradients tracked."""
        hooks = self._hooks
        if isinstance(output, dict) and {*hooks.backward, *hooks.backward_before} <= {
            *hooks.takes_dicts
        }:
            by_name: dict[Any, Any] = output
            return dict(zip(by_name, self.outputs(tuple(by_name.values())), strict=True))
        several = isinstance(output, tuple | list)
        watched: list[Any] = list(output) if several else [output]  # type: ignore[arg-type]
        if not several and not isinstance(output, Handle):
            text = (
                f"{type(self._module).__name__}: for backward hooks to be called, the output "
                f"should be a Tensor or a tuple of Tensors, got {type(output).__name__}"
            )
            warn(text)
        self._watch(watched, self._on_outputs)
        return type(output)(watched) if several else watched[0]

    def _watch(self, values: list[Any], see: Callable[[tuple[Any, ...]], Any]) -> bool:
        """Replaces tensors by copies whose gradients are passed to `see` together."""
        places = [i for i, x in enumerate(values) if isinstance(x, Handle) and x.lazy.tracked]
        if not places:
            return False
        count = len(values)

        def seen(gs: tuple[Any, ...]) -> tuple[Any, ...]:
            known = dict(zip(places, gs, strict=True))
            grads = see(tuple([known.get(i) for i in range(count)]))
            return tuple([grads[i] for i in places])

        lazies = _pass.record([values[i] for i in places], {})
        entered(around_of(lazies[0]).before, seen)
        for i, lazy in zip(places, lazies, strict=True):
            values[i] = wrap(lazy, values[i])
        return True

    def _on_outputs(self, gs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self._hooks.backward_before.values()):
            gs = self._replaced(hook(self._module, gs), gs)
        if self._any_input:
            self._grad_output = gs
            return gs
        for hook in list(self._hooks.backward.values()):
            replaced = hook(self._module, (None,) * self._inputs, gs)
            if replaced is not None and any([g is not None for g in _several(replaced)]):
                raise GradientError.here(
                    f"{type(self._module).__name__}: a backward hook gave a gradient where no "
                    f"input requires gradient; return None"
                )
        return gs

    def _on_inputs(self, gs: tuple[Any, ...]) -> tuple[Any, ...]:
        through, self._grad_output = self._grad_output, None
        if through is None:  # as where a gradient is differentiated again
            return gs
        for hook in list(self._hooks.backward.values()):
            gs = self._replaced(hook(self._module, gs, through), gs)
        return gs

    def _replaced(self, returned: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients that a hook returned instead, if it did."""
        if returned is None:
            return before
        grads = _several(returned)
        if len(grads) != len(before):
            raise GradientError.here(
                f"{type(self._module).__name__}: a backward hook gave another number of gradients: "
                f"got {len(grads)}, but expected {len(before)}"
            )
        return grads


def _several(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)
