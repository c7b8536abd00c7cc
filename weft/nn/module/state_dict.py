"""State dicts: every parameter and buffer by its path, to be saved and loaded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from weft.eager.record.pending.determinism import end_program
from weft.eager.tensor.autograd.hook import RemovableHandle
from weft.eager.tensor.handle import Handle
from weft.errors import StateError
from weft.ir.node import at_user_line
from weft.nn.module.hook import Hook, Hooked, enter
from weft.nn.module.loading import ASSIGN, put, taken_back_on_failure
from weft.nn.parameter import is_lazy

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The missing and unexpected keys of `load_state_dict(strict=False)`."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not (self.missing_keys or self.unexpected_keys):
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class StateHooks:
    """The state dict hooks of a module."""

    def __init__(self) -> None:
        self.before_save: dict[int, Hook] = {}
        self.after_save: dict[int, Hook] = {}
        self.before_load: dict[int, Hook] = {}
        self.after_load: dict[int, Hook] = {}


class Stateful(Hooked):
    """Saving and loading.

    A subclass whose state has changed increases `_version`, which state dicts store in their
    `_metadata`, and overrides `_load_from_state_dict` to convert older states.
    """

    _version: ClassVar[int] = 1
    _state_hooks: StateHooks | None = None

    def _all_state_hooks(self) -> StateHooks:
        if self._state_hooks is None:
            object.__setattr__(self, "_state_hooks", StateHooks())
        assert self._state_hooks is not None
        return self._state_hooks

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the state is gathered."""
        return enter(self._all_state_hooks().before_save, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)`, which may change the dict."""
        return enter(self._all_state_hooks().after_save, hook)

    def _register_state_dict_hook(self, hook: Hook) -> RemovableHandle:
        """The same for a hook that may return another dict, which replaces the first one."""
        return self.register_state_dict_post_hook(hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Hook, with_module: bool = False
    ) -> RemovableHandle:
        """`register_load_state_dict_pre_hook` for a hook with or without the module as argument."""
        called = hook if with_module else partial(_without_module, hook)
        return self.register_load_state_dict_pre_hook(called)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call a hook before the module's own state is loaded.

        It is `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`, and may change the dict, which is a copy.
        """
        return enter(self._all_state_hooks().before_load, hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)`, which may change both lists, after loading.

        At that time, the module and all below it have their new values.
        """
        return enter(self._all_state_hooks().after_load, hook)

    # -- saving

    def get_extra_state(self) -> Any:
        """State other than parameters and buffers; defined by modules that have some."""
        raise NotImplementedError(f"{type(self).__name__}: get_extra_state is not defined")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise NotImplementedError(f"{type(self).__name__}: set_extra_state is not defined")

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by path.

        `_metadata` holds the version of each module's state, by path.

        Args:
            args: `destination`, `prefix` and `keep_vars` by position, as older code gives them.
            destination: a dict to add to.
            prefix: what comes before each path.
            keep_vars: give the parameters themselves; else detached tensors that share memory.
        """
        by_name = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        destination = by_name.get("destination", destination)
        prefix, keep_vars = by_name.get("prefix", prefix), by_name.get("keep_vars", keep_vars)
        state = _dict_with_metadata() if destination is None else destination
        local = {"version": self._version}
        if hasattr(state, "_metadata"):
            state._metadata[prefix[:-1]] = local
        hooks = self._state_hooks
        for hook in list(hooks.before_save.values()) if hooks else ():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(  # type: ignore[attr-defined]
                    destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in list(hooks.after_save.values()) if hooks else ():
            changed = hook(self, state, prefix, local)
            state = state if changed is None else changed
        return state

    def _own_state(self) -> dict[str, Any]:
        """This module's own parameters and persistent buffers, unless `None`."""
        hidden = self._non_persistent_buffers_set
        entries = [
            *self._parameters.items(),
            *[(name, b) for name, b in self._buffers.items() if name not in hidden],
        ]
        return {name: tensor for name, tensor in entries if tensor is not None}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Add this module's own state to the dict; subclasses may extend it."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    # -- loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Load values by path: tensors, or anything that NumPy turns into an array.

        Args:
            strict: whether missing and unexpected keys raise.
            assign: replace the module's tensors by the given ones, which keep their types.

        Raises:
            StateError: keys are missing or unexpected (if strict), or values have other shapes; the
                message lists them all. Parameters and buffers are then unchanged.
        """
        if not isinstance(state_dict, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"load_state_dict: expected a dict, got {type(state_dict).__name__}{at_user_line()}"
            )
        state = _dict_with_metadata(state_dict)
        keys, errors = IncompatibleKeys([], []), list[str]()
        # values that surely fit are loaded at once: holding them would take memory for a second
        # model
        with nullcontext() if _fits(self, state) else taken_back_on_failure():
            _load(self, "", state, assign, keys, errors)
            _refuse(type(self).__name__, keys if strict else None, errors)
        end_program()
        return keys

    def _loads_plainly(self) -> bool:
        """Whether its own state is loaded by this class's code alone."""
        own = type(self)
        return (
            self._state_hooks is None
            and own._load_from_state_dict is Stateful._load_from_state_dict
            and own.set_extra_state is Stateful.set_extra_state
        )

    def _renew_state(self, state_dict: Any, prefix: str, local_metadata: Mapping[str, Any]) -> None:
        """Convert the module's own entries in a dict of an older version."""

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own state; subclasses may extend it.

        Args:
            state_dict: of the whole model; keys may be added, changed and taken out.
            prefix: this module's path, followed by a dot.
            local_metadata: the metadata of this module: its `version`.
            strict: whether missing and unexpected keys are reported.
            missing_keys: collects the missing paths.
            unexpected_keys: collects the paths below `prefix` that do not belong to anything.
            error_msgs: collects a message for each value that does not fit.
        """
        hooks = self._state_hooks
        rest = (strict, missing_keys, unexpected_keys, error_msgs)
        for hook in list(hooks.before_load.values()) if hooks else ():
            hook(self, state_dict, prefix, local_metadata, *rest)
        self._renew_state(state_dict, prefix, local_metadata)
        own = self._own_state()
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                fault = put(self, name, tensor, state_dict[key], local_metadata.get(ASSIGN, False))
                if fault is not None:
                    error_msgs.append(f"size mismatch for {key}: {fault}")
            elif strict:
                missing_keys.append(key)
        if type(self).set_extra_state is not Stateful.set_extra_state:
            if prefix + EXTRA in state_dict:
                self.set_extra_state(state_dict[prefix + EXTRA])
            elif strict:
                missing_keys.append(prefix + EXTRA)
            own[EXTRA] = None
        if strict:
            unexpected_keys += _strangers(state_dict, prefix, own, self._modules)


def _without_module(hook: Hook, _: Any, *rest: Any) -> None:
    hook(*rest)


def _dict_with_metadata(entries: Mapping[str, Any] | None = None) -> Any:
    """A new dict with the entries and the `_metadata` of another."""
    state: Any = OrderedDict(entries or {})
    state._metadata = OrderedDict(getattr(entries, "_metadata", None) or {})
    return state


def _fits(model: Any, state: Mapping[str, Any]) -> bool:
    """Whether loading cannot fail or be observed halfway: no hooks, no overridden loading."""
    places = dict(model.named_modules(remove_duplicate=False))
    if not all(module._loads_plainly() for module in places.values()):
        return False
    own = {
        f"{path}.{name}" if path else name: tensor
        for path, module in places.items()
        for name, tensor in module._own_state().items()
    }
    return own.keys() == state.keys() and all(
        not is_lazy(tensor) and _is_at_hand(state[key]) and state[key].shape == tensor.shape
        for key, tensor in own.items()
    )


def _is_at_hand(value: Any) -> bool:
    """Whether the value is data that needs no computation, which might fail."""
    if isinstance(value, Handle):
        return not is_lazy(value) and value.lazy.array is not None
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "OUSMm"


def _load(
    module: Any, prefix: str, state: Any, assign: bool, keys: IncompatibleKeys, errors: list[str]
) -> None:
    """Load a module and all below it."""
    local = dict(state._metadata.get(prefix[:-1], {}))
    if assign:
        local[ASSIGN] = True
    module._load_from_state_dict(state, prefix, local, True, *keys, errors)
    for name, child in module._modules.items():
        if child is not None:
            _load(child, f"{prefix}{name}.", state, assign, keys, errors)
    hooks: StateHooks | None = module._state_hooks
    for hook in list(hooks.after_load.values()) if hooks else ():
        hook(module, keys)


def _strangers(
    state: Mapping[str, Any], prefix: str, own: Mapping[str, Any], modules: Mapping[str, Any]
) -> list[str]:
    """The paths below a prefix that belong neither to the module's own state nor to a submodule."""
    strangers: list[str] = []
    for key in state:
        if key.startswith(prefix):
            first, *rest = key[len(prefix) :].split(".", 1)
            if first not in (modules if rest else own):
                strangers.append(key)
    return strangers


def _refuse(name: str, keys: IncompatibleKeys | None, errors: list[str]) -> None:
    """Raise the collected errors, if any."""
    parts = list(errors)
    if keys is not None:
        for label, listed in (("Unexpected", keys[1]), ("Missing", keys[0])):
            if listed:
                quoted = ", ".join(f'"{k}"' for k in listed)
                parts.insert(0, f"{label} key(s) in state_dict: {quoted}.")
    if parts:
        text = "\n\t".join([f"Error(s) in loading state_dict for {name}:", *parts])
        raise StateError.here(text)
