"""`Module`: the base class of layers and models."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final, Literal, NoReturn, Self

from weft.eager.record.pending.loop_cut import kept_whole
from weft.eager.record.pending.mode import no_grad
from weft.eager.record.pending.state import trace
from weft.eager.tensor.device import is_device, moved, number_of, refuse_cuda
from weft.eager.tensor.dispatch import converted, wrap
from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, ConfigError, DTypeError
from weft.ir.dtype import DType, as_dtype
from weft.ir.dtype import bfloat16 as _bfloat16
from weft.ir.dtype import float16 as _float16
from weft.ir.dtype import float32 as _float32
from weft.ir.dtype import float64 as _float64
from weft.ir.node import at_user_line
from weft.nn.module.hook import GLOBAL, with_global
from weft.nn.module.state_dict import Stateful
from weft.nn.module.summary import Summary, summary
from weft.nn.parameter import Uninitialized
from weft.ops.refusal import REFUSABLE, GuardedMaking, refuse

_TO: Final = {"device", "dtype", "memory_format", "non_blocking"}  # arguments of `Module.to`


class Module(Stateful, GuardedMaking):
    """A layer or a model: parameters, buffers and submodules, and a `forward` that uses them.

    Assigning a `Parameter` or a `Module` to an attribute registers it.

    >>> import weft.nn as nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.linear = nn.Linear(3, 2)
    ...     def forward(self, x):
    ...         return self.linear(x)
    >>> Net()
    Net(
      (linear): Linear(in_features=3, out_features=2, bias=True)
    )
    """

    def __init__(self) -> None:
        super().__init__()

    def forward(self, *_: Any, **__: Any) -> Any:
        """Compute the output; defined by subclasses."""
        raise NotImplementedError(f"{type(self).__name__}: forward is not defined{at_user_line()}")

    @kept_whole
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` and the hooks around it."""
        now = trace.now
        if now.called is not None:
            now.called[self] = self.training
        hooks = with_global(self._hooks) if GLOBAL else self._hooks
        try:
            if hooks is None:
                return self.forward(*args, **kwargs)
            return self._call_hooked(hooks, args, kwargs)
        except REFUSABLE as error:
            return refuse(error, type(self).__name__, self.forward, args, kwargs)
        finally:
            if now.whole:
                now.end_whole(sys._getframe())  # pyright: ignore[reportPrivateUsage]

    def share_memory(self) -> Self:
        """Move parameters and buffers to memory that processes share: `Tensor.share_memory_`."""
        for tensor in (*self.parameters(), *self.buffers()):
            tensor.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Has no effect: Weft compiles by itself."""
        del args, kwargs

    # -- modes

    def train(self, mode: bool = True) -> Self:
        """Set training or evaluation mode, here and in all submodules."""
        if not isinstance(mode, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError.here(f"train: expected True or False, got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters are trained."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the parameters' gradients, or zero them."""
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = wrap((parameter.grad * 0).lazy)

    # -- traversal

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` with every submodule, then with this module; used to initialize weights."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- element types

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating and complex parameters and buffers to an element type.

        Takes PyTorch's arguments: a type (`dtype`), a device, which also moves what is of other
        types, a device and a type, or a tensor whose type and device are used; `non_blocking` and
        `memory_format` have no effect.

        Raises:
            DTypeError: the type is neither floating nor complex, or the arguments are not
                understood.
        """
        device = kwargs.get("device")
        rest = list(args)
        has_device = bool(rest) and (rest[0] is None or is_device(rest[0]))
        if has_device:
            device = rest.pop(0)
        number = None if device is None else number_of(device)
        target = rest.pop(0) if rest else kwargs.get("dtype")
        not_here = bool | Tensor if has_device else bool
        odd = [*[x for x in rest if not isinstance(x, bool)], *sorted(kwargs.keys() - _TO)]
        if odd or isinstance(target, not_here):
            text = f"to: expected a device, an element type or a tensor, got {[*args, *odd]}"
            raise DTypeError.here(text)
        if isinstance(target, Tensor) and number is None:
            number = number_of(target.device)
        if target is not None:
            self._cast(_target(target), "inexact")
        return self if number is None else self._move(number)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to an element type."""
        return self._cast(as_dtype(dst_type), "all")

    def float(self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._cast(_float32)

    def double(self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._cast(_float64)

    def half(self) -> Self:
        """Convert floating parameters and buffers to float16."""
        return self._cast(_float16)

    def bfloat16(self) -> Self:
        """Convert floating parameters and buffers to bfloat16."""
        return self._cast(_bfloat16)

    def cpu(self) -> Self:
        """Move parameters and buffers to the first CPU."""
        return self._move(0)

    def cuda(self, device: Any = None) -> NoReturn:
        """Not available.

        Raises:
            ConfigError: there is no CUDA device.
        """
        del device
        refuse_cuda("Module.cuda")

    def to_empty(self, *, device: Any = None, recurse: bool = True) -> Self:
        """Move parameters and buffers to a device; they always have memory."""
        return self if device is None else self._move(number_of(device))

    def _move(self, number: int) -> Self:
        """Move parameters, gradients and buffers to the CPU with this number."""
        with no_grad():
            for tensor in self._tensors():
                if isinstance(tensor, Uninitialized):
                    if number:
                        raise ConfigError.here(
                            "Module.to: expected parameters with a shape; call the module first"
                        )
                elif number != number_of(tensor.device):
                    tensor.depart(moved(tensor.lazy, number))
        return self

    def _cast(
        self, dtype: DType, which: Literal["floating", "inexact", "all"] = "floating"
    ) -> Self:
        with no_grad():
            for tensor in self._tensors():
                if which != "all" and not getattr(tensor.dtype, f"is_{which}"):
                    continue
                if isinstance(tensor, Uninitialized):
                    tensor.recast(dtype)
                else:
                    tensor.depart(converted(tensor.lazy, dtype))
        return self

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace parameters, their gradients and buffers by `fn` of them.

        Args:
            recurse: also in submodules.
        """
        for tensor in self._tensors(recurse):
            with no_grad():
                replaced = fn(tensor)
            if replaced is not tensor:
                tensor.data = replaced
        return self

    def _tensors(self, recurse: bool = True) -> list[Any]:
        """Parameters, buffers and gradients."""
        parameters = list(self.parameters(recurse))
        grads = [p.grad for p in parameters if p.grad is not None]
        return [*parameters, *self.buffers(recurse), *grads]

    # -- printing

    def summary(
        self, *inputs: Any, depth: int | None = None, show: bool = True, **kwargs: Any
    ) -> Summary:
        """Print a table of layers, output shapes, parameters and memory; see `nn.summary`."""
        return summary(self, *inputs, depth=depth, show=show, **kwargs)

    def extra_repr(self) -> str:
        """The options shown in the printed form; overridden by subclasses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        return shown(
            self._get_name(),
            extra.split("\n") if extra else [],
            [f"({name}): {module!r}" for name, module in self._modules.items()],
        )


def shown(name: str, extra: list[str], children: list[str]) -> str:
    """The printed form of a module."""
    if not children and len(extra) <= 1:
        return f"{name}({''.join(extra)})"
    lines = [line for entry in (*extra, *children) for line in entry.split("\n")]
    return "\n".join([f"{name}(", *[f"  {line}" for line in lines], ")"])


def _target(like: Any) -> DType:
    """The element type that an argument of `to` gives."""
    dtype = as_dtype(like.dtype if isinstance(like, Tensor) else like)
    if not (dtype.is_floating or dtype.is_complex):
        raise DTypeError.here(f"to: expected a floating or complex element type, got {dtype}")
    return dtype
