"""Loss scaling for float16, in which small gradients would underflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from weft.eager.functions.random.generator import scalar
from weft.eager.record.pending.mode import ABSENT_DEVICES, no_grad
from weft.eager.tensor.device import check_device
from weft.eager.tensor.dispatch import recorded
from weft.errors import OptimizerError
from weft.ir.dtype import float32
from weft.ops.reduction import total_norm
from weft.ops.warning import warn
from weft.transport.division import groups_of

_unscaled = recorded(total_norm.unscaled, differentiable=False)


_STATE: Final = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")


class GradScaler:
    """Scales the loss, so that gradients do not underflow in float16, and unscales the gradients.

    If a gradient is infinite or NaN, the step is skipped and the factor is reduced; after many good
    steps the factor grows. bfloat16 needs no scaling. A step reads whether all gradients are
    finite, so the backward pass and the update are two programs.

    Args:
        device: `"cpu"`; for `"cuda"` and other absent devices it does nothing, with a warning if
            `enabled`.
        init_scale: the initial factor.
        growth_factor: multiplies the factor after `growth_interval` good steps.
        backoff_factor: multiplies the factor after a bad step.
        enabled: whether to do anything.

    Source: Micikevicius et al., "Mixed Precision Training", 2017.

    Example:
        >>> import weft as wf
        >>> w = wf.ones(2, requires_grad=True)
        >>> opt, scaler = wf.optim.SGD([w], lr=0.5), wf.GradScaler(init_scale=8.0)
        >>> scaler.scale((w * w).sum()).backward()
        >>> scaler.step(opt)
        >>> scaler.update()
        >>> w.tolist()
        [0.0, 0.0]
    """

    def __init__(
        self, device: str = "cpu", init_scale: float = 65536.0, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        if device in ABSENT_DEVICES:
            if enabled:
                warn(f"GradScaler: there is no device {device!r}; use GradScaler('cpu')")
            enabled = False
        else:
            check_device(device)
        self._enabled = enabled
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._good_steps = 0
        self._finite: dict[int, bool] = {}  # of optimizers with gradients unscaled already

    def scale(self, outputs: Any) -> Any:
        """The loss, or several losses, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, list | tuple):
            return type(outputs)([self.scale(y) for y in outputs])
        return outputs * self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Unscale the gradients of an optimizer's parameters, for example before clipping.

        Raises:
            OptimizerError: they are unscaled already.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise OptimizerError.here(
                "unscale_: the gradients were divided already since the last update(); call "
                "update() after each step"
            )
        params = [p for p in _parameters(optimizer) if p.grad is not None]
        grads = [p.grad for p in params]
        finite = True
        if grads:
            groups = dict.fromkeys([n for p in params for n in groups_of(p)])
            inverse = scalar(1 / self._scale, float32)
            *found, flag = _unscaled(inverse, *grads, groups=tuple(groups))
            with no_grad():
                for g, new in zip(grads, found, strict=True):
                    g.copy_(new)
            finite = bool(flag)
        self._finite[id(optimizer)] = finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the optimizer's step, unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        return optimizer.step(*args, **kwargs) if self._finite[id(optimizer)] else None

    def update(self, new_scale: float | None = None) -> None:
        """Adapt the factor after the steps since the last update, or set it."""
        if not self._enabled:
            return
        finite = all(self._finite.values())
        self._finite.clear()
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not finite:
            self._scale *= self._backoff_factor
            self._good_steps = 0
        else:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                self._scale *= self._growth_factor
                self._good_steps = 0

    def get_scale(self) -> float:
        """The factor."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The state for `load_state_dict`, under PyTorch's names."""
        values = (
            self._scale, self._growth_factor, self._backoff_factor, self._growth_interval,
            self._good_steps,
        )  # fmt: skip
        return dict(zip(_STATE, values, strict=True)) if self._enabled else {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state from `state_dict`."""
        if self._enabled:
            (
                self._scale, self._growth_factor, self._backoff_factor, self._growth_interval,
                self._good_steps,
            ) = [state[name] for name in _STATE]  # fmt: skip


def _parameters(optimizer: Any) -> Iterable[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]
