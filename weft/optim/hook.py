"""Functions that programs have called around steps, and around saving and loading of state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.eager.tensor.autograd.hook import RemovableHandle

OF_ALL: Final[dict[str, dict[int, Callable[..., Any]]]] = {"step_pre": {}, "step_post": {}}
"""Hooks of all optimizers, by kind."""


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of any optimizer, before its own hooks.

    The hook may return other arguments.

    >>> import weft as wf
    >>> from weft.optim.optimizer import register_optimizer_step_pre_hook
    >>> steps = []
    >>> sgd = wf.optim.SGD([wf.nn.Parameter(wf.ones(1))], lr=0.1)
    >>> with register_optimizer_step_pre_hook(lambda *given: steps.append(given)):
    ...     sgd.step()
    >>> len(steps)
    1
    """
    return _of_all("step_pre", hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of any optimizer, after its own
    hooks.
    """
    return _of_all("step_post", hook)


def _of_all(kind: str, hook: Callable[..., Any]) -> RemovableHandle:
    handle = RemovableHandle(OF_ALL[kind])
    OF_ALL[kind][handle.id] = hook
    return handle


class Hooks:
    """The part of an optimizer that keeps its hooks."""

    _hooks: dict[str, dict[int, Callable[..., Any]]]

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other arguments."""
        return self._hook("step_pre", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._hook("step_post", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer)` before each `state_dict`."""
        return self._hook("state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` with each state dict; it may return another one."""
        return self._hook("state_dict_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another one."""
        return self._hook("load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return self._hook("load_post", hook)

    def _hook(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        hooks = self._hooks.setdefault(kind, {})
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def _called(self, kind: str) -> list[Callable[..., Any]]:
        everyone = list(OF_ALL.get(kind, {}).values())
        own = list(self._hooks.get(kind, {}).values())
        return own + everyone if kind == "step_post" else everyone + own
