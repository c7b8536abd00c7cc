"""Modes of a thread: whether gradients are tracked, and mixed precision."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Generator
from typing import Any, Final, Self

from weft.eager.record.pending.global_mark import inferring
from weft.eager.record.pending.state import trace
from weft.errors import DTypeError
from weft.ir.dtype import DType, as_dtype, bfloat16
from weft.ops.declaration.numeric import HALVES
from weft.ops.warning import warn

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]

ABSENT_DEVICES: Final = ("cuda", "hip", "hpu", "meta", "mps", "mtia", "xla", "xpu")
"""Types of devices that PyTorch programs name, and that Weft does not have."""


class Setting(contextlib.ContextDecorator):
    """Sets a field of `trace.now` inside it; a context manager and decorator."""

    def __init__(self, field: str, value: Any) -> None:
        self._field = field
        self._value = value
        self._before: list[Any] = []

    def _recreate_cm(self) -> Setting:
        """The context that a decorated call enters: a new one, so that threads do not share it."""
        return Setting(self._field, self._value)

    def __call__(self, function: Any) -> Any:
        """Decorate a function; a generator function is in the mode whenever it runs."""
        if isinstance(function, type):
            text = "a decorated class is in the mode in its constructor only: decorate its methods"
            warnings.warn(text, FutureWarning, stacklevel=2)
        if not inspect.isgeneratorfunction(function):
            return super().__call__(function)

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return self._driven(function(*args, **kwargs))

        return generator

    def _driven(self, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run a generator in this mode, also when it is sent values, thrown into or closed."""
        resume: Callable[[Any], Any] = inner.send
        given: Any = None
        while True:
            with self._recreate_cm():
                try:
                    found = resume(given)
                except StopIteration as end:
                    return end.value
            try:
                resume, given = inner.send, (yield found)
            except GeneratorExit:
                with self._recreate_cm():
                    inner.close()
                raise
            except BaseException as error:
                resume, given = inner.throw, error

    def _meant(self) -> Any:
        """The value of the field inside."""
        return self._value

    def __enter__(self) -> Self:
        value = self._meant()
        self._before.append(getattr(trace.now, self._field))
        try:
            setattr(trace.now, self._field, value)
        except BaseException:  # Ctrl-C comes after calls: nothing else would end the mode
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        setattr(trace.now, self._field, self._before[-1])
        self._before.pop()


class Switched(Setting):
    """A setting that applies at once; as a context manager, until its end."""

    def __init__(self, field: str, value: Any) -> None:
        super().__init__(field, value)
        super().__enter__()

    def __call__(self, function: Any) -> Any:
        """Decorate a function; outside it, the setting is unchanged."""
        self.__exit__()
        return self._recreate_cm()(function)

    def __enter__(self) -> Self:
        return self


class _Recording(Setting):
    """Whether results are recorded for gradients; in inference mode they never are."""

    def __init__(self, value: bool) -> None:
        super().__init__("grad_mode", value)

    def _recreate_cm(self) -> _Recording:
        return _Recording(self._value)

    def _meant(self) -> bool:
        return self._value and not trace.now.inference


class _SwitchedRecording(_Recording, Switched):
    """Set it at once."""


class _Unchanged(Setting):
    """A setting of a device that is absent."""

    def __init__(self, field: str) -> None:
        super().__init__(field, None)

    def _recreate_cm(self) -> _Unchanged:
        return _Unchanged(self._field)

    def _meant(self) -> Any:
        return getattr(trace.now, self._field)


def _mode(value: bool, function: Callable[..., Any] | None) -> Any:
    setting = _Recording(value)
    return setting if function is None else setting(function)


def no_grad(function: Callable[..., Any] | None = None) -> Any:
    """Turns off gradients inside; a context manager or decorator.

    >>> import weft as wf
    >>> x = wf.ones(2, requires_grad=True)
    >>> with wf.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """
    return _mode(False, function)


def enable_grad(function: Callable[..., Any] | None = None) -> Any:
    """Turns gradients on inside a `no_grad`, but not inside an `inference_mode`.

    A context manager or decorator."""
    return _mode(True, function)


class _Inference(Setting):
    """Whether inference mode is on: tensors made then never need gradients."""

    def __init__(self, mode: bool) -> None:
        super().__init__("inference", mode)
        self._grads = Setting("grad_mode", not mode)

    def _recreate_cm(self) -> _Inference:
        return _Inference(self._value)

    def __enter__(self) -> Self:
        self._grads.__enter__()
        inferring.used = True
        inferring.open.append(None)
        return super().__enter__()

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        inferring.open.pop()
        self._grads.__exit__(*problem)


def inference_mode(mode: Any = True) -> Any:
    """`no_grad()` for tensors that never need gradients: outside they cannot be changed in place.

    A context manager or decorator. With `mode=False` it turns off an enclosing inference mode,
    which `enable_grad()` does not.

    >>> import weft as wf
    >>> with wf.inference_mode():
    ...     x = wf.ones(2)
    >>> x.is_inference(), x.clone().is_inference()
    (True, False)
    """
    return _Inference(True)(mode) if callable(mode) else _Inference(bool(mode))


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is on."""
    return trace.now.inference


def set_grad_enabled(mode: bool) -> Setting:
    """Turn gradients on or off from now on; as a context manager, inside it.

    >>> import weft as wf
    >>> with wf.set_grad_enabled(False):
    ...     wf.is_grad_enabled()
    False
    """
    if type(mode) is not bool:
        raise DTypeError.here(f"set_grad_enabled: expected True or False, got {mode!r}")
    return _SwitchedRecording(mode)


def is_grad_enabled() -> bool:
    """Whether results require gradients if their inputs do."""
    return trace.now.grad_mode


def autocast(
    device_type: Any = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool = True
) -> Setting:
    """Mixed precision inside: matmuls run in half precision; a context manager or decorator.

    `weft.ops.declaration.autocast` says which operation runs in which dtype. Parameters and their
    gradients stay float32.

    Args:
        device_type: the dtype, as in `autocast(bfloat16)`; or `"cpu"`, as in PyTorch. For
            `"cuda"` and other absent devices nothing changes, with a warning if `enabled`.
        dtype: bfloat16 (by default) or float16.
        enabled: whether to do anything.
        cache_enabled: no effect: equal casts are computed once anyway.

    Raises:
        DTypeError: `dtype` is no half-precision dtype.

    Example:
        >>> import weft as wf
        >>> with wf.autocast(wf.bfloat16):
        ...     wf.is_autocast_enabled()
        True
    """
    del cache_enabled
    if device_type in ABSENT_DEVICES:
        if enabled:
            warn(f"autocast: there is no device {device_type!r}; use autocast('cpu')")
        return _Unchanged("autocast")
    given = device_type if dtype is None and device_type != "cpu" else dtype
    kind = bfloat16 if given is None else as_dtype(given)
    if kind not in HALVES:
        raise DTypeError.here(f"autocast: expected bfloat16 or float16, got {kind}")
    return Setting("autocast", kind if enabled else None)


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether mixed precision is on."""
    return device_type == "cpu" and trace.now.autocast is not None


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """The half-precision dtype of mixed precision, whether or not it is on."""
    found: DType | None = trace.now.autocast if device_type == "cpu" else None
    return bfloat16 if found is None else found
