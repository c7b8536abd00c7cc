"""State dicts: every parameter and buffer by its path, to be saved and loaded."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from weft.eager import storage
from weft.eager.call import leaf
from weft.eager.handle import Handle
from weft.eager.hook import RemovableHandle
from weft.errors import StateError
from weft.ir.shape import show
from weft.nn.hook import Hook, Hooked, enter
from weft.nn.parameter import Parameter, is_lazy
from weft.ops.base import at_user_line

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict(strict=False)` did not find, and did not want."""

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
    """The hooks of a module's state dict."""

    def __init__(self) -> None:
        self.before_save: dict[int, Hook] = {}
        self.after_save: dict[int, Hook] = {}
        self.before_load: dict[int, Hook] = {}
        self.after_load: dict[int, Hook] = {}


class Stateful(Hooked):
    """Saving and loading."""

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

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call a hook before the module's own state is loaded.

        It is `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`, and may change the dict, of which it gets a copy.
        """
        return enter(self._all_state_hooks().before_load, hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)`, which may change both lists, after loading."""
        return enter(self._all_state_hooks().after_load, hook)

    # -- saving

    def get_extra_state(self) -> Any:
        """State besides parameters and buffers, for modules that define it."""
        raise NotImplementedError(f"{type(self).__name__}: get_extra_state is not defined")

    def set_extra_state(self, state: Any) -> None:
        """Take over what `get_extra_state` gave."""
        raise NotImplementedError(f"{type(self).__name__}: set_extra_state is not defined")

    def state_dict(
        self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by path.

        Args:
            keep_vars: give the parameters themselves; else tensors that show the same values,
                without gradients.
        """
        found = OrderedDict[str, Any]() if destination is None else destination
        hooks = self._state_hooks
        for hook in list(hooks.before_save.values()) if hooks else ():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(  # type: ignore[attr-defined]
                    destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in list(hooks.after_save.values()) if hooks else ():
            hook(self, found, prefix, {})
        return found

    def _own_state(self) -> dict[str, Any]:
        """This module's own parameters and persistent buffers that are there."""
        hidden = self._non_persistent_buffers_set
        entries = [
            *self._parameters.items(),
            *[(name, b) for name, b in self._buffers.items() if name not in hidden],
        ]
        return {name: tensor for name, tensor in entries if tensor is not None}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    # -- loading

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Take over values by path: tensors, or whatever NumPy makes an array of.

        Args:
            strict: every path must be there, and no other.
            assign: put the given tensors in place of the module's, whose types they then keep.

        Raises:
            StateError: keys are missing, not expected (when strict), or values have other shapes;
                nothing is loaded then. The message lists them all.
        """
        if not isinstance(state_dict, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"load_state_dict: expected a dict, got {type(state_dict).__name__}{at_user_line()}"
            )
        loading = Loading(dict(state_dict), strict, assign)
        loading.visit(self, "")
        loading.finish(type(self).__name__)
        loading.put()
        return IncompatibleKeys(loading.missing, loading.unexpected)

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
        """For modules that define how keys of older versions become today's: called first."""


class Loading:
    """One call of `load_state_dict`: first everything is checked, then everything is put."""

    def __init__(self, state: dict[str, Any], strict: bool, assign: bool) -> None:
        self.state = state
        self.strict = strict
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        self._puts: list[tuple[Any, str, Any, Any]] = []
        self._extras: list[tuple[Any, Any]] = []
        self._after: list[tuple[Hook, Any]] = []

    def visit(self, module: Any, prefix: str) -> None:
        """Check a module and all below it."""
        hooks: StateHooks | None = module._state_hooks
        lists = (self.strict, self.missing, self.unexpected, self.errors)
        for hook in list(hooks.before_load.values()) if hooks else ():
            hook(module, self.state, prefix, {}, *lists)
        module._load_from_state_dict(self.state, prefix, {}, *lists)
        self._visit_own(module, prefix)
        for name, child in module._modules.items():
            if child is not None:
                self.visit(child, f"{prefix}{name}.")
        for hook in list(hooks.after_load.values()) if hooks else ():
            self._after.append((hook, module))

    def _visit_own(self, module: Any, prefix: str) -> None:
        own = module._own_state()
        for name, tensor in own.items():
            key = prefix + name
            if key in self.state:
                self._check(module, name, tensor, key)
            else:
                self.missing.append(key)
        if type(module).set_extra_state is not Stateful.set_extra_state:
            if prefix + EXTRA in self.state:
                self._extras.append((module, self.state[prefix + EXTRA]))
            else:
                self.missing.append(prefix + EXTRA)
            own[EXTRA] = None
        for key in self.state:
            if key.startswith(prefix):
                first, *rest = key[len(prefix) :].split(".", 1)
                if first not in (module._modules if rest else own):
                    self.unexpected.append(key)

    def _check(self, module: Any, name: str, tensor: Any, key: str) -> None:
        value = self.state[key]
        if is_lazy(value) or is_lazy(tensor):
            self._check_lazy(module, name, tensor, key)
            return
        shape = tuple(getattr(value, "shape", np.shape(value)))
        if shape == () and tensor.shape == (1,):  # old files hold scalars where now is one element
            value, shape = np.reshape(_array(value), (1,)), (1,)
        if shape != tensor.shape:
            self.errors.append(
                f"size mismatch for {key}: expected {show(tensor.shape)} as in the model, got "
                f"{show(shape)} from the state dict"
            )
        else:
            self._puts.append((module, name, tensor, value))

    def _check_lazy(self, module: Any, name: str, tensor: Any, key: str) -> None:
        """A value that has no shape, or a tensor that has none and takes that of any value."""
        value = self.state[key]
        if not is_lazy(value):
            self._puts.append((module, name, tensor, value))
        elif not is_lazy(tensor):
            self.errors.append(
                f"{key}: expected a value {show(tensor.shape)}, got an uninitialized parameter; "
                "call the module that the state comes from with an input first"
            )

    def finish(self, name: str) -> None:
        """Raise what was found, if anything was."""
        incompatible = IncompatibleKeys(self.missing, self.unexpected)
        for hook, module in self._after:
            hook(module, incompatible)
        parts = list(self.errors)
        if self.strict:
            for label, keys in (("Unexpected", self.unexpected), ("Missing", self.missing)):
                if keys:
                    listed = ", ".join(f'"{k}"' for k in keys)
                    parts.insert(0, f"{label} key(s) in state_dict: {listed}.")
        if parts:
            text = "\n\t".join([f"Error(s) in loading state_dict for {name}:", *parts])
            raise StateError(text + at_user_line())

    def put(self) -> None:
        """Give every tensor its value."""
        for module, name, tensor, value in self._puts:
            if self.assign:
                _assign(module, name, tensor, value)
            else:
                if is_lazy(tensor):
                    tensor.materialize(np.shape(value))
                tensor.replace(leaf(storage.copied(_array(value), tensor.dtype.numpy)))
        for module, value in self._extras:
            module.set_extra_state(value)


def _array(value: Any) -> Any:
    if isinstance(value, Handle):
        return value.array
    detach = getattr(value, "detach", None)  # another framework's tensor
    return np.asarray(value if detach is None else detach())


def _assign(module: Any, name: str, tensor: Any, value: Any) -> None:
    if isinstance(tensor, Parameter):
        if not isinstance(value, Parameter):
            given = value if isinstance(value, Handle) else _array(value)
            value = Parameter(given, tensor.requires_grad)
        module._parameters[name] = value
    else:
        module._buffers[name] = value
